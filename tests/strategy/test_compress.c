/*
 * test_compress.c - compressed gradients over shared memory, ranks as threads: properties of the
 * sums, and bytes sent.
 */
#include "strategy/compress_test.h"

static rank others[MAX_RANKS];

static void compress_topk_of_all_elements_equals_sync(void **state)
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

/* Totals per element over all steps: gradients of all ranks, what was applied, what is kept. */
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
    assert_true(size > 0.01); /* something was left out */
}

static void compress_sent_plus_residual_is_gradient(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_LOSSY; c++)
        for (int n = 1; n <= MAX_RANKS; n++)
            check_account(lossy[c], n);
}

static void powersgd_low_rank_gradient_is_exact(void **state)
{
    static const char *const configs[] = {
        "strategy: {name: sync, compress: {name: powersgd, rank: 2, min_compression: 0, "
        "error_feedback: false}}",
        "strategy: {name: sync, compress: {name: powersgd, rank: 2, min_compression: 0, "
        "warm_start: false, error_feedback: false}}",
        "strategy: {name: sync, bucket_mib: 0.001, compress: {name: powersgd, rank: 5, "
        "min_compression: 0}}",
        /* no matrix has a higher rank */
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

/* The residual makes up for rounding: sums over steps stay within one rounding error. */
static void compress_half_rounding_errors_stay_bounded(void **state)
{
    static const char *const configs[] = {"strategy: {name: sync, compress: bf16}",
                                          "strategy: {name: sync, compress: fp16}"};

    (void)state;
    for (size_t c = 0; c < 2; c++)
        for (int n = 1; n <= MAX_RANKS; n++) {
            const job j = {.config = configs[c], .ranks = n};
            static account all;

            run(ranks, &j);
            take_account(&all, &j);
            for (size_t e = 0; e < N; e++) {
                /* of the last rounding only, of each rank and of the sum */
                assert_near(all.sent[e], all.gradient[e], c == 0 ? 0.1 : 0.0125, &j, e);
                assert_near(all.kept[e], 0, c == 0 ? 0.1 : 0.0125, &j, e);
            }
        }
}

/* What exceeds the type's largest number is sent in later steps. */
static void compress_half_overflow_is_sent_over_steps(void **state)
{
    static const char text[] = "strategy: {name: sync, compress: fp16}";
    co_comm *comm = NULL;
    strategy_test t;
    float sum = 0;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(strategy_test_open(&t, text, comm, 16, 0), CO_OK);
    for (uint64_t step = 0; step < 4; step++) {
        t.store->grad[3] = step == 0 ? -200000.0F : 0;
        assert_int_equal(co_strategy_before_update(t.strategy, &(co_strategy_step){.step = step}),
                         CO_OK);
        assert_true(t.store->grad[3] == (step < 3 ? -65504.0F : -200000.0F + 3 * 65504.0F));
        sum += t.store->grad[3];
    }
    assert_true(sum == -200000.0F);
    strategy_test_close(&t);
    co_comm_destroy(comm);
}

static int by_size(const void *a, const void *b)
{
    const float p = fabsf(*(const float *)a), q = fabsf(*(const float *)b);

    return (p < q) - (p > q);
}

static void topk_sends_largest_elements(void **state)
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

/* Compared with a plain loop that sorts the elements. */
static void topk_momentum_equals_plain_loop(void **state)
{
    const job j = {.config = "strategy: {name: sync, compress: {name: topk, ratio: 0.05, "
                             "momentum: 0.75}}",
                   .ranks = 1};
    static float u[N], e[N], grad[N], sorted[N];

    (void)state;
    run(ranks, &j);
    for (int step = 0; step < STEPS; step++) {
        gradient(grad, &j, 0, step);
        for (size_t i = 0; i < N; i++) {
            u[i] = 0.75F * u[i] + grad[i];
            sorted[i] = e[i] += u[i];
        }
        qsort(sorted, N, sizeof(float), by_size);
        for (size_t i = 0; i < N; i++) {
            const bool sent = fabsf(e[i]) >= fabsf(sorted[99]);

            assert_true(ranks[0].sum[step][i] == (sent ? e[i] : 0));
            e[i] = sent ? 0 : e[i];
            u[i] = sent ? 0 : u[i];
        }
    }
    assert_memory_equal(ranks[0].memory, e, sizeof(e));
}

/* Numbers of bytes as documented. */
static void compress_bytes_sent_equal_documentation(void **state)
{
    const job topk = {.config = lossy[2], .ranks = 2};
    const job power = {.config = "strategy: {name: sync, compress: {name: powersgd, rank: 1, "
                                 "min_compression: 0}}",
                       .ranks = 2};
    const job half = {.config = lossy[0], .ranks = 2};
    uint64_t elements = 0;

    (void)state;
    run(ranks, &topk);
    assert_int_equal(ranks[0].bytes_sent, STEPS * 20 * 8);
    run(ranks, &half);
    assert_int_equal(ranks[0].bytes_sent, STEPS * N * 2);
    run(ranks, &power);
    for (size_t t = 0; t < N_TENSORS; t++)
        elements += tensors[t].cols > 1 ? tensors[t].rows + tensors[t].cols : tensors[t].rows;
    assert_int_equal(ranks[0].bytes_sent, STEPS * elements * 4);
}

/* Without a list of tensors the gradient is sent uncompressed. */
static void powersgd_without_tensors_equals_sync(void **state)
{
    const job j = {.config = lossy[5], .ranks = 2, .no_tensors = true};
    const job plain = {.config = "strategy: sync", .ranks = 2};

    (void)state;
    run(ranks, &j);
    run(others, &plain);
    assert_memory_equal(ranks[0].sum, others[0].sum, sizeof(ranks[0].sum));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compress_topk_of_all_elements_equals_sync),
        cmocka_unit_test(compress_sent_plus_residual_is_gradient),
        cmocka_unit_test(powersgd_low_rank_gradient_is_exact),
        cmocka_unit_test(compress_half_rounding_errors_stay_bounded),
        cmocka_unit_test(compress_half_overflow_is_sent_over_steps),
        cmocka_unit_test(topk_sends_largest_elements),
        cmocka_unit_test(topk_momentum_equals_plain_loop),
        cmocka_unit_test(compress_bytes_sent_equal_documentation),
        cmocka_unit_test(powersgd_without_tensors_equals_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
