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

/* The gradient as the rule has it, for the next clipping to see. */
static void use(co_store *store, co_grad_rule rule)
{
    for (size_t k = 0; k < store->n; k++)
        store->grad[k] = co_grad_use(store->grad[k], rule);
}

static double clip_norm(co_store *store, double limit)
{
    co_grad_rule rule = CO_GRAD_PLAIN;
    double norm = 0;

    assert_int_equal(co_clip_norm(&norm, &rule, store, limit), CO_OK);
    use(store, rule);
    return norm;
}

static void clip_value(co_store *store, double limit)
{
    co_grad_rule rule = CO_GRAD_PLAIN;

    co_clip_value(&rule, limit);
    use(store, rule);
}

/* Unscaling, values, then the norm: one rule does what three passes would. */
static void clip_rule_equals_separate_passes(void **state)
{
    co_store *store = make_store(), *passes = make_store();
    co_grad_rule rule = {.scale = 0.25f, .limit = INFINITY};
    double norm;

    (void)state;
    use(passes, rule);
    clip_value(passes, 0.3);
    clip_norm(passes, 0.7);
    co_clip_value(&rule, 0.3);
    assert_int_equal(co_clip_norm(&norm, &rule, store, 0.7), CO_OK);
    assert_true(rule.scale < 0.25f);
    use(store, rule);
    assert_memory_equal(store->grad, passes->grad, GOLDEN_CLIP * sizeof(float));
    co_store_destroy(passes);
    co_store_destroy(store);
}

static void clip_unlimited_gradients_keep_their_bits(void **state)
{
    const float odd[] = {-0.0f, 1e-38f, -INFINITY, INFINITY, 3.1f};

    (void)state;
    for (size_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++) {
        const float used = co_grad_use(odd[k], CO_GRAD_PLAIN);

        assert_memory_equal(&used, &odd[k], sizeof(used));
    }
}

static void clip_norm_equals_pytorch(void **state)
{
    co_store *store = make_store();

    (void)state;
    clip_norm(store, 1.5 * golden_norm_before);
    check(store, golden_norm_unclipped);
    assert_true(fabs(clip_norm(store, 100) - golden_norm_before) < 1e-6 * golden_norm_before);
    check(store, golden_norm_unclipped);
    assert_true(fabs(clip_norm(store, 1.5) - golden_norm_before) < 1e-6 * golden_norm_before);
    check(store, golden_norm);
    assert_true(fabs(clip_norm(store, 1.5) - 1.5) < 1e-5);
    co_store_destroy(store);
}

static void clip_value_equals_pytorch(void **state)
{
    co_store *store = make_store();

    (void)state;
    clip_value(store, 0.3);
    check(store, golden_value);
    co_store_destroy(store);
}

/* Halves and quarters add up exactly, so any order of summing must give the same. */
static void clip_norm_of_exact_squares_is_exact(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        co_store *store = optim_test_store(n);
        double squares = 0;

        for (size_t k = 0; k < n; k++) {
            store->grad[k] = (float)(k % 5) * 0.5f;
            squares += (double)store->grad[k] * (double)store->grad[k];
        }
        assert_true(clip_norm(store, 1e9) == sqrt(squares));
        co_store_destroy(store);
    }
}

static void clip_nan_stays_nan(void **state)
{
    co_store *store = make_store();

    (void)state;
    store->grad[3] = NAN;
    clip_value(store, 0.3);
    assert_true(isnan(store->grad[3]));
    assert_true(isnan(clip_norm(store, 1)));
    assert_true(isnan(store->grad[3]));
    co_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clip_rule_equals_separate_passes),
        cmocka_unit_test(clip_unlimited_gradients_keep_their_bits),
        cmocka_unit_test(clip_norm_equals_pytorch),
        cmocka_unit_test(clip_value_equals_pytorch),
        cmocka_unit_test(clip_norm_of_exact_squares_is_exact),
        cmocka_unit_test(clip_nan_stays_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
