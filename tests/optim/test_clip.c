/*
 * test_clip.c - clipping against PyTorch's.
 */
#include "optim/optim_test.h"

#include <math.h>

#include "optim/golden.h"

static co_store *make_store(void)
{
    co_store *store = optim_test_store(GOLDEN_CLIP);

    for (int k = 0; k < GOLDEN_CLIP; k++)
        store->grad[k] = (float)(k * 29 % 31 - 15) / 8;
    return store;
}

static void check(const co_store *store, const float *expected)
{
    for (int k = 0; k < GOLDEN_CLIP; k++)
        assert_true(fabsf(store->grad[k] - expected[k]) <= 1e-6f * fabsf(expected[k]));
}

static void norms_are_those_of_pytorch(void **state)
{
    co_store *store = make_store();

    (void)state;
    co_clip_norm(store, 1.5 * golden_norm_before);
    check(store, golden_norm_unclipped);
    assert_true(fabs(co_clip_norm(store, 100) - golden_norm_before) < 1e-6 * golden_norm_before);
    check(store, golden_norm_unclipped);
    assert_true(fabs(co_clip_norm(store, 1.5) - golden_norm_before) < 1e-6 * golden_norm_before);
    check(store, golden_norm);
    assert_true(fabs(co_clip_norm(store, 1.5) - 1.5) < 1e-5);
    co_store_destroy(store);
}

static void values_are_those_of_pytorch(void **state)
{
    co_store *store = make_store();

    (void)state;
    co_clip_value(store, 0.3);
    check(store, golden_value);
    co_store_destroy(store);
}

/* Halves and quarters add up exactly, so any order of summing must give the same. */
static void norm_is_exact_where_it_can_be(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        co_store *store = optim_test_store(n);
        double squares = 0;

        for (size_t k = 0; k < n; k++) {
            store->grad[k] = (float)(k % 5) * 0.5f;
            squares += (double)store->grad[k] * (double)store->grad[k];
        }
        assert_true(co_clip_norm(store, 1e9) == sqrt(squares));
        co_store_destroy(store);
    }
}

static void what_is_not_a_number_stays_visible(void **state)
{
    co_store *store = make_store();

    (void)state;
    store->grad[3] = NAN;
    co_clip_value(store, 0.3);
    assert_true(isnan(store->grad[3]));
    assert_true(isnan(co_clip_norm(store, 1)));
    assert_true(isnan(store->grad[3]));
    co_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_those_of_pytorch),
        cmocka_unit_test(values_are_those_of_pytorch),
        cmocka_unit_test(norm_is_exact_where_it_can_be),
        cmocka_unit_test(what_is_not_a_number_stays_visible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
