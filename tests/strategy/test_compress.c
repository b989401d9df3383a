/*
 * test_compress.c - compressed gradients over shared memory, ranks as threads: what laws hold of
 * the sums, what travels, what becomes of numbers that are none.
 */
#include "strategy/strategy_test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm/shm.h"
#include "core/rng.h"

#define N         2000 /* of store */
#define STEPS     12
#define MAX_RANKS 4

/* With gaps, a vector, a scalar, and matrices that are wide and tall. */
static const co_store_tensor tensors[] = {
    {0, 10, 1},    {16, 10, 27},  {288, 40, 20}, {1088, 1, 1},
    {1104, 3, 50}, {1264, 40, 3}, {1392, 8, 75},
};
#define N_TENSORS (sizeof(tensors) / sizeof(tensors[0]))

typedef struct job {
    const char *config;
    int ranks;
    bool no_tensors; /* the store does not say what is in it */
    bool low_rank;   /* each matrix has rank 2 */
    int spoiled;     /* rank 1 has what is no number in this step; 0: never */
    int gives_up;    /* rank 1 leaves in the middle of this step; 0: never */
} job;

typedef struct rank {
    const job *job;
    co_shm *shm;
    int index;
    pthread_t thread;
    co_status status;
    char message[512];
    float sum[STEPS][N]; /* what the optimizer would get */
    float memory[N];     /* at the end */
    bool has_memory;
    uint64_t bytes_sent;
} rank;

static rank ranks[MAX_RANKS], others[MAX_RANKS];

/* Rank 2 has no samples in odd steps; gaps are 0. */
static void gradient(float *out, const job *j, int index, int step)
{
    memset(out, 0, N * sizeof(*out));
    if (index == 2 && step % 2 == 1)
        return;
    for (size_t t = 0; t < N_TENSORS; t++) {
        const co_store_tensor *tensor = &tensors[t];
        const co_rng rng = {.seed = (uint64_t)index,
                            .stream = CO_RNG_TEST,
                            .step = (uint32_t)step,
                            .item = (uint32_t)t};
        float *m = out + tensor->begin, u[2 * 40], v[2 * 75];

        co_rng_normal(m, &rng, 0, tensor->rows * tensor->cols);
        if (!j->low_rank || tensor->cols == 1)
            continue;
        co_rng_normal(v, &rng, 0, 2 * tensor->cols);
        for (size_t i = 0; i < 2 * tensor->rows; i++) /* of all ranks in one space */
            u[i] = (float)((int)(i * 7 + t) % 11 - 5);
        for (size_t i = 0; i < tensor->rows; i++)
            for (size_t k = 0; k < tensor->cols; k++)
                m[i * tensor->cols + k] = u[2 * i] * v[2 * k] + u[2 * i + 1] * v[2 * k + 1];
    }
    if (j->spoiled && j->spoiled == step && index == 1)
        for (size_t i = 0; i < 270; i++)
            out[16 + i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
}

/* In pieces of this rank's own. */
static co_status announce(const strategy_test *t, int index)
{
    const size_t piece = 160 * (size_t)(index + 1);

    for (size_t begin = 0; begin < N && index != 3; begin += piece)
        CO_TRY(co_strategy_grad_ready(t->strategy, begin, begin + piece < N ? begin + piece : N));
    return CO_OK;
}

static co_status rank_run(rank *r, strategy_test *t, co_comm *comm)
{
    const float *carry;
    uint64_t before;

    CO_TRY(co_comm_set_timeout(comm, 20000));
    CO_TRY(co_config_parse(&t->config, r->job->config, strlen(r->job->config), "bad.yaml"));
    CO_TRY(co_store_create(&t->store, N, 0));
    if (!r->job->no_tensors)
        CO_TRY(co_store_set_tensors(t->store, tensors, N_TENSORS));
    CO_TRY(co_strategy_create(&t->strategy, co_value_get(co_config_root(t->config), "strategy"),
                              t->config, comm, t->store, NULL));
    CO_TRY(co_strategy_start(t->strategy));
    before = co_comm_bytes_sent(comm);
    for (int step = 0; step < STEPS; step++) {
        gradient(t->store->grad, r->job, r->index, step);
        CO_TRY(announce(t, r->index));
        if (r->job->gives_up && step == r->job->gives_up && r->index == 1)
            return co_fail(CO_E_FAILED, "out of patience");
        CO_TRY(co_strategy_before_update(t->strategy, &(co_strategy_step){.step = (uint64_t)step}));
        memcpy(r->sum[step], t->store->grad, sizeof(r->sum[step]));
        CO_TRY(co_strategy_after_update(t->strategy, &(co_strategy_step){.step = (uint64_t)step}));
    }
    r->bytes_sent = co_comm_bytes_sent(comm) - before;
    carry = co_strategy_carry(t->strategy, 0);
    r->has_memory = carry && co_strategy_carry_is_share(t->strategy, 0);
    if (r->has_memory)
        memcpy(r->memory, carry, sizeof(r->memory));
    return CO_OK;
}

static void *rank_main(void *arg)
{
    rank *r = arg;
    strategy_test t = {NULL, NULL, NULL};
    co_comm *comm = NULL;

    r->status = co_shm_attach(&comm, r->shm, r->index);
    if (r->status == CO_OK)
        r->status = rank_run(r, &t, comm);
    if (r->status != CO_OK)
        (void)snprintf(r->message, sizeof(r->message), "%s", co_error_message());
    strategy_test_close(&t);
    co_comm_destroy(comm);
    return NULL;
}

static void run_anyway(rank *out, const job *j)
{
    co_shm *shm = NULL;

    assert_int_equal(co_shm_create(&shm, j->ranks), CO_OK);
    for (int i = 0; i < j->ranks; i++) {
        memset(&out[i], 0, sizeof(out[i]));
        out[i].job = j;
        out[i].shm = shm;
        out[i].index = i;
        assert_int_equal(pthread_create(&out[i].thread, NULL, rank_main, &out[i]), 0);
    }
    for (int i = 0; i < j->ranks; i++)
        pthread_join(out[i].thread, NULL);
    co_shm_destroy(shm);
}

/* To the bit, but for what kind of no number it is. */
static void assert_same(const float *a, const float *b, const job *j)
{
    for (size_t e = 0; e < N; e++)
        if (memcmp(a + e, b + e, sizeof(*a)) != 0 && !(isnan(a[e]) && isnan(b[e])))
            fail_msg("%s, %d ranks, element %zu: %.9g and %.9g", j->config, j->ranks, e,
                     (double)a[e], (double)b[e]);
}

/* All ranks have the same sums. */
static void run(rank *out, const job *j)
{
    run_anyway(out, j);
    for (int i = 0; i < j->ranks; i++) {
        if (out[i].status != CO_OK)
            fail_msg("%s, rank %d: %s", j->config, i, out[i].message);
        for (int step = 0; step < STEPS; step++)
            assert_same(out[i].sum[step], out[0].sum[step], j);
    }
}

static void assert_near(double got, double want, double most, const job *j, size_t e)
{
    if (!(fabs(got - want) <= most))
        fail_msg("%s, %d ranks, element %zu: %.9g, not %.9g", j->config, j->ranks, e, got, want);
}

static void all_elements_are_the_sum_of_sync(void **state)
{
    static const char *const configs[][2] = {
        {"strategy: {name: sync, compress: {name: topk, ratio: 1}}", "strategy: sync"},
        {"strategy: {name: sync, bucket_mib: 0.001, compress: {name: topk, ratio: 1, "
         "error_feedback: false}}",
         "strategy: sync"},
        {"strategy: {name: sync, reduction: mean, compress: {name: topk, ratio: 1}}",
         "strategy: {name: sync, reduction: mean}"},
        {"strategy: {name: sync, compress: {name: powersgd, min_compression: 1e9}}",
         "strategy: sync"},
        {"strategy: {name: sync, compress: {name: topk, start: 100}}", "strategy: sync"},
        {"strategy: {name: sync, compress: none}", "strategy: sync"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++)
        for (int n = 1; n <= MAX_RANKS; n++) {
            const job compressed = {.config = configs[c][0], .ranks = n};
            const job plain = {.config = configs[c][1], .ranks = n};

            run(ranks, &compressed);
            run(others, &plain);
            for (int step = 0; step < STEPS; step++)
                assert_same(ranks[0].sum[step], others[0].sum[step], &compressed);
        }
}

static const char *const lossy[] = {
    "strategy: {name: sync, compress: topk}",
    "strategy: {name: sync, bucket_mib: 0.001, compress: {name: topk, ratio: 0.05}}",
    "strategy: {name: sync, compress: {name: topk, start: 3}}",
    "strategy: {name: sync, compress: {name: powersgd, rank: 1}}",
    "strategy: {name: sync, bucket_mib: 0.001, compress: {name: powersgd, min_compression: 0.5}}",
    "strategy: {name: sync, compress: {name: powersgd, rank: 3, warm_start: false, start: 2}}",
};
#define N_LOSSY (sizeof(lossy) / sizeof(lossy[0]))

/* Of element e, over all steps: the gradients of all ranks, what was applied, what is kept. */
typedef struct account {
    double gradient[N], sent[N], kept[N];
} account;

static void take_account(account *out, const job *j)
{
    static float grad[N];

    memset(out, 0, sizeof(*out));
    for (int step = 0; step < STEPS; step++)
        for (size_t e = 0; e < N; e++)
            out->sent[e] += (double)ranks[0].sum[step][e];
    for (int i = 0; i < j->ranks; i++) {
        for (size_t e = 0; e < N; e++)
            out->kept[e] += (double)ranks[i].memory[e];
        for (int step = 0; step < STEPS; step++) {
            gradient(grad, j, i, step);
            for (size_t e = 0; e < N; e++)
                out->gradient[e] += (double)grad[e];
        }
    }
}

static void check_account(const char *config, int n)
{
    const job j = {.config = config, .ranks = n};
    static account all;
    double size = 0;

    run(ranks, &j);
    for (int i = 0; i < n; i++)
        assert_true(ranks[i].has_memory);
    take_account(&all, &j);
    for (size_t e = 0; e < N; e++) {
        assert_near(all.sent[e] + all.kept[e], all.gradient[e], 2e-4, &j, e);
        size += fabs(all.kept[e]);
    }
    assert_true(size > 1); /* something was left out */
}

static void what_is_sent_and_what_is_kept_is_the_gradient(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_LOSSY; c++)
        for (int n = 1; n <= MAX_RANKS; n++)
            check_account(lossy[c], n);
}

static void matrices_of_low_rank_lose_nothing(void **state)
{
    static const char *const configs[] = {
        "strategy: {name: sync, compress: {name: powersgd, rank: 2, min_compression: 0, "
        "error_feedback: false}}",
        "strategy: {name: sync, compress: {name: powersgd, rank: 2, min_compression: 0, "
        "warm_start: false, error_feedback: false}}",
        "strategy: {name: sync, bucket_mib: 0.001, compress: {name: powersgd, rank: 5, "
        "min_compression: 0}}",
        /* any matrix has full rank */
        "strategy: {name: sync, compress: {name: powersgd, rank: 64, min_compression: 0}}",
    };

    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++)
        for (int n = 1; n <= MAX_RANKS; n++) {
            const job j = {.config = configs[c], .ranks = n, .low_rank = c < 3};
            const job plain = {.config = "strategy: sync", .ranks = n, .low_rank = c < 3};

            run(ranks, &j);
            run(others, &plain);
            for (int step = 0; step < STEPS; step++)
                for (size_t e = 0; e < N; e++)
                    assert_near((double)ranks[0].sum[step][e], (double)others[0].sum[step][e], 1e-2,
                                &j, e);
        }
}

static int by_size(const void *a, const void *b)
{
    const float p = fabsf(*(const float *)a), q = fabsf(*(const float *)b);

    return (p < q) - (p > q);
}

static void topk_sends_the_largest(void **state)
{
    const job j = {.config = "strategy: {name: sync, compress: {name: topk, ratio: 0.05}}",
                   .ranks = 1};
    static float sorted[N];
    size_t sent = 0;

    (void)state;
    run(ranks, &j);
    gradient(sorted, &j, 0, 0);
    qsort(sorted, N, sizeof(float), by_size);
    for (size_t e = 0; e < N; e++) {
        if (ranks[0].sum[0][e] == 0)
            continue;
        sent++;
        assert_true(fabsf(ranks[0].sum[0][e]) >= fabsf(sorted[99]));
    }
    assert_int_equal(sent, 100);
}

/* Numbers of bytes as the documentation promises. */
static void what_travels(void **state)
{
    const job topk = {.config = lossy[0], .ranks = 2};
    const job power = {.config = "strategy: {name: sync, compress: {name: powersgd, rank: 1, "
                                 "min_compression: 0}}",
                       .ranks = 2};
    uint64_t elements = 0;

    (void)state;
    run(ranks, &topk);
    assert_int_equal(ranks[0].bytes_sent, STEPS * 20 * 8);
    run(ranks, &power);
    for (size_t t = 0; t < N_TENSORS; t++)
        elements += tensors[t].cols > 1 ? tensors[t].rows + tensors[t].cols : tensors[t].rows;
    assert_int_equal(ranks[0].bytes_sent, STEPS * elements * 4);
}

/* Whoever does not know where tensors lie sends them whole. */
static void without_tensors_powersgd_is_sync(void **state)
{
    const job j = {.config = lossy[3], .ranks = 2, .no_tensors = true};
    const job plain = {.config = "strategy: sync", .ranks = 2};

    (void)state;
    run(ranks, &j);
    run(others, &plain);
    assert_memory_equal(ranks[0].sum, others[0].sum, sizeof(ranks[0].sum));
}

static bool is_finite(const float *v, size_t n)
{
    bool finite = true;

    for (size_t i = 0; i < n; i++)
        finite = finite && isfinite(v[i]);
    return finite;
}

/* All ranks see in that step that something is wrong, and it is gone in the next. */
static void what_is_no_number_does_not_stay(void **state)
{
    static const char *const configs[] = {
        "strategy: {name: sync, compress: topk}",
        "strategy: {name: sync, compress: {name: topk, ratio: 0.5}}",
        "strategy: {name: sync, compress: {name: topk, error_feedback: false}}",
        "strategy: {name: sync, compress: powersgd}",
        "strategy: {name: sync, bucket_mib: 0.001, compress: {name: powersgd, min_compression: 0}}",
        "strategy: {name: sync, compress: {name: powersgd, warm_start: false, min_compression: "
        "0}}",
    };

    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++) {
        const job j = {.config = configs[c], .ranks = 3, .spoiled = 4};

        run(ranks, &j);
        for (int step = 0; step < STEPS; step++)
            if (is_finite(ranks[0].sum[step], N) != (step != 4))
                fail_msg("%s, step %d", configs[c], step);
        for (int i = 0; i < 3; i++)
            assert_true(is_finite(ranks[i].memory, N));
        /* What was spoiled is sent again. */
        assert_true(ranks[0].sum[STEPS - 1][16] != 0 || c < 3);
    }
}

static void a_rank_that_gives_up_ends_the_others(void **state)
{
    const job j = {.config = lossy[4], .ranks = 3, .gives_up = 2};

    (void)state;
    run_anyway(ranks, &j);
    assert_int_equal(ranks[1].status, CO_E_FAILED);
    assert_int_not_equal(ranks[0].status, CO_OK);
    assert_int_not_equal(ranks[2].status, CO_OK);
}

static void bad_configs_are_refused_at_their_place(void **state)
{
    (void)state;
    strategy_test_expect_refusal("strategy: {name: sync, compress: topkk}",
                                 "bad.yaml:1:34: unknown compressor 'topkk'; did you mean 'topk'?",
                                 N);
    strategy_test_expect_refusal(
        "strategy: {name: sync, compress: {name: topk, ratio: 0}}",
        "bad.yaml:1:54: compress topk: key 'ratio': expected a number from 1e-06 to 1, got '0'", N);
    strategy_test_expect_refusal("strategy: {name: sync, compress: {name: powersgd, rank: 65}}",
                                 "bad.yaml:1:57: compress powersgd: key 'rank': expected a whole "
                                 "number from 1 to 64, got '65'",
                                 N);
    strategy_test_expect_refusal("strategy: {name: sync, compress: {name: topk, ration: 0.1}}",
                                 "bad.yaml:1:55: compress topk: unknown key 'ration'; did you mean "
                                 "'ratio'?",
                                 N);
}

static void shards_are_refused(void **state)
{
    static const char text[] = "strategy: {name: sync, compress: topk}";
    co_comm *comm = NULL;
    co_tree *tree = NULL;
    strategy_test t = {NULL, NULL, NULL};

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(co_tree_create(&tree, 4, 1), CO_OK);
    assert_int_equal(co_config_parse(&t.config, text, sizeof(text) - 1, "bad.yaml"), CO_OK);
    assert_int_equal(co_store_create(&t.store, N, 0), CO_OK);
    assert_int_equal(co_strategy_create(&t.strategy,
                                        co_value_get(co_config_root(t.config), "strategy"),
                                        t.config, comm, t.store, tree),
                     CO_E_USAGE);
    assert_string_equal(co_error_message(),
                        "bad.yaml:1:34: compress: what ranks leave out depends on their number, of "
                        "which shards make the result independent; leave compress out, or let "
                        "shards be auto");
    strategy_test_close(&t);
    co_tree_destroy(tree);
    co_comm_destroy(comm);
}

static void every_failed_allocation_is_survived(void **state)
{
    co_comm *comm = NULL;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    strategy_test_fail_allocations(lossy[1], comm, N, 8);
    strategy_test_fail_allocations(lossy[4], comm, N, 8);
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_elements_are_the_sum_of_sync),
        cmocka_unit_test(what_is_sent_and_what_is_kept_is_the_gradient),
        cmocka_unit_test(matrices_of_low_rank_lose_nothing),
        cmocka_unit_test(topk_sends_the_largest),
        cmocka_unit_test(what_travels),
        cmocka_unit_test(without_tensors_powersgd_is_sync),
        cmocka_unit_test(what_is_no_number_does_not_stay),
        cmocka_unit_test(a_rank_that_gives_up_ends_the_others),
        cmocka_unit_test(bad_configs_are_refused_at_their_place),
        cmocka_unit_test(shards_are_refused),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
