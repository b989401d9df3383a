/*
 * test_parameters.c - parameters by name: reading, writing and freezing. With frozen parameters,
 * the others have the same bits as in a model where those are reset after each step.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "folder.h"

#define SAMPLES 6
#define MAX     4096 /* maximum elements of a tensor here */

static const char layers[] =
    "[{conv2d: {out: 4, kernel: 3}}, batchnorm, relu, {conv2d: {out: 4, kernel: 3}}, batchnorm, "
    "relu, flatten, {linear: 8}, relu, {linear: 3}]";

typedef struct net {
    co_model *model;
    co_comm *comm;
    co_distributed *d;
} net;

static void open_net_by(net *out, const char *optimizer, const char *strategy, double clip_norm,
                        const char *freeze)
{
    const co_model_options options = {
        .model = layers, .sample = {3, {1, 8, 8}}, .classes = 3, .seed = 3, .threads = 1};
    co_distributed_options how = {
        .optimizer = optimizer, .strategy = strategy, .clip_norm = clip_norm};

    assert_int_equal(co_model_create(&out->model, &options), CO_OK);
    if (freeze)
        assert_int_equal(co_model_freeze(out->model, freeze, true), CO_OK);
    assert_int_equal(co_comm_create_self(&out->comm), CO_OK);
    how.model = out->model;
    how.comm = out->comm;
    if (co_distributed_create(&out->d, &how) != CO_OK)
        out->d = NULL;
}

static void open_net(net *out, const char *strategy, double clip_norm, const char *freeze)
{
    open_net_by(out, "{name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.01}", strategy, clip_norm,
                freeze);
}

static void close_net(net *n)
{
    co_distributed_destroy(n->d);
    co_comm_destroy(n->comm);
    co_model_destroy(n->model);
}

static co_status forward_and_back(const net *n, int number, bool more)
{
    static const uint32_t sample[SAMPLES];
    float input[SAMPLES * 64];
    int32_t label[SAMPLES];
    const co_batch batch = {.step = (uint64_t)number,
                            .count = SAMPLES,
                            .local = SAMPLES,
                            .global = SAMPLES,
                            .sample = sample,
                            .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 8, 8}}, input},
                                      {CO_FIELD_LABEL, CO_I32, {0}, label}}};
    co_result seen;

    for (int i = 0; i < SAMPLES * 64; i++)
        input[i] = (float)((i * 37 + number * 11) % 19) * 0.1f - 0.9f;
    for (int i = 0; i < SAMPLES; i++)
        label[i] = (i + number) % 3;
    CO_TRY(co_model_forward(&seen, n->model, &batch));
    return co_distributed_backward(n->d, &batch, more);
}

static co_status step(const net *n, int number)
{
    CO_TRY(forward_and_back(n, number, false));
    return co_distributed_step(n->d);
}

static void get(float *out, const co_model *model, const co_parameter *p)
{
    assert_true(co_shape_count(&p->shape) <= MAX);
    assert_int_equal(co_model_get_parameter(out, model, p->name, p->dtype, &p->shape), CO_OK);
}

static void set(co_model *model, const co_parameter *p, const float *values)
{
    assert_int_equal(co_model_set_parameter(model, p->name, p->dtype, &p->shape, values), CO_OK);
}

static void assert_same(const co_model *a, const co_model *b)
{
    static float x[MAX], y[MAX];
    co_parameter p;

    for (size_t i = 0; co_model_parameter(&p, a, i); i++) {
        get(x, a, &p);
        get(y, b, &p);
        if (memcmp(x, y, (size_t)co_shape_count(&p.shape) * sizeof(float)) != 0)
            fail_msg("%s is another", p.name);
    }
}

/* One net freezes what matches; the other is reset there after each step. */
static void check_frozen(const char *pattern)
{
    static float first[32][MAX];
    co_parameter p;
    net frozen, whole;
    size_t n = 0;

    open_net(&frozen, "sync", 0, pattern);
    open_net(&whole, "sync", 0, NULL);
    assert_non_null(frozen.d);
    for (size_t i = 0; co_model_parameter(&p, frozen.model, i); i++) {
        get(first[i], frozen.model, &p);
        n += p.frozen;
    }
    assert_true(n > 0);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(step(&frozen, k), CO_OK);
        assert_int_equal(step(&whole, k), CO_OK);
        for (size_t i = 0; co_model_parameter(&p, frozen.model, i); i++)
            if (p.frozen)
                set(whole.model, &p, first[i]);
        assert_same(frozen.model, whole.model);
    }
    close_net(&frozen);
    close_net(&whole);
}

static void freeze_lowest_layers_leaves_bits_of_the_others(void **state)
{
    (void)state;
    check_frozen("*1");
    check_frozen("conv*");
}

static void freeze_layer_between_leaves_bits_of_the_others(void **state)
{
    co_parameter p;
    net n;

    (void)state;
    check_frozen("*.bias");
    check_frozen("*.weight");
    open_net(&n, "sync", 0, NULL);
    for (size_t i = 0; co_model_parameter(&p, n.model, i); i++)
        if (!p.buffer)
            check_frozen(p.name);
    close_net(&n);
}

typedef struct seen_values {
    float value[32][MAX];
} seen_values;

static void see(seen_values *out, const net *n)
{
    co_parameter p;

    for (size_t i = 0; co_model_parameter(&p, n->model, i); i++)
        get(out->value[i], n->model, &p);
}

/* The norm of what the last step added to the momentum of the trained parameters, of which
   `before[0]` and `before[1]` are two steps and one step ago. */
static double norm_of_step(const net *n, const seen_values before[2], double momentum)
{
    static float after[MAX];
    double sum = 0;
    co_parameter p;

    for (size_t i = 0; co_model_parameter(&p, n->model, i); i++) {
        get(after, n->model, &p);
        for (int64_t k = 0; !p.buffer && !p.frozen && k < co_shape_count(&p.shape); k++) {
            /* w - 0.1 m, m = 0.9 m' + g + 0.01 w */
            const double w = (double)before[1].value[i][k];
            const double m = (w - (double)after[k]) / 0.1;
            const double former = ((double)before[0].value[i][k] - w) / 0.1;
            const double g = m - momentum * former - 0.01 * w;

            sum += g * g;
        }
    }
    return sqrt(sum);
}

static void freeze_clip_norm_counts_trained_parameters_alone(void **state)
{
    static seen_values before[2];
    net n;

    (void)state;
    open_net(&n, "sync", 1e-3, "conv*");
    see(&before[0], &n);
    before[1] = before[0];
    assert_int_equal(step(&n, 0), CO_OK);
    assert_true(fabs(norm_of_step(&n, before, 0) / 1e-3 - 1) < 0.01);
    close_net(&n);
}

/* The last of the backward passes of a step has no samples: a rank's short share. */
static void freeze_holds_where_the_last_backward_is_empty(void **state)
{
    static seen_values before[2];
    const co_batch nothing = {.global = SAMPLES};
    net n;

    (void)state;
    open_net(&n, "sync", 1e-3, "conv*");
    see(&before[0], &n);
    before[1] = before[0];
    assert_int_equal(forward_and_back(&n, 0, true), CO_OK);
    assert_int_equal(co_distributed_backward(n.d, &nothing, false), CO_OK);
    assert_int_equal(co_distributed_step(n.d), CO_OK);
    assert_true(fabs(norm_of_step(&n, before, 0) / 1e-3 - 1) < 0.01);
    close_net(&n);
}

/* What a strategy has kept of a parameter since before it was frozen. */
static void freeze_ends_what_a_strategy_keeps(void **state)
{
    static const char *const kept[] = {
        "{name: stale, k: 1}",
        "{name: sync, compress: {name: powersgd, rank: 1, min_compression: 1}}"};
    static seen_values before[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        net n;

        open_net(&n, kept[i], 1e-3, NULL);
        for (int k = 0; k < 3; k++) {
            if (k == 2)
                see(&before[0], &n);
            assert_int_equal(step(&n, k), CO_OK);
        }
        assert_int_equal(co_model_freeze(n.model, "conv*", true), CO_OK);
        see(&before[1], &n);
        assert_int_equal(step(&n, 3), CO_OK);
        if (fabs(norm_of_step(&n, before, 0.9) / 1e-3 - 1) >= 0.01)
            fail_msg("%s: %g", kept[i], norm_of_step(&n, before, 0.9));
        close_net(&n);
    }
}

static void freeze_taken_back_trains_again(void **state)
{
    static float before[MAX], after[MAX];
    co_parameter p;
    net n;

    (void)state;
    open_net(&n, "sync", 0, NULL);
    assert_true(co_model_parameter(&p, n.model, 0));
    get(before, n.model, &p);
    assert_int_equal(co_model_freeze(n.model, p.name, true), CO_OK);
    assert_int_equal(step(&n, 0), CO_OK);
    get(after, n.model, &p);
    assert_memory_equal(before, after, (size_t)co_shape_count(&p.shape) * sizeof(float));
    assert_int_equal(co_model_freeze(n.model, p.name, false), CO_OK);
    assert_int_equal(step(&n, 1), CO_OK);
    get(after, n.model, &p);
    assert_memory_not_equal(before, after, (size_t)co_shape_count(&p.shape) * sizeof(float));
    close_net(&n);
}

/* What was frozen begins like a new run with the weights of then. */
static void check_first_step(const char *optimizer)
{
    static float values[MAX], fresh[MAX];
    co_parameter p;
    net n, other;

    open_net_by(&n, optimizer, "sync", 0, "conv*");
    open_net_by(&other, optimizer, "sync", 0, NULL);
    for (int i = 0; i < 20; i++)
        assert_int_equal(step(&n, i), CO_OK);
    for (size_t i = 0; co_model_parameter(&p, n.model, i); i++) {
        get(values, n.model, &p);
        set(other.model, &p, values);
    }
    assert_int_equal(co_model_freeze(n.model, "conv*", false), CO_OK);
    assert_int_equal(step(&n, 20), CO_OK);
    assert_int_equal(step(&other, 20), CO_OK);
    for (size_t i = 0; co_model_parameter(&p, n.model, i); i++) {
        get(values, n.model, &p);
        get(fresh, other.model, &p);
        if (strncmp(p.name, "conv", 4) == 0 &&
            memcmp(values, fresh, (size_t)co_shape_count(&p.shape) * sizeof(float)) != 0)
            fail_msg("%s: %s is another", optimizer, p.name);
    }
    close_net(&other);
    close_net(&n);
}

static void freeze_taken_back_counts_updates_from_there(void **state)
{
    (void)state;
    check_first_step("adam");
    check_first_step("adamw");
    check_first_step("lamb");
    check_first_step("{name: sgd, lr: 0.1, momentum: 0.9, dampening: 0.9}");
}

static void freeze_impossible_is_refused(void **state)
{
    net n;

    (void)state;
    open_net(&n, "sync", 0, NULL);
    assert_int_equal(co_model_freeze(n.model, "nothing", true), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "'nothing'"));
    assert_int_equal(co_model_freeze(n.model, "*", true), CO_OK);
    assert_int_equal(step(&n, 0), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "left to train"));
    close_net(&n);
    open_net(&n, "local", 0, "conv*");
    assert_null(n.d);
    assert_non_null(strstr(co_error_message(), "take sync"));
    close_net(&n);
}

static void parameter_of_another_form_is_refused(void **state)
{
    const co_shape other = {1, {5}};
    float value[MAX] = {0};
    co_parameter p;
    net n;

    (void)state;
    open_net(&n, "sync", 0, NULL);
    assert_true(co_model_parameter(&p, n.model, 0));
    assert_int_equal(co_model_get_parameter(value, n.model, "none", CO_F32, &p.shape), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "'none'"));
    assert_int_equal(co_model_set_parameter(n.model, p.name, CO_F64, &p.shape, value), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "f64"));
    assert_int_equal(co_model_set_parameter(n.model, p.name, CO_F32, &other, value), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "(5)"));
    close_net(&n);
}

/* The config key: on two ranks, and resumed within the run. */
static void freeze_of_a_config_keeps_initial_weights(void **state)
{
    static const char config[] =
        "model: {name: mnist-net}\n"
        "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 40}\n"
        "freeze: [conv1, conv2.bias]\nbatch: 10\nepochs: 2\n"
        "optimizer: {name: adam, lr: 0.01, weight_decay: 0.1}\nthreads: 1\n";
    static float before[MAX], after[MAX];
    static const char *const half[] = {"max_steps=3", NULL};
    const co_model_options made = {
        .model = "mnist-net", .sample = {3, {1, 28, 28}}, .classes = 10, .seed = 1234};
    co_train_options options = {.config_text = config, .ranks = 2, .quiet = true, .set = half};
    co_model *first, *last;
    co_parameter p;

    (void)state;
    options.run_dir = folder_path("run");
    assert_int_equal(co_train(NULL, &options), CO_OK);
    options.set = NULL;
    options.resume = true;
    options.run_dir = folder_path("run");
    if (co_train(NULL, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(co_model_create(&first, &made), CO_OK);
    assert_int_equal(co_model_create(&last, &made), CO_OK);
    assert_int_equal(co_model_load(last, folder_path("run/final.safetensors")), CO_OK);
    for (size_t i = 0; co_model_parameter(&p, first, i); i++) {
        const bool kept = strncmp(p.name, "conv1.", 6) == 0 || strcmp(p.name, "conv2.bias") == 0;

        if (co_shape_count(&p.shape) > MAX)
            continue;
        get(before, first, &p);
        get(after, last, &p);
        if ((memcmp(before, after, (size_t)co_shape_count(&p.shape) * sizeof(float)) == 0) != kept)
            fail_msg("%s %s", p.name, kept ? "has moved" : "has not moved");
    }
    co_model_destroy(first);
    co_model_destroy(last);
}

/* A transformer after one step with so much weight decay. */
static co_model *step_of_tokens(const char *optimizer)
{
    static const uint32_t sample[2] = {0, 1};
    const int32_t token[16] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1};
    const int32_t label[16] = {2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    const co_batch batch = {.step = 1,
                            .count = 2,
                            .local = 2,
                            .global = 2,
                            .sample = sample,
                            .field = {{CO_FIELD_INPUT, CO_I32, {1, {8}}, token},
                                      {CO_FIELD_LABEL, CO_I32, {1, {8}}, label}}};
    const co_model_options options = {.model = "{name: gpt2, layers: 1, heads: 2, width: 8}",
                                      .sample = {1, {8}},
                                      .classes = 9,
                                      .seed = 3,
                                      .threads = 1};
    co_distributed_options how = {.optimizer = optimizer};
    co_result seen;
    net n;

    assert_int_equal(co_model_create(&n.model, &options), CO_OK);
    assert_int_equal(co_comm_create_self(&n.comm), CO_OK);
    how.model = n.model;
    how.comm = n.comm;
    assert_int_equal(co_distributed_create(&n.d, &how), CO_OK);
    assert_int_equal(co_model_forward(&seen, n.model, &batch), CO_OK);
    assert_int_equal(co_distributed_backward(n.d, &batch, false), CO_OK);
    assert_int_equal(co_distributed_step(n.d), CO_OK);
    co_distributed_destroy(n.d);
    co_comm_destroy(n.comm);
    return n.model;
}

static void decay_of_transformer_is_of_matrices_alone(void **state)
{
    co_model *alone = step_of_tokens("{name: adamw, weight_decay: 30}");
    co_model *named = step_of_tokens(
        "{name: adamw, weight_decay: 30, norm_weight_decay: 0, bias_weight_decay: 0}");
    co_model *all = step_of_tokens(
        "{name: adamw, weight_decay: 30, norm_weight_decay: 30, bias_weight_decay: 30}");
    float x[MAX], y[MAX];
    co_parameter p;

    (void)state;
    assert_same(alone, named);
    for (size_t i = 0; co_model_parameter(&p, alone, i); i++) {
        get(x, alone, &p);
        get(y, all, &p);
        if (strstr(p.name, ".weight")) /* biases start from 0 */
            if ((p.shape.ndim == 2) != (x[0] == y[0]))
                fail_msg("%s: %.9g, with decay of all %.9g", p.name, (double)x[0], (double)y[0]);
    }
    co_model_destroy(alone);
    co_model_destroy(named);
    co_model_destroy(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decay_of_transformer_is_of_matrices_alone),
        cmocka_unit_test(freeze_lowest_layers_leaves_bits_of_the_others),
        cmocka_unit_test(freeze_layer_between_leaves_bits_of_the_others),
        cmocka_unit_test(freeze_clip_norm_counts_trained_parameters_alone),
        cmocka_unit_test(freeze_holds_where_the_last_backward_is_empty),
        cmocka_unit_test(freeze_ends_what_a_strategy_keeps),
        cmocka_unit_test(freeze_taken_back_trains_again),
        cmocka_unit_test(freeze_taken_back_counts_updates_from_there),
        cmocka_unit_test(freeze_impossible_is_refused),
        cmocka_unit_test(parameter_of_another_form_is_refused),
        cmocka_unit_test(freeze_of_a_config_keeps_initial_weights),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
