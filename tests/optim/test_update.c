/* test_update.c - optimizers against PyTorch, and against themselves on parts of the store. */
#include "optim/optim_test.h"

#include <math.h>

#include "optim/golden.h"
#include "tensor/values.h"

static co_optim *make_optim(co_config **config, const char *text, co_store *store)
{
    const co_value *value = NULL;
    co_optim *optim = NULL;

    *config = optim_test_config("{}");
    assert_int_equal(co_config_add_text(&value, *config, text), CO_OK);
    if (co_optim_create(&optim, value, *config, store) != CO_OK)
        fail_msg("%s", co_error_message());
    return optim;
}

/* Initial values of golden.py: exact in binary. */
static void set_params(co_store *store)
{
    for (size_t k = 0; k < store->n; k++)
        store->param[k] = (float)((int)(k * 37 % 17) - 8) / 8;
}

static void set_gradients(co_store *store, size_t t)
{
    for (size_t k = 0; k < store->n; k++)
        store->grad[k] = (float)((int)((t * 31 + k * 13) % 23) - 11) / 16;
}

static void set_values(co_store *store, double lr, uint64_t step)
{
    const co_loss_scale none = {.scale = 1};

    co_values_given(store)->lr = lr;
    assert_int_equal(co_values_set(store, step, &none), CO_OK);
    assert_int_equal(co_values_send(store), CO_OK);
}

static void update(const co_optim *optim, co_store *store, size_t begin, size_t end, double lr,
                   uint64_t step)
{
    set_values(store, lr, step);
    assert_int_equal(co_optim_update(optim, store, begin, end), CO_OK);
}

static double rate(const co_optim *optim, size_t t)
{
    return co_optim_base_lr(optim) / (double)(1 + t);
}

/* After update t of golden case c. */
static void check_golden(const float *param, size_t c, size_t t)
{
    for (size_t k = 0; k < GOLDEN_N; k++) {
        const float expected = golden_updates[c].param[t][k];

        if (fabsf(param[k] - expected) > 2e-7f + 1e-6f * fabsf(expected))
            fail_msg("%s: update %zu, element %zu: %.9g, PyTorch has %.9g",
                     golden_updates[c].optimizer, t + 1, k, (double)param[k], (double)expected);
    }
}

static void update_of_every_optimizer_equals_pytorch(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(golden_updates) / sizeof(golden_updates[0]); c++) {
        co_store *store = optim_test_store(GOLDEN_N);
        co_config *config;
        co_optim *optim = make_optim(&config, golden_updates[c].optimizer, store);

        set_params(store);
        for (size_t t = 0; t < GOLDEN_STEPS; t++) {
            set_gradients(store, t);
            update(optim, store, 0, store->n, rate(optim, t), t + 1);
            check_golden(store->param, c, t);
        }
        co_optim_destroy(optim);
        co_config_destroy(config);
        co_store_destroy(store);
    }
}

/* One of two tensors is frozen for some of the run's updates; its own are PyTorch's, who counts
   those of each tensor. */
static void update_of_tensor_frozen_for_a_while_equals_pytorch(void **state)
{
    static const bool frozen[] = {true, true, false, false, true, false, true, true, false, false};
    enum { APART = 16 };

    (void)state;
    for (size_t c = 0; c < sizeof(golden_updates) / sizeof(golden_updates[0]); c++) {
        co_store *store = optim_test_store(APART + GOLDEN_N);
        co_config *config;
        co_optim *optim = make_optim(&config, golden_updates[c].optimizer, store);
        co_segment two[] = {{.n = GOLDEN_N}, {.begin = APART, .n = GOLDEN_N}};
        size_t own = 0;

        set_params(store);
        memcpy(store->param + APART, store->param, GOLDEN_N * sizeof(float));
        for (size_t t = 0; t < sizeof(frozen) / sizeof(frozen[0]); t++) {
            two[1].frozen = frozen[t];
            two[1].missed = t - own;
            assert_int_equal(co_optim_set_segments(optim, two, 2), CO_OK);
            set_gradients(store, own);
            memcpy(store->grad + APART, store->grad, GOLDEN_N * sizeof(float));
            update(optim, store, 0, store->n, rate(optim, own), t + 1);
            own += !frozen[t];
            if (own > 0)
                check_golden(store->param + APART, c, own - 1);
        }
        assert_int_equal(own, GOLDEN_STEPS);
        co_optim_destroy(optim);
        co_config_destroy(config);
        co_store_destroy(store);
    }
}

/* A bucket or a shard of the store can be updated separately. */
static void update_by_ranges_equals_whole(void **state)
{
    static const size_t cut[] = {0, 1, 16, 61, 100};

    (void)state;
    for (size_t c = 0; c < sizeof(golden_updates) / sizeof(golden_updates[0]); c++) {
        co_store *whole = optim_test_store(100), *pieces = optim_test_store(100);
        co_config *config[2];
        co_optim *a = make_optim(&config[0], golden_updates[c].optimizer, whole);
        co_optim *b = make_optim(&config[1], golden_updates[c].optimizer, pieces);
        const size_t n_cut = co_optim_ops(a)->per_tensor ? 1 : 4;

        set_params(whole);
        set_params(pieces);
        for (size_t t = 0; t < GOLDEN_STEPS; t++) {
            set_gradients(whole, t);
            set_gradients(pieces, t);
            update(a, whole, 0, whole->n, rate(a, t), t + 1);
            for (size_t i = n_cut; i-- > 0;)
                update(b, pieces, cut[i], n_cut > 1 ? cut[i + 1] : 100, rate(b, t), t + 1);
        }
        assert_memory_equal(whole->param, pieces->param, whole->n * sizeof(float));
        assert_int_equal(whole->n_state, pieces->n_state);
        for (int i = 0; i < whole->n_state; i++)
            assert_memory_equal(whole->state[i], pieces->state[i], whole->n * sizeof(float));
        co_optim_destroy(a);
        co_optim_destroy(b);
        co_config_destroy(config[0]);
        co_config_destroy(config[1]);
        co_store_destroy(whole);
        co_store_destroy(pieces);
    }
}

/* Parameters that never have a gradient, and gaps of the store, must not change. */
static void update_of_zeros_stays_zero(void **state)
{
    static const char *const texts[] = {
        "{name: sgd, momentum: 0.9, weight_decay: 0.1}", "{name: adam, weight_decay: 0.1}", "adamw",
        "{name: adadelta, weight_decay: 0.1}",           "{name: lars, weight_decay: 0.1}", "lamb"};
    const float zero[3] = {0};

    (void)state;
    for (size_t c = 0; c < sizeof(texts) / sizeof(texts[0]); c++) {
        co_store *store = optim_test_store(3);
        co_config *config;
        co_optim *optim = make_optim(&config, texts[c], store);

        for (uint64_t step = 1; step < 4; step++)
            update(optim, store, 0, store->n, 0.1, step);
        assert_memory_equal(store->param, zero, sizeof(zero));
        co_optim_destroy(optim);
        co_config_destroy(config);
        co_store_destroy(store);
    }
}

/* Three tensors with gaps: their segments of the store. */
static const co_segment tensors[] = {{.begin = 0, .n = 7, .kind = CO_PARAM_WEIGHT},
                                     {.begin = 16, .n = 5, .kind = CO_PARAM_NORM},
                                     {.begin = 32, .n = 3, .kind = CO_PARAM_BIAS}};
/* The same of a transformer. */
static const co_segment spared[] = {{.begin = 0, .n = 7, .kind = CO_PARAM_WEIGHT},
                                    {.begin = 16, .n = 5, .kind = CO_PARAM_NORM, .spared = true},
                                    {.begin = 32, .n = 3, .kind = CO_PARAM_BIAS, .spared = true}};

static void set_gaps(float *v)
{
    for (size_t k = 0; k < 48; k++)
        if ((k >= 7 && k < 16) || (k >= 21 && k < 32) || k >= 35)
            v[k] = 0;
}

/* Tensor `i` alone in a store, updated by another optimizer, must get the same values. */
static void check_tensor(const char *text, const co_store *together, size_t i, size_t steps)
{
    const co_segment *segment = &tensors[i];
    co_store *alone = optim_test_store(segment->n), *whole = optim_test_store(48);
    co_config *config;
    co_optim *optim = make_optim(&config, text, alone);
    const co_segment own = {.n = segment->n};

    assert_int_equal(co_optim_set_segments(optim, &own, 1), CO_OK);
    set_params(whole);
    memcpy(alone->param, whole->param + segment->begin, segment->n * sizeof(float));
    for (size_t t = 0; t < steps; t++) {
        set_gradients(whole, t);
        memcpy(alone->grad, whole->grad + segment->begin, segment->n * sizeof(float));
        update(optim, alone, 0, alone->n, rate(optim, t), t + 1);
    }
    for (size_t k = 0; k < segment->n; k++)
        if (alone->param[k] != together->param[segment->begin + k])
            fail_msg("%s, tensor %zu, element %zu: %.9g, alone %.9g", text, i, k,
                     (double)together->param[segment->begin + k], (double)alone->param[k]);
    co_optim_destroy(optim);
    co_config_destroy(config);
    co_store_destroy(whole);
    co_store_destroy(alone);
}

static const struct {
    const char *together, *alone[3]; /* settings that are equivalent for a weight */
    bool spared;
} independent_cases[] = {
    {"{name: lars, lr: 3, weight_decay: 0.1}",
     {"{name: lars, lr: 3, weight_decay: 0.1}", "{name: lars, lr: 3, weight_decay: 0.1}",
      "{name: lars, lr: 3, weight_decay: 0.1}"},
     false},
    {"{name: lars, lr: 3, momentum: 0, weight_decay: 0.1, norm_weight_decay: 0, "
     "exclude_norm_bias: true}",
     {"{name: lars, lr: 3, momentum: 0, weight_decay: 0.1}", "{name: sgd, lr: 3}",
      "{name: sgd, lr: 3, weight_decay: 0.1}"},
     false},
    {"{name: lamb, lr: 0.1, bias_weight_decay: 0}",
     {"{name: lamb, lr: 0.1}", "{name: lamb, lr: 0.1}", "{name: lamb, lr: 0.1, weight_decay: 0}"},
     false},
    {"{name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1, norm_weight_decay: 0, "
     "bias_weight_decay: 0.5}",
     {"{name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1}",
      "{name: sgd, lr: 0.1, momentum: 0.9}",
      "{name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.5}"},
     false},
    {"{name: adam, weight_decay: 0.3, norm_weight_decay: 0, bias_weight_decay: 0}",
     {"{name: adam, weight_decay: 0.3}", "adam", "adam"},
     false},
    {"{name: adamw, norm_weight_decay: 0}",
     {"adamw", "{name: adamw, weight_decay: 0}", "adamw"},
     false},
    {"{name: adadelta, weight_decay: 0.2, bias_weight_decay: 0}",
     {"{name: adadelta, weight_decay: 0.2}", "{name: adadelta, weight_decay: 0.2}", "adadelta"},
     false},
    {"adamw", {"adamw", "{name: adamw, weight_decay: 0}", "{name: adamw, weight_decay: 0}"}, true},
    {"{name: adamw, norm_weight_decay: 0.3, bias_weight_decay: 0.01}",
     {"adamw", "{name: adamw, weight_decay: 0.3}", "adamw"},
     true},
};

/* Norms are per tensor; weights, norms and biases each have their own weight decay. */
static void update_of_tensor_is_independent_of_others(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(independent_cases) / sizeof(independent_cases[0]); c++) {
        co_store *store = optim_test_store(48);
        co_config *config;
        co_optim *optim = make_optim(&config, independent_cases[c].together, store);
        const float zero[48] = {0};

        assert_int_equal(
            co_optim_set_segments(optim, independent_cases[c].spared ? spared : tensors, 3), CO_OK);
        set_params(store);
        set_gaps(store->param);
        for (size_t t = 0; t < GOLDEN_STEPS; t++) {
            set_gradients(store, t);
            set_gaps(store->grad);
            update(optim, store, 0, store->n, rate(optim, t), t + 1);
        }
        for (size_t i = 0; i < 3; i++)
            check_tensor(independent_cases[c].alone[i], store, i, GOLDEN_STEPS);
        assert_memory_equal(store->param + 7, zero, 9 * sizeof(float));
        assert_memory_equal(store->param + 35, zero, 13 * sizeof(float));
        co_optim_destroy(optim);
        co_config_destroy(config);
        co_store_destroy(store);
    }
}

/* A store after three updates; the rule is applied to gradients by the update or before it. */
static co_store *updated_by_rule(const char *optimizer, co_grad_rule rule, bool before)
{
    co_store *store = optim_test_store(GOLDEN_N);
    co_config *config;
    co_optim *optim = make_optim(&config, optimizer, store);

    set_params(store);
    for (size_t t = 0; t < 3; t++) {
        set_values(store, rate(optim, t), t + 1);
        if (!before)
            store->values->rule = rule;
        set_gradients(store, t);
        for (size_t k = 0; before && k < GOLDEN_N; k++)
            store->grad[k] = co_grad_use(store->grad[k], rule);
        assert_int_equal(co_optim_update(optim, store, 0, GOLDEN_N), CO_OK);
    }
    co_optim_destroy(optim);
    co_config_destroy(config);
    return store;
}

static void update_applies_gradient_rule(void **state)
{
    const co_grad_rule rule = {.scale = 0.37f, .limit = 0.2f};

    (void)state;
    for (size_t c = 0; c < sizeof(golden_updates) / sizeof(golden_updates[0]); c++) {
        co_store *within = updated_by_rule(golden_updates[c].optimizer, rule, false);
        co_store *before = updated_by_rule(golden_updates[c].optimizer, rule, true);

        assert_memory_equal(within->param, before->param, GOLDEN_N * sizeof(float));
        co_store_destroy(before);
        co_store_destroy(within);
    }
}

static void update_of_part_of_tensor_is_refused(void **state)
{
    static const char *const names[] = {"lars", "lamb"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        co_store *store = optim_test_store(48);
        co_config *config;
        co_optim *optim = make_optim(&config, names[i], store);

        assert_int_equal(co_optim_set_segments(optim, tensors, 3), CO_OK);
        set_values(store, 0.1, 1);
        assert_int_equal(co_optim_update(optim, store, 0, 16), CO_OK);
        assert_int_equal(co_optim_update(optim, store, 16, 48), CO_OK);
        assert_int_equal(co_optim_update(optim, store, 0, 0), CO_OK);
        assert_int_equal(co_optim_update(optim, store, 0, 18), CO_E_USAGE);
        assert_int_equal(co_optim_update(optim, store, 34, 48), CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), "needs whole tensors for their norms"));
        co_optim_destroy(optim);
        co_config_destroy(config);
        co_store_destroy(store);
    }
}

/* Where the norm is zero, the plain step. */
static void update_of_zero_norm_is_finite(void **state)
{
    static const struct {
        const char *text;
        float param, grad, expected;
    } cases[] = {
        {"{name: lars, lr: 0.5}", 0, 0.25F, -0.125F},
        {"{name: lars, lr: 0.5, weight_decay: 1}", 2, 0, 1},
        {"{name: lamb, lr: 0.5, weight_decay: 0}", 0, 0.25F, -0.5F},
        {"{name: lamb, lr: 0.5, weight_decay: 0}", 2, 0, 2},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        co_store *store = optim_test_store(1);
        co_config *config;
        co_optim *optim = make_optim(&config, cases[c].text, store);

        store->param[0] = cases[c].param;
        store->grad[0] = cases[c].grad;
        update(optim, store, 0, 1, co_optim_base_lr(optim), 1);
        if (fabsf(store->param[0] - cases[c].expected) > 1e-5F)
            fail_msg("%s: %g", cases[c].text, (double)store->param[0]);
        co_optim_destroy(optim);
        co_config_destroy(config);
        co_store_destroy(store);
    }
}

static void optim_learning_rate_scales_with_batch(void **state)
{
    co_store *store = optim_test_store(4);
    co_config *config;
    co_optim *optim = make_optim(&config, "{name: sgd, lr: 0.1, lr_batch: 256}", store);

    (void)state;
    assert_int_equal(co_optim_set_batch(optim, 0), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "lr_batch scales lr"));
    assert_int_equal(co_optim_set_batch(optim, 208 * 64), CO_OK);
    assert_true(fabs(co_optim_base_lr(optim) - 5.2) < 1e-12); /* 64 ranks of 208 */
    co_optim_destroy(optim);
    co_config_destroy(config);
    optim = make_optim(&config, "{name: sgd, lr: 0.1}", store);
    assert_int_equal(co_optim_set_batch(optim, 0), CO_OK);
    assert_int_equal(co_optim_set_batch(optim, 1024), CO_OK);
    assert_true(co_optim_base_lr(optim) == 0.1);
    co_optim_destroy(optim);
    co_config_destroy(config);
    co_store_destroy(store);
}

static void optim_defaults_equal_pytorch(void **state)
{
    co_store *store = optim_test_store(4);
    co_config *config = optim_test_config("");
    co_optim *optim = NULL;

    (void)state;
    assert_int_equal(co_optim_create(&optim, NULL, config, store), CO_OK);
    assert_string_equal(co_optim_ops(optim)->name, "sgd");
    assert_true(co_optim_base_lr(optim) == 0.01);
    assert_int_equal(store->n_state, 0);
    co_optim_destroy(optim);
    co_config_destroy(config);
    optim = make_optim(&config, "adam", store);
    assert_true(co_optim_base_lr(optim) == 0.001);
    assert_int_equal(store->n_state, 2);
    co_optim_destroy(optim);
    co_config_destroy(config);
    co_store_destroy(store);
    assert_null(co_plugin_find(&co_optimizer_plugins, "SGD"));
}

static void optim_too_many_state_arrays_are_refused(void **state)
{
    co_store *store = optim_test_store(4);
    co_config *config[3];
    co_optim *a = make_optim(&config[0], "adam", store);
    co_optim *b = make_optim(&config[1], "adamw", store);
    co_optim *c = NULL;

    (void)state;
    config[2] = optim_test_config("optimizer: {name: sgd, momentum: 0.9}");
    assert_int_equal(
        co_optim_create(&c, co_value_get(co_config_root(config[2]), "optimizer"), config[2], store),
        CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "create a new model"));
    co_optim_destroy(a);
    co_optim_destroy(b);
    for (int i = 0; i < 3; i++)
        co_config_destroy(config[i]);
    co_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_of_every_optimizer_equals_pytorch),
        cmocka_unit_test(update_of_tensor_frozen_for_a_while_equals_pytorch),
        cmocka_unit_test(update_by_ranges_equals_whole),
        cmocka_unit_test(update_of_zeros_stays_zero),
        cmocka_unit_test(update_of_tensor_is_independent_of_others),
        cmocka_unit_test(update_applies_gradient_rule),
        cmocka_unit_test(update_of_part_of_tensor_is_refused),
        cmocka_unit_test(update_of_zero_norm_is_finite),
        cmocka_unit_test(optim_learning_rate_scales_with_batch),
        cmocka_unit_test(optim_defaults_equal_pytorch),
        cmocka_unit_test(optim_too_many_state_arrays_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
