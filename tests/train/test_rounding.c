/*
 * test_rounding.c - weights kept only in 16 bits: their bits do not depend on who rounds them, and
 * stochastic rounding loses no updates.
 */
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
#include "optim/optim.h"
#include "step/distributed.h"

#define O3_BF16 "precision={level: O3, dtype: bf16}"
#define O3_FP16 "precision={level: O3, rounding: stochastic}"
#define NEAREST "precision={level: O3, dtype: bf16, rounding: nearest}"

static const char config[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 97}\n"
    "batch: 24\n"
    "epochs: 3\n"
    "threads: 1\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "checkpoint: {every: 5 steps}\n";

static int runs;

/* Returns the run's number. `more` ends with NULL. */
static int train(co_train_summary *out, int ranks, const char *const *more)
{
    char run_dir[256];
    const co_train_options options = {
        .config_text = config, .set = more, .ranks = ranks, .run_dir = run_dir, .quiet = true};

    snprintf(run_dir, sizeof(run_dir), "%s/run-%d", folder, runs);
    if (co_train(out, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    return runs++;
}

/* ---- the same bits ---- */

static void rounding_is_same_whoever_updates(void **state)
{
    static const struct {
        const char *precision, *way;
        int ranks;
    } cases[] = {
        {O3_BF16, "strategy={name: sync, update: whole}", 2},
        {O3_BF16, "strategy={name: sync, update: parts}", 3},
        {O3_BF16, "strategy={name: sync, update: parts, bucket_mib: 0.001}", 2},
        {O3_BF16, "strategy=threads", 3},
        {O3_BF16, "clip={norm: 1000}", 2},
        {O3_FP16, "strategy={name: sync, update: parts, bucket_mib: 0.001}", 3},
    };
    co_train_summary one, many;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *precision = cases[i].precision;

        if (i == 0 || strcmp(precision, cases[i - 1].precision) != 0)
            train(&one, 1, (const char *[]){precision, "shards=4", NULL});
        train(&many, cases[i].ranks, (const char *[]){precision, "shards=4", cases[i].way, NULL});
        if (strcmp(many.weights_sha256, one.weights_sha256) != 0)
            fail_msg("%s, %d ranks, %s", precision, cases[i].ranks, cases[i].way);
    }
}

/* Also on another number of ranks, with shards. */
static void rounding_after_resume_gives_same_bits(void **state)
{
    static const struct {
        const char *strategy, *shards;
        int again;
    } cases[] = {
        {"strategy=sync", "shards=auto", 2},
        {"strategy={name: sync, update: parts}", "shards=4", 3},
        {"strategy={name: local, period: 4}", "shards=auto", 2},
    };
    co_train_summary whole, cut;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *set[] = {O3_BF16, cases[i].strategy, cases[i].shards, "max_steps=7", NULL};
        char run_dir[256];
        const co_train_options again = {.config_text = config,
                                        .set = set,
                                        .ranks = cases[i].again,
                                        .run_dir = run_dir,
                                        .quiet = true,
                                        .resume = true};

        snprintf(run_dir, sizeof(run_dir), "%s/run-%d", folder, train(NULL, 2, set));
        set[3] = "max_steps=14";
        train(&whole, 2, set);
        if (co_train(&cut, &again) != CO_OK)
            fail_msg("%s", co_error_message());
        assert_int_equal(cut.steps, 14);
        assert_string_equal(cut.weights_sha256, whole.weights_sha256);
    }
}

/* Ensures that the tests above are meaningful. */
static void rounding_stochastic_differs_from_nearest(void **state)
{
    co_train_summary nearest, by_chance;

    (void)state;
    train(&by_chance, 1, (const char *[]){O3_BF16, NULL});
    train(&nearest, 1, (const char *[]){NEAREST, NULL});
    assert_string_not_equal(by_chance.weights_sha256, nearest.weights_sha256);
}

static void rounding_with_every_strategy_trains(void **state)
{
    static const char *const strategies[] = {
        "strategy=hogwild",
        "strategy=ssp",
        "strategy=one-shot",
        "strategy={name: local, period: 3, outer: {momentum: 0.5}}",
        "strategy={name: stale, k: 1}",
        "strategy={name: stale, racy: true}",
        "strategy={name: sync, compress: topk}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++)
        train(NULL, 2, (const char *[]){O3_BF16, strategies[i], "epochs=1", NULL});
}

/* ---- what it is for ---- */

/* Steps so small that rounding to nearest would discard nearly all of them. */
static void rounding_stochastic_keeps_small_updates(void **state)
{
    static const char *const precision[] = {"precision=O2", O3_BF16, NEAREST};
    double loss[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        co_train_summary s;

        train(&s, 1,
              (const char *[]){precision[i], "optimizer={name: sgd, lr: 0.0002}", "epochs=60",
                               "model={name: mlp, hidden: [37]}", NULL});
        loss[i] = s.train_loss;
    }
    print_message("loss with 32 bits %g, by chance %g, nearest %g\n", loss[0], loss[1], loss[2]);
    assert_true(fabs(loss[1] - loss[0]) < fabs(loss[2] - loss[0]) / 4);
}

/* ---- every optimizer ---- */

#define BATCH  4
#define SAMPLE 64

static void step(co_model *model, co_distributed *d, uint64_t number)
{
    float input[BATCH * SAMPLE];
    int32_t label[BATCH];
    uint32_t sample[BATCH];
    const co_batch batch = {.count = BATCH,
                            .global = BATCH,
                            .local = BATCH,
                            .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 8, 8}}, input},
                                      {CO_FIELD_LABEL, CO_I32, {0}, label}},
                            .sample = sample,
                            .step = number};
    co_result result;

    for (uint32_t i = 0; i < BATCH; i++) {
        sample[i] = i;
        label[i] = (int32_t)i;
        for (uint32_t e = 0; e < SAMPLE; e++)
            input[i * SAMPLE + e] = sinf((float)(i * SAMPLE + e));
    }
    assert_int_equal(co_model_forward(&result, model, &batch), CO_OK);
    assert_int_equal(co_distributed_backward(d, &batch, false), CO_OK);
    assert_int_equal(co_distributed_step(d), CO_OK);
}

/* One rank, without a launcher. */
static void try_optimizer(const char *name, const char *precision)
{
    co_model *model;
    co_distributed *d;
    co_comm *comm;

    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(
        co_model_create(&model, &(co_model_options){.model = "{name: mlp, hidden: [20]}",
                                                    .precision = precision,
                                                    .sample = {3, {1, 8, 8}},
                                                    .classes = 10,
                                                    .seed = 1}),
        CO_OK);
    assert_int_equal(
        co_distributed_create(
            &d, &(co_distributed_options){.model = model, .comm = comm, .optimizer = name}),
        CO_OK);
    for (uint64_t i = 0; i < 3; i++) {
        step(model, d, i);
        for (size_t e = 0; e < model->store->n; e++) {
            uint32_t bits;

            memcpy(&bits, &model->store->param[e], sizeof(bits));
            if (bits & 0xffff)
                fail_msg("%s, %s: weight %zu has more than 16 bits", name, precision, e);
        }
    }
    co_distributed_destroy(d);
    co_model_destroy(model);
    co_comm_destroy(comm);
}

static void rounding_with_every_optimizer_leaves_16_bits(void **state)
{
    (void)state;
    for (const co_optimizer_ops *const *ops = co_optimizers; *ops; ops++) {
        try_optimizer((*ops)->name, "{level: O3, dtype: bf16}");
        try_optimizer((*ops)->name, "{level: O3, dtype: bf16, rounding: nearest}");
    }
    try_optimizer("{name: sgd, momentum: 0.9, nesterov: true}", "{level: O3, dtype: bf16}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_is_same_whoever_updates),
        cmocka_unit_test(rounding_after_resume_gives_same_bits),
        cmocka_unit_test(rounding_stochastic_differs_from_nearest),
        cmocka_unit_test(rounding_with_every_strategy_trains),
        cmocka_unit_test(rounding_stochastic_keeps_small_updates),
        cmocka_unit_test(rounding_with_every_optimizer_leaves_16_bits),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
