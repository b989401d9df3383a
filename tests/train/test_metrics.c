/* test_metrics.c - what counts as right. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/metrics.h"

static void counts_by_place(void **state)
{
    const float score[4 * 7] = {
        9, 1, 2, 3, 4, 5, 6, /* label 0: first */
        9, 1, 2, 3, 4, 5, 6, /* label 3: fifth */
        9, 1, 2, 3, 4, 5, 6, /* label 2: sixth */
        2, 2, 0, 0, 0, 0, 0, /* label 1: a tie goes to class 0 */
    };
    const float loss[4] = {0.5F, 1, 2, 4};
    const int32_t label[4] = {0, 3, 2, 1};
    co_result result;

    (void)state;
    co_metrics_count(&result, score, loss, label, 4, 7);
    assert_int_equal(result.count, 4);
    assert_int_equal(result.correct, 1);
    assert_int_equal(result.correct5, 3);
    assert_true(result.loss_sum == 7.5);
}

static void nan_is_never_right(void **state)
{
    const float score[2] = {NAN, NAN};
    const float loss[1] = {0};
    const int32_t label[1] = {0};
    co_result result;

    (void)state;
    co_metrics_count(&result, score, loss, label, 1, 2);
    assert_int_equal(result.correct, 0);
}

static void sums_over_one_rank(void **state)
{
    co_result result = {.count = 3, .loss_sum = 1.5, .correct = 2, .correct5 = 3}, part = result;
    co_comm *comm = NULL;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    co_metrics_add(&result, &part);
    assert_int_equal(co_metrics_reduce(&result, comm), CO_OK);
    assert_int_equal(result.count, 6);
    assert_int_equal(result.correct, 4);
    assert_int_equal(result.correct5, 6);
    assert_true(result.loss_sum == 3.0);
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_place),
        cmocka_unit_test(nan_is_never_right),
        cmocka_unit_test(sums_over_one_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
