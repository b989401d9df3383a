/* test_precision.c - half precision in a run: levels, loss scales, steps that overflow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "folder.h"
#include "model/model.h"
#include "step/distributed.h"
#include "step/loss_scale.h"

/* ---- the key ---- */

static co_status read_precision(co_precision *out, const char *text)
{
    const co_value *value = NULL;
    co_config *config = NULL;
    co_status st;

    assert_int_equal(co_config_parse(&config, "{}", 2, "test"), CO_OK);
    assert_int_equal(co_config_add_text(&value, config, text), CO_OK);
    st = co_precision_read(out, value, co_config_arena(config));
    co_config_destroy(config);
    return st;
}

static void precision_levels_equal_apex(void **state)
{
    const struct {
        const char *text, *name;
        co_dtype low;
        bool everything, norm_params, dynamic;
        double scale;
    } cases[] = {
        {"fp32", "fp32", CO_F32, false, false, false, 1},
        {"bf16", "bf16", CO_BF16, false, false, false, 1},
        {"O0", "O0", CO_F32, false, false, false, 1},
        {"O1", "O1 fp16", CO_F16, false, false, true, 65536},
        {"O2", "O2 fp16", CO_F16, true, false, true, 65536},
        {"O3", "O3 fp16", CO_F16, true, true, false, 1},
        {"{level: O2, dtype: bf16}", "O2 bf16", CO_BF16, true, false, false, 1},
        {"{level: O1, loss_scale: 128}", "O1 fp16", CO_F16, false, false, false, 128},
        {"{level: bf16, loss_scale: dynamic}", "bf16", CO_BF16, false, false, true, 65536},
        {"{level: O3, keep_batchnorm_fp32: true}", "O3 fp16", CO_F16, true, false, false, 1},
        {"{level: O2, keep_batchnorm_fp32: false}", "O2 fp16", CO_F16, true, true, true, 65536},
        {"{level: O2, max_loss_scale: 1024}", "O2 fp16", CO_F16, true, false, true, 1024},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_precision p;

        if (read_precision(&p, cases[i].text) != CO_OK)
            fail_msg("%s: %s", cases[i].text, co_error_message());
        assert_string_equal(p.name, cases[i].name);
        assert_int_equal(p.plan.low, cases[i].low);
        assert_int_equal(p.plan.everything, cases[i].everything);
        assert_int_equal(p.plan.norm_params, cases[i].norm_params);
        assert_int_equal(p.dynamic, cases[i].dynamic);
        assert_true(p.loss_scale == cases[i].scale);
    }
}

static void precision_contradictory_keys_are_refused(void **state)
{
    const struct {
        const char *text, *message;
    } cases[] = {
        {"fp8", "precision: key 'level'"},
        {"{level: O0, dtype: bf16}", "O0 has no 16-bit type"},
        {"{level: bf16, dtype: fp16}", "the level bf16 says the type"},
        {"{level: O1, keep_batchnorm_fp32: true}", "only with O2 and O3"},
        {"{level: O2, loss_scale: much}", "got 'much'"},
        {"{level: O2, loss_scale: 0}", "a number above 0"},
        {"{level: O2, loss_scale: nan}", "a number above 0"},
        {"{level: O2, min_loss_scale: 8, max_loss_scale: 4}", "is above"},
        {"{level: O2, scale: 4}", "unknown key 'scale'"},
        {"{level: O2, rounding: nearest}", "rounding goes only with O3"},
        {"{level: bf16, rounding: stochastic}", "rounding goes only with O3"},
        {"{level: O3, rounding: up}", "precision: key 'rounding'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_precision p;

        assert_int_equal(read_precision(&p, cases[i].text), CO_E_USAGE);
        if (!strstr(co_error_message(), cases[i].message))
            fail_msg("%s: %s", cases[i].text, co_error_message());
    }
}

static void precision_rounding_key_is_followed(void **state)
{
    const struct {
        const char *text;
        co_rounding rounding;
    } cases[] = {
        {"O2", CO_ROUNDING_NONE},
        {"{level: O2, rounding: auto}", CO_ROUNDING_NONE},
        {"O3", CO_ROUNDING_NEAREST},
        {"{level: O3, dtype: bf16}", CO_ROUNDING_STOCHASTIC},
        {"{level: O3, dtype: bf16, rounding: nearest}", CO_ROUNDING_NEAREST},
        {"{level: O3, rounding: stochastic}", CO_ROUNDING_STOCHASTIC},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_precision p;

        assert_int_equal(read_precision(&p, cases[i].text), CO_OK);
        assert_int_equal(p.rounding, cases[i].rounding);
    }
}

/* ---- the scale ---- */

static co_status end_step(co_scaler *s, bool overflow)
{
    co_step_values values = {.loss_scale = s->state, .found_inf = overflow};

    co_step_do(&values, CO_STEP_END, &s->rules);
    return co_scaler_take(s, &values);
}

static void loss_scale_dynamic_follows_rules(void **state)
{
    co_precision p;
    co_scaler s;
    char line[128];

    (void)state;
    assert_int_equal(read_precision(&p, "{level: O2, loss_scale_window: 3, max_loss_scale: 131072, "
                                        "min_loss_scale: 32768}"),
                     CO_OK);
    co_scaler_init(&s, &p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(end_step(&s, false), CO_OK);
    assert_true(s.state.scale == 65536);
    assert_int_equal(end_step(&s, false), CO_OK);
    assert_true(s.state.scale == 131072);
    for (int i = 0; i < 3; i++)
        assert_int_equal(end_step(&s, false), CO_OK);
    assert_true(s.state.scale == 131072); /* the maximum */
    assert_int_equal(end_step(&s, false), CO_OK);
    assert_int_equal(end_step(&s, true), CO_OK);
    assert_true(s.overflow && s.state.scale == 65536 && s.state.clean == 0);
    assert_string_equal(co_scaler_message(line, sizeof(line), &s),
                        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
                        "65536.0");
    for (int i = 0; i < 2; i++)
        assert_int_equal(end_step(&s, true), CO_OK);
    assert_true(s.state.scale == 32768 && s.state.skipped == 3);
    for (int i = 3; i < 99; i++)
        assert_int_equal(end_step(&s, true), CO_OK);
    assert_int_equal(end_step(&s, false), CO_OK); /* fewer than a hundred in a row so far */
    for (int i = 0; i < 99; i++)
        assert_int_equal(end_step(&s, true), CO_OK);
    assert_int_equal(end_step(&s, true), CO_E_FAILED);
}

/* ---- overflow on one rank ---- */

#define RANKS  3
#define BATCH  12
#define SAMPLE 64

typedef struct job {
    const char *strategy, *precision;
    bool alone; /* only the affected rank skips */
} job;

static co_status step(bool *skipped, co_model *model, co_distributed *d, const co_comm *world,
                      uint64_t number, float factor)
{
    float input[BATCH / RANKS * SAMPLE];
    int32_t label[BATCH / RANKS];
    uint32_t sample[BATCH / RANKS];
    const co_batch batch = {.count = BATCH / RANKS,
                            .global = BATCH,
                            .local = BATCH / RANKS,
                            .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 8, 8}}, input},
                                      {CO_FIELD_LABEL, CO_I32, {0}, label}},
                            .sample = sample,
                            .step = number};
    co_result result;

    for (uint32_t i = 0; i < BATCH / RANKS; i++) {
        sample[i] = i * RANKS + (uint32_t)co_comm_rank(world);
        label[i] = (int32_t)(sample[i] % 10);
        for (uint32_t e = 0; e < SAMPLE; e++)
            input[i * SAMPLE + e] = factor * sinf((float)(sample[i] * SAMPLE + e));
    }
    CO_TRY(co_model_forward(&result, model, &batch));
    CO_TRY(co_distributed_backward(d, &batch, false));
    CO_TRY(co_distributed_step(d));
    *skipped = co_distributed_skipped(d);
    return CO_OK;
}

static co_status expect(bool so, const char *what)
{
    return so ? CO_OK : co_fail(CO_E_FAILED, "not so: %s", what);
}

/* In step 2, rank 1 gets inputs whose gradients overflow in 16 bits, which shows in the sums on all
   ranks. In step 3 only it knows of an overflow. */
static co_status overflow(co_comm *world, const job *j, co_model *model, co_distributed *d)
{
    const int rank = co_comm_rank(world);
    const size_t bytes = model->store->n * sizeof(float);
    float *before = malloc(bytes);
    bool skipped = false;
    co_status st = before ? CO_OK : CO_E_NOMEM;

    for (uint64_t i = 0; st == CO_OK && i < 5; i++) {
        const bool strikes = i == 2 || i == 3, here = rank == 1 || !j->alone;
        const bool struck = strikes && here;

        if (i == 3 && rank == 1)
            co_distributed_note_overflow(d);
        memcpy(before, model->store->param, bytes);
        st = step(&skipped, model, d, world, i, i == 2 && rank == 1 ? 1e6f : 1);
        if (st == CO_OK)
            st = expect(skipped == struck, "the step is skipped where it should be");
        if (st == CO_OK)
            st = expect((memcmp(before, model->store->param, bytes) == 0) == struck,
                        "weights move but in a skipped step");
        if (st == CO_OK)
            st = expect(co_distributed_loss_scale(d) == (i < 2 || !here ? 65536
                                                         : i == 2       ? 32768
                                                                        : 16384),
                        "the scale is halved");
    }
    free(before);
    return st;
}

static co_status overflow_rank(co_comm *world, void *arg)
{
    const job *j = arg;
    co_model *model = NULL;
    co_distributed *d = NULL;
    co_status st;

    CO_TRY(co_model_create(&model, &(co_model_options){.model = "{name: mlp, hidden: [20]}",
                                                       .precision = j->precision,
                                                       .sample = {3, {1, 8, 8}},
                                                       .classes = 10,
                                                       .seed = 1}));
    st = co_distributed_create(
        &d, &(co_distributed_options){.model = model,
                                      .comm = world,
                                      .optimizer = "{name: sgd, lr: 0.05, momentum: 0.9}",
                                      .strategy = j->strategy});
    if (st == CO_OK)
        st = overflow(world, j, model, d);
    if (st == CO_OK)
        st = co_distributed_finish(d);
    co_distributed_destroy(d);
    co_model_destroy(model);
    return st;
}

static void overflow_on_one_rank_skips_step_on_all(void **state)
{
    job jobs[] = {
        {"sync", "O2", false},
        {"sync", "O1", false},
        {"{name: sync, reduction: mean}", "{level: O3, loss_scale: dynamic}", false},
        {"{name: local, period: 8}", "O2", true},
        {"one-shot", "O2", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (co_launch(&(co_launch_options){.ranks = RANKS}, overflow_rank, &jobs[i]) != CO_OK)
            fail_msg("%s, %s: %s", jobs[i].strategy, jobs[i].precision, co_error_message());
}

/* ---- whole runs ---- */

static const char config[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 96}\n"
    "batch: 16\n"
    "max_steps: 12\n"
    "epochs: 2\n"
    "threads: 1\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "checkpoint: {every: 5 steps}\n";

static co_status train(co_train_summary *out, const char *name, int ranks, bool resume,
                       const char *precision, const char *more)
{
    const char *const set[] = {precision, more, NULL};
    char run_dir[256];
    const co_train_options options = {.config_text = config,
                                      .set = set,
                                      .ranks = ranks,
                                      .run_dir = run_dir,
                                      .quiet = true,
                                      .resume = resume};

    snprintf(run_dir, sizeof(run_dir), "%s/%s", folder, name);
    return co_train(out, &options);
}

/* With a window of 2 the scale at step 5 is not the initial one. */
static void loss_scale_after_resume_continues(void **state)
{
    static const char *const precision[] = {"precision={level: O2, loss_scale_window: 2}",
                                            "precision={level: O1, loss_scale_window: 1}",
                                            "precision=bf16"};
    static const char *const more[] = {"shards=auto", "shards=4"};
    co_train_summary whole, cut;

    (void)state;
    for (int i = 0; i < 6; i++) {
        char name[2][16];

        snprintf(name[0], sizeof(name[0]), "whole%d", i);
        snprintf(name[1], sizeof(name[1]), "cut%d", i);
        if (train(&whole, name[0], 2, false, precision[i / 2], more[i % 2]) != CO_OK)
            fail_msg("%s", co_error_message());
        if (i % 2) { /* with shards, on any number of ranks */
            assert_int_equal(train(&cut, name[1], 1, false, precision[i / 2], more[1]), CO_OK);
            assert_string_equal(cut.weights_sha256, whole.weights_sha256);
            continue;
        }
        assert_int_equal(train(NULL, name[1], 2, false, precision[i / 2], "max_steps=5"), CO_OK);
        if (train(&cut, name[1], 2, true, precision[i / 2], "shards=auto") != CO_OK)
            fail_msg("%s", co_error_message());
        assert_string_equal(cut.weights_sha256, whole.weights_sha256);
    }
}

/* SHA-256 of the weights in the last checkpoint of run `name`, after `steps` steps. */
static void checkpoint_sha256(char out[65], const char *name, int steps)
{
    co_named_tensor tensor[32];
    co_safetensors *file = NULL;
    char path[64];
    size_t n;

    snprintf(path, sizeof(path), "%s/checkpoints/step-%d/weights.safetensors", name, steps);
    if (co_safetensors_open(&file, folder_path(path)) != CO_OK)
        fail_msg("%s", co_error_message());
    n = co_safetensors_count(file);
    assert_int_in_range(n, 1, 32);
    for (size_t i = 0; i < n; i++)
        tensor[i] = *co_safetensors_tensor(file, i);
    co_safetensors_sha256(out, tensor, n);
    co_safetensors_close(file);
}

/* Skipped steps leave weights and running statistics unchanged; a run with no other steps fails. */
static void overflow_skipped_step_changes_nothing(void **state)
{
    static const char *const precision[] = {"precision={level: O2, loss_scale: 1e18}",
                                            "precision={level: O2, loss_scale: 1024}"};
    const co_status want[] = {CO_E_FAILED, CO_OK};

    (void)state;
    for (int i = 0; i < 2; i++) {
        char name[2][16], one[65], more[65];

        snprintf(name[0], sizeof(name[0]), "one%d", i);
        snprintf(name[1], sizeof(name[1]), "more%d", i);
        assert_int_equal(train(NULL, name[0], 2, false, precision[i], "max_steps=1"), want[i]);
        assert_int_equal(train(NULL, name[1], 2, false, precision[i], "max_steps=4"), want[i]);
        checkpoint_sha256(one, name[0], 1);
        checkpoint_sha256(more, name[1], 4);
        assert_int_equal(strcmp(one, more) == 0, i == 0);
    }
}

/* Batch norm parameters that are rounded to 16 bits make a difference in the weights. */
static void precision_keep_batchnorm_fp32_is_followed(void **state)
{
    static const char *const precision[] = {
        "precision=O2",
        "precision={level: O2, keep_batchnorm_fp32: true}",
        "precision={level: O2, keep_batchnorm_fp32: false}",
    };
    co_train_summary s[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "norm%d", i);
        assert_int_equal(train(&s[i], name, 1, false, precision[i], "batch=16"), CO_OK);
    }
    assert_string_equal(s[0].weights_sha256, s[1].weights_sha256);
    assert_string_not_equal(s[0].weights_sha256, s[2].weights_sha256);
}

/* What a rank has not sent yet has the scale of its step: with scales that are powers of two and
   change in every step, the bits do not change. */
static void compress_residual_follows_loss_scale(void **state)
{
    static const char *const strategies[] = {
        "strategy={name: sync, compress: bf16}",
        "strategy={name: sync, compress: {name: topk, ratio: 0.1, momentum: 0.5}}",
        "strategy={name: sync, compress: {name: powersgd, rank: 2, start: 3}}",
    };
    co_train_summary plain, scaled;

    (void)state;
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++) {
        char name[2][16];

        snprintf(name[0], sizeof(name[0]), "plain%zu", i);
        snprintf(name[1], sizeof(name[1]), "scaled%zu", i);
        assert_int_equal(train(&plain, name[0], 2, false, "precision=O0", strategies[i]), CO_OK);
        if (train(&scaled, name[1], 2, false,
                  "precision={level: O0, loss_scale: dynamic, loss_scale_window: 1, "
                  "max_loss_scale: 16777216}",
                  strategies[i]) != CO_OK)
            fail_msg("%s", co_error_message());
        assert_string_equal(scaled.weights_sha256, plain.weights_sha256);
    }
}

/* If gradients outlive their step, a loss scale is rejected, but half precision alone is not. */
static void precision_with_every_strategy_runs_or_is_refused(void **state)
{
    static const struct {
        const char *strategy;
        bool refused;
    } cases[] = {
        {"strategy=threads", false},
        {"strategy=hogwild", false},
        {"strategy=ssp", false},
        {"strategy={name: sync, compress: topk}", false},
        {"strategy={name: stale, k: 1}", true},
        {"strategy={name: stale, racy: true}", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[16];

        snprintf(name, sizeof(name), "s%zu", i);
        assert_int_equal(train(NULL, name, 2, false, "precision=O2", cases[i].strategy),
                         cases[i].refused ? CO_E_USAGE : CO_OK);
        if (cases[i].refused)
            assert_non_null(strstr(co_error_message(), "gradients outlive their step"));
        snprintf(name, sizeof(name), "b%zu", i);
        assert_int_equal(train(NULL, name, 2, false, "precision=bf16", cases[i].strategy), CO_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precision_levels_equal_apex),
        cmocka_unit_test(precision_contradictory_keys_are_refused),
        cmocka_unit_test(precision_rounding_key_is_followed),
        cmocka_unit_test(loss_scale_dynamic_follows_rules),
        cmocka_unit_test(overflow_on_one_rank_skips_step_on_all),
        cmocka_unit_test(loss_scale_after_resume_continues),
        cmocka_unit_test(overflow_skipped_step_changes_nothing),
        cmocka_unit_test(precision_keep_batchnorm_fp32_is_followed),
        cmocka_unit_test(compress_residual_follows_loss_scale),
        cmocka_unit_test(precision_with_every_strategy_runs_or_is_refused),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
