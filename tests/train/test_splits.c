/*
 * test_splits.c - however the data is split, no rank waits for ever, and each step equals that of
 * one process on the same global batch: test_splits [SPLITS].
 *
 * Sizes, ranks, batches and partitions are random; ranks train for some steps from a random
 * position, also across the end of an epoch. Then one process repeats every step from the ranks'
 * weights.
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

#include "core/rng.h"
#include "emulated.h"
#include "model/model.h"
#include "tensor/store.h"
#include "waits.h"

#define SPLITS     50 /* default number */
#define EMULATED   250
#define MOST_RANKS 5
#define MOST_COUNT 80
#define STEPS      6
#define IMAGE      36 /* 6 x 6 */
#define TOLERANCE  1e-6

/* One training run: its plan, and what the ranks computed. */
typedef struct split {
    uint32_t number;
    co_dataset *data;
    co_sampler_options sampling;
    char partition[256];
    const char *strategy;
    uint64_t first_step;
    size_t n;       /* floats in the store */
    float *param;   /* (STEPS + 1, n): rank 0's weights before each step and at the end */
    float *grad;    /* (STEPS, n): the reduced gradient */
    uint64_t empty; /* steps in which some rank had no samples */
} split;

static int n_splits = SPLITS;

/* ---- random choices: functions of the split's number and a counter ---- */

typedef struct dice {
    uint32_t split, at;
} dice;

static uint32_t draw(dice *d, uint32_t n)
{
    const co_rng place = {.seed = 42, .stream = CO_RNG_TEST, .item = d->split};

    return co_rng_word(&place, d->at++) % n;
}

/* A text being built. */
typedef struct text {
    char *at;
    size_t left;
} text;

static void add(text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < t->left);
    t->at += n;
    t->left -= (size_t)n;
}

static void draw_ratios(text *out, dice *d, int ranks)
{
    int left = 1000;

    add(out, "ratios: [");
    for (int r = 0; r < ranks; r++) {
        const int share = r + 1 < ranks ? (int)draw(d, (uint32_t)left + 1) : left;

        left -= share;
        add(out, "%s%.3f", r ? ", " : "", share / 1000.0);
    }
    add(out, "], ");
}

/* Three labels, each for one rank or two in turn. */
static void draw_labels(text *out, dice *d, int ranks)
{
    uint32_t owner[3][2];

    for (int label = 0; label < 3; label++)
        for (int k = 0; k < 2; k++)
            owner[label][k] = draw(d, (uint32_t)ranks);
    add(out, "labels: [");
    for (uint32_t r = 0; r < (uint32_t)ranks; r++) {
        const char *comma = "";

        add(out, r ? ", [" : "[");
        for (int label = 0; label < 3; label++)
            if (owner[label][0] == r || owner[label][1] == r) {
                add(out, "%s%d", comma, label);
                comma = ", ";
            }
        add(out, "]");
    }
    add(out, "], ");
}

static void draw_partition(text *out, dice *d, int ranks)
{
    static const char *const kinds[] = {"random",      "random",    "contiguous", "contiguous",
                                        "interleaved", "dirichlet", "labels",     "global"};
    const uint32_t kind = draw(d, 8);

    if (kind == 7) {
        add(out, "global");
        return;
    }
    add(out, "{kind: %s, ", kinds[kind]);
    if (kind < 4)
        draw_ratios(out, d, ranks);
    else if (kind == 4)
        add(out, "pad: %s, shuffle: %s, ", draw(d, 2) ? "true" : "false",
            draw(d, 2) ? "set" : "part");
    else if (kind == 5)
        add(out, "alpha: 0.%u, ", 1 + draw(d, 9));
    else
        draw_labels(out, d, ranks);
    add(out, draw(d, 2) ? "batching: equal}" : "batching: proportional}");
}

/* Includes ratios of 100/0, few samples, batches of 1 and of the whole set. */
static void draw_split(split *s, uint32_t number)
{
    dice d = {number, 0};
    const int ranks = 1 + (int)draw(&d, MOST_RANKS);
    const uint32_t count = (uint32_t)ranks + draw(&d, MOST_COUNT - (uint32_t)ranks);
    uint32_t batch = 1 + draw(&d, draw(&d, 2) ? count + 4 : 12);
    char config[128];

    memset(s, 0, sizeof(*s));
    s->number = number;
    s->strategy = draw(&d, 2) ? "{name: sync, bucket_mib: 0.001}" : NULL;
    draw_partition(&(text){s->partition, sizeof(s->partition)}, &d, ranks);
    if (strstr(s->partition, "equal") && batch < (uint32_t)ranks)
        batch = (uint32_t)ranks; /* smaller batches are rejected */
    snprintf(config, sizeof(config),
             "{name: synthetic, shape: [1, 6, 6], classes: 3, samples: %u, noise: 0.9}", count);
    assert_int_equal(co_dataset_open(&s->data, config, CO_SPLIT_TRAIN), CO_OK);
    s->sampling = (co_sampler_options){.count = count,
                                       .batch = batch,
                                       .ranks = ranks,
                                       .seed = number,
                                       .partition = s->partition,
                                       .dataset = s->data};
    s->first_step = draw(&d, 1000);
}

/* ---- training ---- */

static co_status make_model(co_model **out)
{
    return co_model_create(
        out, &(co_model_options){.model = "[conv2d: {out: 4, kernel: 3}, relu, flatten, "
                                          "linear: 12, relu, linear: 3]",
                                 .backend = "ref",
                                 .sample = {3, {1, 6, 6}},
                                 .classes = 3,
                                 .seed = 1});
}

static co_status make_optimizer(co_distributed **out, co_model *model, co_comm *comm,
                                const char *strategy)
{
    return co_distributed_create(out, &(co_distributed_options){.model = model,
                                                                .comm = comm,
                                                                .optimizer = "{name: sgd, lr: 0.1}",
                                                                .strategy = strategy});
}

static co_status step(co_model *model, co_distributed *optimizer, const co_batch *batch)
{
    co_result result;

    CO_TRY(co_model_forward(&result, model, batch));
    CO_TRY(co_distributed_backward(optimizer, batch, false));
    return co_distributed_step(optimizer);
}

/* Keep rank 0's weights after a step; those of the others must have the same bits. */
static co_status keep_step(split *s, co_comm *comm, const co_store *store, size_t k)
{
    float *param = s->param + (k + 1) * s->n;

    if (co_comm_rank(comm) == 0) {
        memcpy(param, store->param, s->n * sizeof(*param));
        memcpy(s->grad + k * s->n, store->grad, s->n * sizeof(*param));
    }
    CO_TRY(co_comm_barrier(comm));
    if (memcmp(param, store->param, s->n * sizeof(*param)) != 0)
        return co_fail(CO_E_FAILED, "step %zu: rank %d has other weights than rank 0", k,
                       co_comm_rank(comm));
    return CO_OK;
}

static co_status train_steps(split *s, co_comm *comm, co_loader *loader, co_model *model,
                             co_distributed *optimizer)
{
    if (co_comm_rank(comm) == 0)
        memcpy(s->param, model->store->param, s->n * sizeof(float));
    for (size_t k = 0; k < STEPS; k++) {
        co_batch batch;

        CO_TRY(co_loader_next(&batch, loader));
        CO_TRY(step(model, optimizer, &batch));
        CO_TRY(keep_step(s, comm, model->store, k));
    }
    return CO_OK;
}

/* Each rank makes its own plan of the epoch. */
static co_status train_rank(co_comm *comm, void *arg)
{
    split *s = arg;
    co_sampler *sampler = NULL;
    co_loader *loader = NULL;
    co_model *model = NULL;
    co_distributed *optimizer = NULL;
    co_status st = co_comm_set_timeout(comm, WAITS_MS);

    if (st == CO_OK)
        st = co_sampler_create(&sampler, &s->sampling);
    if (st == CO_OK)
        st = co_loader_create(
            &loader, &(co_loader_options){.dataset = s->data,
                                          .sampler = sampler,
                                          .rank = co_comm_rank(comm),
                                          .first_step = s->first_step % co_sampler_steps(sampler)});
    if (st == CO_OK)
        st = make_model(&model);
    if (st == CO_OK)
        st = make_optimizer(&optimizer, model, comm, s->strategy);
    if (st == CO_OK)
        st = train_steps(s, comm, loader, model, optimizer);
    co_distributed_destroy(optimizer);
    co_model_destroy(model);
    co_loader_destroy(loader);
    co_sampler_destroy(sampler);
    return st;
}

/* ---- the same steps in one process ---- */

typedef struct one {
    co_comm *comm;
    co_model *model;
    co_distributed *optimizer;
    float input[2 * MOST_COUNT * IMAGE];
    int32_t label[2 * MOST_COUNT];
    uint32_t sample[2 * MOST_COUNT];
} one;

/* All ranks' samples of a step. */
static co_batch gather(one *o, split *s, co_sampler *sampler, uint64_t epoch, uint64_t at)
{
    uint64_t n = 0;

    for (int r = 0; r < s->sampling.ranks; r++) {
        assert_int_equal(co_sampler_indices(sampler, o->sample + n, epoch, at, r), CO_OK);
        n += co_sampler_local(sampler, at, r);
        s->empty += co_sampler_local(sampler, at, r) == 0;
    }
    assert_int_equal(n, co_sampler_global(sampler, at));
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(co_dataset_read(s->data, o->input + i * IMAGE, o->sample[i]), CO_OK);
        o->label[i] = co_dataset_label(s->data, o->sample[i]);
    }
    return (co_batch){.count = n,
                      .global = n,
                      .local = n,
                      .sample = o->sample,
                      .field = {{CO_FIELD_INPUT, CO_F32, *co_dataset_shape(s->data), o->input},
                                {CO_FIELD_LABEL, CO_I32, {0}, o->label}}};
}

/* Norm of the difference relative to that of b. */
static double distance(const float *a, const float *b, size_t n)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

/* Maximum distance of any step's gradient or weights. */
static double compare(one *o, split *s)
{
    co_store *store = o->model->store;
    co_sampler *sampler;
    double worst = 0;
    uint64_t at;

    assert_int_equal(co_sampler_create(&sampler, &s->sampling), CO_OK);
    at = s->first_step % co_sampler_steps(sampler);
    for (size_t k = 0; k < STEPS; k++, at++) {
        const uint64_t steps = co_sampler_steps(sampler);
        const co_batch batch = gather(o, s, sampler, at / steps, at % steps);

        memcpy(store->param, s->param + k * s->n, s->n * sizeof(float));
        assert_int_equal(step(o->model, o->optimizer, &batch), CO_OK);
        worst = fmax(worst, distance(s->grad + k * s->n, store->grad, s->n));
        worst = fmax(worst, distance(s->param + (k + 1) * s->n, store->param, s->n));
    }
    co_sampler_destroy(sampler);
    return worst;
}

static void train_split(split *s, size_t n)
{
    s->n = n;
    s->param = calloc((STEPS + 1) * n, sizeof(float));
    s->grad = calloc(STEPS * n, sizeof(float));
    assert_non_null(s->param);
    assert_non_null(s->grad);
    if (co_launch(&(co_launch_options){.ranks = s->sampling.ranks, .threads = true}, train_rank,
                  s) != CO_OK)
        fail_msg("split %u: %s, %d ranks, batch %d of %d: %s", s->number, s->partition,
                 s->sampling.ranks, (int)s->sampling.batch, (int)s->sampling.count,
                 co_error_message());
}

static void train_any_partition_equals_one_process(void **state)
{
    static one o;
    uint64_t empty = 0;
    double worst = 0;

    (void)state;
    assert_int_equal(co_comm_create_self(&o.comm), CO_OK);
    assert_int_equal(make_model(&o.model), CO_OK);
    assert_int_equal(make_optimizer(&o.optimizer, o.model, o.comm, NULL), CO_OK);
    for (int i = 0; i < n_splits; i++) {
        split s;
        double far;

        draw_split(&s, (uint32_t)i);
        train_split(&s, o.model->store->n);
        far = compare(&o, &s);
        if (!(far <= TOLERANCE))
            fail_msg("split %u: %s, %d ranks, batch %d of %d: off by %.2g", s.number, s.partition,
                     s.sampling.ranks, (int)s.sampling.batch, (int)s.sampling.count, far);
        worst = fmax(worst, far);
        empty += s.empty;
        free(s.grad);
        free(s.param);
        co_dataset_destroy(s.data);
    }
    print_message("%d splits, %d times a rank without samples: off by %.2g at most\n", n_splits,
                  (int)empty, worst);
    assert_true(empty > (uint64_t)n_splits / 4);
    co_distributed_destroy(o.optimizer);
    co_model_destroy(o.model);
    co_comm_destroy(o.comm);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_any_partition_equals_one_process),
    };

    if (argc > 1)
        n_splits = atoi(argv[1]);
    if (is_emulated() && n_splits > EMULATED) { /* it passed 408 within 12 GiB of addresses */
        print_message("skipped: splits from %d: qemu keeps notes on all pages that ranks have ever "
                      "shared\n",
                      EMULATED);
        n_splits = EMULATED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
