/* test_page_table.c - curves of a page that are thinned out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "report/page_table.h"

/* Of four rows two are kept: the lowest, and one that is no number, be it the first or not. */
static void page_table_thinned_keeps_lowest_and_no_number(void **state)
{
    static const double loss[2][4] = {{NAN, 3, 1, 2}, {3, 1, NAN, 2}};
    static const char *const names[] = {"step", "train_loss", NULL};

    (void)state;
    for (int k = 0; k < 2; k++) {
        co_page_table table;

        co_page_table_init(&table, names);
        for (int i = 0; i < 4; i++) {
            json_t *event = json_pack("{s:i}", "step", i);

            if (!isnan(loss[k][i]))
                json_object_set_new(event, "train_loss", json_real(loss[k][i]));
            assert_int_equal(co_page_table_add(&table, event), CO_OK);
            json_decref(event);
        }
        co_page_table_thin(&table, 2, 1);
        assert_int_equal(table.rows, 2);
        assert_true(isnan(table.value[1]) != isnan(table.value[3]));
        assert_true(fmin(table.value[1], table.value[3]) == 1.0);
        co_page_table_free(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_table_thinned_keeps_lowest_and_no_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
