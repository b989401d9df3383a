/* test_partition.c - which samples each partition assigns to which rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "data/files.h"
#include "data/partition.h"
#include "data/python_random.h"

#define MOST_RANKS 16

/* The label of sample i is i mod the number of classes. */
static co_dataset *few, *many;

static int open_data(void **state)
{
    if (co_dataset_open(&few, "{name: synthetic, shape: [1, 1, 1], classes: 5, samples: 101}",
                        CO_SPLIT_TRAIN) != CO_OK ||
        co_dataset_open(&many, "{name: synthetic, shape: [1, 1, 1], classes: 100, samples: 100000}",
                        CO_SPLIT_TRAIN) != CO_OK)
        return -1;
    return files_setup(state);
}

static int close_data(void **state)
{
    co_dataset_destroy(many);
    co_dataset_destroy(few);
    return files_teardown(state);
}

static const co_dataset *data_of(uint64_t count)
{
    return count > 101 ? many : few;
}

/* Valid until the next call. */
static co_parts *cut_seeded(const char *partition, uint64_t count, int ranks, uint64_t seed)
{
    static uint32_t order[100000 + MOST_RANKS];
    static uint64_t size[MOST_RANKS];
    static co_parts parts;
    const co_sampler_options o = {.count = count,
                                  .batch = 10,
                                  .ranks = ranks,
                                  .seed = seed,
                                  .partition = partition,
                                  .dataset = data_of(count)};

    parts = (co_parts){.order = order, .size = size};
    if (co_partition_cut(&parts, &o) != CO_OK)
        fail_msg("%s: %s", partition, co_error_message());
    assert_true(parts.fixed);
    return &parts;
}

static co_parts *cut(const char *partition, uint64_t count, int ranks)
{
    return cut_seeded(partition, count, ranks, 1234);
}

/* Checks the sizes and the order of the parts of `ranks` ranks. */
static void assert_parts(const co_parts *parts, int ranks, const uint64_t *size,
                         const uint32_t *order)
{
    uint64_t n = 0;

    for (int r = 0; r < ranks; r++) {
        assert_int_equal(parts->size[r], size[r]);
        n += size[r];
    }
    assert_memory_equal(parts->order, order, n * sizeof(*order));
}

static uint64_t checksum(const uint32_t *order, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += (uint64_t)(i + 1) * order[i];
    return sum;
}

/* From CPython: x = list(range(n)); random.Random(seed).shuffle(x); the sum is of (i + 1) * x[i].
   The complete orders of the first three were compared with the tutorial's by SHA-1. */
static void partition_shuffle_equals_python(void **state)
{
    static const struct {
        uint64_t seed;
        uint32_t n, first[8];
        uint64_t sum;
    } cases[] = {
        {1234, 60000, {33712, 36159, 45528, 25849, 53734, 40353, 32418, 55928}, 53958522181692},
        {1234, 50000, {4564, 15975, 32972, 20607, 32086, 26368, 5375, 37584}, 31253697776602},
        {1234, 10000, {1354, 2616, 8657, 3464, 4887, 5252, 9250, 2519}, 250226084973},
        {0, 10, {7, 8, 1, 5, 3, 4, 2, 0}, 240},
        {1, 1000, {852, 836, 280, 575, 208, 609, 932, 725}, 250257095},
        {((uint64_t)1 << 40) + 5, 1000, {207, 690, 542, 290, 700, 351, 177, 707}, 246511351},
        {(uint64_t)1 << 32, 7, {5, 1, 4, 6, 3, 2, 0, 0}, 70},
        {7, 2, {0, 1}, 2},
        {1234, 1, {0}, 0},
    };
    uint32_t *order = calloc(60000, sizeof(*order));

    (void)state;
    assert_non_null(order);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint32_t n = cases[i].n;

        co_python_shuffle(order, n, cases[i].seed);
        assert_memory_equal(order, cases[i].first, (n < 8 ? n : 8) * sizeof(*order));
        assert_int_equal(checksum(order, n), cases[i].sum);
    }
    free(order);
}

/* As in the tutorial: consecutive parts of int(ratio * n) of the shuffled set. */
static void partition_random_equals_tutorial(void **state)
{
    static const struct {
        const char *partition;
        int ranks;
        uint64_t size[3], tutorial[3];
    } cases[] = {
        {"random", 2, {51, 50}, {50, 50}}, /* equal remainders: to the first */
        {"{kind: random, ratios: [0.7, 0.3]}", 2, {71, 30}, {70, 30}},
        {"{kind: random, ratios: [0.3, 0.7]}", 2, {30, 71}, {30, 70}},
        {"{kind: random, ratios: [0.5, 0.25, 0.25]}", 3, {51, 25, 25}, {50, 25, 25}},
    };
    uint32_t shuffled[101];

    (void)state;
    co_python_shuffle(shuffled, 101, 1234);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t begin = 0, tutorial = 0;
        co_parts *parts = cut(cases[i].partition, 101, cases[i].ranks);

        for (int r = 0; r < cases[i].ranks; r++) {
            assert_int_equal(parts->size[r], cases[i].size[r]);
            assert_memory_equal(parts->order + begin, shuffled + tutorial,
                                cases[i].tutorial[r] * sizeof(*shuffled));
            begin += parts->size[r];
            tutorial += cases[i].tutorial[r];
        }
        assert_int_equal(begin, 101);
    }
}

static void partition_contiguous_parts_are_consecutive(void **state)
{
    static const struct {
        const char *partition;
        uint64_t count;
        int ranks;
        uint64_t size[4];
    } cases[] = {
        {"contiguous", 10, 2, {5, 5}},
        {"contiguous", 10, 3, {4, 3, 3}},
        {"{kind: contiguous, ratios: [0.7, 0.3]}", 10, 2, {7, 3}},
        {"{kind: contiguous, ratios: [0, 1]}", 10, 2, {0, 10}},
        {"{kind: contiguous, ratios: [0.6, 0.3, 0.1]}", 11, 3, {7, 3, 1}},
        {"{kind: contiguous, ratios: [0.5, 0, 0.5, 0]}", 9, 4, {5, 0, 4, 0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static const uint32_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

        assert_parts(cut(cases[i].partition, cases[i].count, cases[i].ranks), cases[i].ranks,
                     cases[i].size, order);
    }
}

/* From PyTorch: DistributedSampler(range(count), ranks, rank, shuffle=False), rank after rank. */
static void partition_padded_equals_distributed_sampler(void **state)
{
    static const struct {
        uint64_t count;
        int ranks;
        uint64_t size[8];
        uint32_t order[12];
    } cases[] = {
        {10, 4, {3, 3, 3, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 0, 3, 7, 1}},
        {10, 3, {4, 4, 4}, {0, 3, 6, 9, 1, 4, 7, 0, 2, 5, 8, 1}},
        {12, 4, {3, 3, 3, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
        {3, 8, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 2, 0, 1, 2, 0, 1}},
        {7, 1, {7}, {0, 1, 2, 3, 4, 5, 6}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_parts(cut("{kind: interleaved, pad: true}", cases[i].count, cases[i].ranks),
                     cases[i].ranks, cases[i].size, cases[i].order);
}

static void partition_unpadded_repeats_no_sample(void **state)
{
    static const uint64_t size[] = {3, 3, 2, 2};
    static const uint32_t order[] = {0, 4, 8, 1, 5, 9, 2, 6, 3, 7};

    (void)state;
    assert_parts(cut("interleaved", 10, 4), 4, size, order);
    assert_parts(cut("{kind: interleaved, pad: false}", 10, 4), 4, size, order);
}

static void partition_labels_gives_each_rank_its_labels(void **state)
{
    static const uint64_t halves[] = {4, 6}, shared[] = {4, 1, 5}, none[] = {0, 10, 0};
    static const uint32_t by_half[] = {0, 1, 5, 6, 2, 3, 4, 7, 8, 9};
    static const uint32_t in_turn[] = {0, 1, 3, 6, 8, 2, 4, 5, 7, 9};
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

    (void)state;
    assert_parts(cut("{kind: labels, labels: [[0, 1], [2, 3, 4]]}", 10, 2), 2, halves, by_half);
    assert_parts(cut("{kind: labels, labels: [[3, 1, 0], 3, [2, 4, 0]]}", 10, 3), 3, shared,
                 in_turn);
    assert_parts(cut("{kind: labels, labels: [[], [0, 1, 2, 3, 4], []]}", 10, 3), 3, none, all);
}

/* Number of samples by label and rank. */
static void count_labels(uint64_t out[][MOST_RANKS], const co_parts *parts, int ranks)
{
    const uint32_t *sample = parts->order;

    for (int r = 0; r < ranks; r++)
        for (uint64_t i = 0; i < parts->size[r]; i++)
            out[co_dataset_label(many, *sample++)][r]++;
}

/* Means over labels of each rank's share, and of its squared distance from 1 / ranks. */
static void measure_shares(double *mean, double *square, const char *partition, int ranks,
                           int seeds)
{
    for (int seed = 0; seed < seeds; seed++) {
        uint64_t count[100][MOST_RANKS] = {{0}};

        count_labels(count, cut_seeded(partition, 100000, ranks, (uint64_t)seed), ranks);
        for (int i = 0; i < 100 * ranks; i++) {
            const uint64_t samples = count[i / ranks][i % ranks];
            const double share = (double)samples / 1000;
            const double off = share - 1.0 / ranks;

            mean[i % ranks] += share / (100 * seeds);
            *square += off * off / (100 * seeds * ranks);
        }
    }
}

/* A share has a Beta distribution with mean 1 / N and variance (1 - 1 / N) / N / (N alpha + 1). */
static void partition_dirichlet_shares_have_its_moments(void **state)
{
    static const double alphas[] = {0.05, 0.5, 1, 10};

    (void)state;
    for (size_t a = 0; a < 4; a++) {
        const double variance = 0.25 * 0.75 / (4 * alphas[a] + 1);
        double mean[4] = {0}, square = 0;
        char partition[64];

        snprintf(partition, sizeof(partition), "{kind: dirichlet, alpha: %g}", alphas[a]);
        measure_shares(mean, &square, partition, 4, 20);
        for (int r = 0; r < 4; r++)
            assert_true(fabs(mean[r] - 0.25) < 5 * sqrt(variance / 2000));
        assert_true(fabs(square / variance - 1) < 0.15);
    }
}

static void partition_dirichlet_alpha_sets_skew(void **state)
{
    uint64_t count[100][MOST_RANKS] = {{0}};
    uint64_t most = 0;

    (void)state;
    count_labels(count, cut("{kind: dirichlet, alpha: 1000000, seed: 3}", 100000, 8), 8);
    for (int label = 0; label < 100; label++)
        for (int r = 0; r < 8; r++)
            assert_int_in_range(count[label][r], 120, 130);
    memset(count, 0, sizeof(count));
    count_labels(count, cut("{kind: dirichlet, alpha: 0.001, seed: 3}", 100000, 8), 8);
    for (int label = 0; label < 100; label++)
        for (int r = 0; r < 8; r++)
            most += count[label][r] > 950;
    assert_true(most > 90); /* of 100 labels */
}

static void partition_dirichlet_depends_on_its_seed_alone(void **state)
{
    static uint32_t first[100000];

    (void)state;
    memcpy(first, cut_seeded("{kind: dirichlet, seed: 7}", 100000, 3, 1)->order, sizeof(first));
    assert_memory_equal(cut_seeded("{kind: dirichlet, seed: 7}", 100000, 3, 2)->order, first,
                        sizeof(first));
    assert_memory_equal(cut_seeded("dirichlet", 100000, 3, 7)->order, first, sizeof(first));
    assert_memory_not_equal(cut_seeded("dirichlet", 100000, 3, 8)->order, first, sizeof(first));
}

static const char *file_partition(const char *text, size_t n)
{
    static char partition[512];

    files_write("parts.txt", text, n);
    snprintf(partition, sizeof(partition), "{kind: file, path: %s}", files_path("parts.txt"));
    return partition;
}

static void partition_file_lists_samples(void **state)
{
    static const struct {
        const char *text;
        uint64_t size[3];
        uint32_t order[10];
    } cases[] = {
        {"0 1 2\n3 4\n5 6 7 8 9\n", {3, 2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
        {"9,8,  7\n\n0-5 6", {3, 0, 7}, {9, 8, 7, 0, 1, 2, 3, 4, 5, 6}},
        {"# two ranks have nothing\r\n\r\n# really\r\n4\t2,\r\n \r\n", {0, 2, 0}, {4, 2}},
        {"0000000009\n0-0,\n,1", {1, 1, 1}, {9, 0, 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_parts(cut(file_partition(cases[i].text, strlen(cases[i].text)), 10, 3), 3,
                     cases[i].size, cases[i].order);
}

static void assert_refused(const char *partition, int ranks, co_status status, const char *words)
{
    static uint32_t order[10 + MOST_RANKS];
    static uint64_t size[MOST_RANKS];
    co_parts parts = {.order = order, .size = size};
    const co_sampler_options o = {
        .count = 10, .batch = 10, .ranks = ranks, .partition = partition, .dataset = few};

    if (co_partition_cut(&parts, &o) != status)
        fail_msg("%s: wrong status; %s", partition, co_error_message());
    if (!strstr(co_error_message(), words))
        fail_msg("%s: '%s' does not say '%s'", partition, co_error_message(), words);
}

static void partition_bad_file_is_refused(void **state)
{
    static const struct {
        const char *text;
        co_status status;
        const char *words;
    } cases[] = {
        {"0 1\n2 10\n3\n", CO_E_DATA, "parts.txt:2: there is no sample 10; the data set's are 0"},
        {"0 1\n2\n3 1\n", CO_E_DATA, "parts.txt:3: sample 1 is in line 1 already"},
        {"0 1\n2 2\n3\n", CO_E_DATA, "parts.txt:2: sample 2 comes twice"},
        {"0 1\n# 2\n2-4 3\n5\n", CO_E_DATA, "parts.txt:3: sample 3 comes twice"},
        {"0 1\n2\n", CO_E_USAGE, "lines for 2 ranks, but there are 3"},
        {"", CO_E_USAGE, "lines for 0 ranks, but there are 3"},
        {"0\n1\n2\n3\n", CO_E_USAGE, "parts.txt:4: a line for rank 3, but there are 3 ranks"},
        {"\n\n\n", CO_E_DATA, "names no sample"},
        {"0\n1\nx\n", CO_E_DATA, "parts.txt:3: expected the number of a sample, not 'x'"},
        {"0\n-1\n2\n", CO_E_DATA, "parts.txt:2: expected the number of a sample, not '-'"},
        {"0\n1-\n2\n", CO_E_DATA, "parts.txt:2: expected the number"},
        {"0\n5-3\n2\n", CO_E_DATA, "parts.txt:2: the range 5-3 ends before"},
        {"0\n1-4294967295\n2\n", CO_E_DATA, "parts.txt:2: there is no sample 4294967295"},
        {"0\n99999999999999999999\n2\n", CO_E_DATA, "parts.txt:2: there is no sample"},
        {"0\n1.5\n2\n", CO_E_DATA, "parts.txt:2: samples are parted by"},
        {"0\n1-2-3\n2\n", CO_E_DATA, "parts.txt:2: samples are parted by"},
        {"0\n1\n\xff\n", CO_E_DATA, "parts.txt:3: expected the number of a sample"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(file_partition(cases[i].text, strlen(cases[i].text)), 3, cases[i].status,
                       cases[i].words);
    assert_refused("{kind: file, path: nowhere.txt}", 3, CO_E_DATA, "nowhere.txt");
    assert_refused("{kind: file, path: .}", 3, CO_E_DATA, "folder");
    assert_refused(file_partition("0\0\n1\n2\n", 7), 3, CO_E_DATA, "parts.txt:1: samples are");
}

static void partition_bad_keys_are_refused(void **state)
{
    static const struct {
        int ranks;
        const char *partition, *words;
    } cases[] = {
        {2, "file", "the key 'path' is missing"},
        {2, "labels", "the key 'labels' is missing"},
        {2, "{kind: contiguous, ratios: [0.5, 0.6]}", "contiguous: the ratios add up to 1.1"},
        {2, "{kind: contiguous, ratios: [1]}", "1 ratio for 2 parts"},
        {2, "{kind: contiguous, seed: 3}", "unknown key 'seed'"},
        {2, "{kind: interleaved, pad: maybe}", "pad"},
        {2, "{kind: interleaved, shuffle: all}", "part"},
        {11, "interleaved", "11 ranks are more than the 10 samples"},
        {11, "random", "11 ranks are more than the 10 samples"},
        {11, "contiguous", "11 ranks are more than the 10 samples"},
        {2, "{kind: dirichlet, alpha: 0}", "alpha"},
        {2, "{kind: dirichlet, alpha: -1}", "alpha"},
        {2, "{kind: dirichlet, seed: -2}", "seed"},
        {2, "{kind: random, batching: fair}", "proportional"},
        {2, "{kind: global, batching: equal}", "unknown key 'batching'"},
        {2, "{kind: labels, labels: [[0, 1, 2], [3]]}", "samples of label 4, which no rank owns"},
        {2, "{kind: labels, labels: [[0, 1, 2], [3, 4, 5]]}", "there is no label 5; "},
        {2, "{kind: labels, labels: [[0, 1, 2], [3, 4, 3]]}", "rank 1 has label 3 twice"},
        {2, "{kind: labels, labels: [[0, 1, 2], [3, -4]]}", "expected a list of labels"},
        {2, "{kind: labels, labels: [[0, 1, 2], [3, x]]}", "expected a list of labels"},
        {2, "{kind: labels, labels: [[0, 1, 2], [3, [4]]]}", "expected a list of labels"},
        {2, "{kind: labels, labels: [[0, 1, 2], {a: 3}]}", "expected a list of labels"},
        {2, "{kind: labels, labels: [[0, 1, 2], ~]}", "expected a list of labels"},
        {2, "{kind: labels, labels: 3}", "expected a list of labels"},
        {3, "{kind: labels, labels: [[0, 1, 2], [3, 4]]}", "labels for 2 ranks, but there are 3"},
        {1, "{kind: labels, labels: [[0, 1, 2], [3, 4]]}", "labels for 2 ranks, but there are 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(cases[i].partition, cases[i].ranks, CO_E_USAGE, cases[i].words);
}

static void partition_by_label_without_data_set_is_refused(void **state)
{
    static const char *const partitions[] = {"{kind: labels, labels: [0]}", "dirichlet"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const co_sampler_options o = {
            .count = 10, .batch = 10, .ranks = 1, .partition = partitions[i]};
        co_sampler *s = NULL;

        assert_int_equal(co_sampler_create(&s, &o), CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), "asks for labels"));
    }
}

/* Each allocation fails once. */
static void partition_failed_allocation_is_an_error(void **state)
{
    const char *const partitions[] = {
        "{kind: random, ratios: [0.7, 0.3]}",
        "{kind: contiguous, batching: equal}",
        "{kind: interleaved, pad: true, shuffle: set}",
        "{kind: labels, labels: [[0, 1, 2], [3, 4]]}",
        "dirichlet",
        file_partition("0 1\n2-4\n", 8),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(partitions) / sizeof(partitions[0]); i++) {
        const co_sampler_options o = {
            .count = 101, .batch = 5, .ranks = 2, .partition = partitions[i], .dataset = few};
        co_status st = CO_E_NOMEM;
        co_sampler *s = NULL;
        uint64_t k = 0;

        while (st == CO_E_NOMEM) {
            co_mem_fail_at(++k);
            st = co_sampler_create(&s, &o);
        }
        co_mem_fail_at(0);
        assert_int_equal(st, CO_OK);
        assert_true(k > 6);
        co_sampler_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partition_shuffle_equals_python),
        cmocka_unit_test(partition_random_equals_tutorial),
        cmocka_unit_test(partition_contiguous_parts_are_consecutive),
        cmocka_unit_test(partition_padded_equals_distributed_sampler),
        cmocka_unit_test(partition_unpadded_repeats_no_sample),
        cmocka_unit_test(partition_labels_gives_each_rank_its_labels),
        cmocka_unit_test(partition_dirichlet_shares_have_its_moments),
        cmocka_unit_test(partition_dirichlet_alpha_sets_skew),
        cmocka_unit_test(partition_dirichlet_depends_on_its_seed_alone),
        cmocka_unit_test(partition_file_lists_samples),
        cmocka_unit_test(partition_bad_file_is_refused),
        cmocka_unit_test(partition_bad_keys_are_refused),
        cmocka_unit_test(partition_by_label_without_data_set_is_refused),
        cmocka_unit_test(partition_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, open_data, close_data);
}
