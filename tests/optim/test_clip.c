/* test_clip.c - gradient clipping, against PyTorch. */
#include "optim/optim_test.h"

#include <math.h>

#include "optim/golden.h"
#include "tensor/values.h"

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

/* Applies the rule to the gradients, as input of the next clipping. */
static void use(co_store *store, co_grad_rule rule)
{
    for (size_t k = 0; k < store->n; k++)
        store->grad[k] = co_grad_use(store->grad[k], rule);
}

/* Starts a step with these limits, 0: none. */
static void begin(co_store *store, double loss_scale, double norm, double value)
{
    const co_loss_scale scale = {.scale = loss_scale};

    co_values_given(store)->clip_norm = norm;
    co_values_given(store)->clip_value = value;
    assert_int_equal(co_values_set(store, 1, &scale), CO_OK);
    assert_int_equal(co_values_send(store), CO_OK);
}

static double clip_norm(co_store *store, double limit)
{
    begin(store, 1, limit, 0);
    co_clip_norm(store, false);
    use(store, store->values->rule);
    return store->values->norm;
}

static void clip_value(co_store *store, double limit)
{
    begin(store, 1, 0, limit);
    use(store, store->values->rule);
}

/* Unscaling, clipping values, then the norm: one rule gives the result of three passes. */
static void clip_rule_equals_separate_passes(void **state)
{
    co_store *store = make_store(), *passes = make_store();
    const co_grad_rule rule = {.scale = 0.25f, .limit = INFINITY};

    (void)state;
    use(passes, rule);
    clip_value(passes, 0.3);
    clip_norm(passes, 0.7);
    begin(store, 4, 0.7, 0.3);
    co_clip_norm(store, false);
    assert_true(store->values->rule.scale < 0.25f);
    use(store, store->values->rule);
    assert_memory_equal(store->grad, passes->grad, GOLDEN_CLIP * sizeof(float));
    co_store_destroy(passes);
    co_store_destroy(store);
}

static void clip_unlimited_gradients_keep_their_bits(void **state)
{
    const float odd[] = {-0.0f, 1e-38f, -INFINITY, INFINITY, 3.1f};

    (void)state;
    for (size_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++) {
        const float used = co_grad_use(odd[k], co_step_rule(1, 0));

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

/* Sums of halves and quarters are exact, so any order must give the same. */
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
