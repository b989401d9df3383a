/* test_store.c - the flat store: placement, alignment, failure of every allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/mem.h"
#include "tensor/store.h"

static void store_places_without_overlap(void **state)
{
    size_t end = 0;

    (void)state;
    assert_int_equal(co_store_place(&end, 1), 0);
    assert_int_equal(co_store_place(&end, 16), 16);
    assert_int_equal(co_store_place(&end, 17), 32);
    assert_int_equal(end, 64);
}

static void store_is_zero_and_aligned(void **state)
{
    co_store *store = NULL;

    (void)state;
    assert_int_equal(co_store_create(&store, 1000, 0), CO_OK);
    assert_int_equal(co_store_add_states(store, 2), CO_OK);
    assert_int_equal((uintptr_t)store->param % 64, 0);
    assert_int_equal((uintptr_t)store->grad % 64, 0);
    assert_int_equal((uintptr_t)store->state[1] % 64, 0);
    for (size_t i = 0; i < store->n; i++)
        assert_true(store->param[i] == 0 && store->grad[i] == 0 && store->state[1][i] == 0);
    co_store_destroy(store);
    co_store_destroy(NULL);
}

static void store_survives_every_failed_allocation(void **state)
{
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_store *store = NULL;

        co_mem_fail_at(++k);
        st = co_store_create(&store, 100, 10);
        if (st == CO_OK) {
            st = co_store_add_states(store, 2);
            co_store_destroy(store);
        }
        assert_true(st == CO_OK || st == CO_E_NOMEM);
    } while (st != CO_OK);
    co_mem_fail_at(0);
    assert_int_equal(k, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_places_without_overlap),
        cmocka_unit_test(store_is_zero_and_aligned),
        cmocka_unit_test(store_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
