/* test_top_k.c - top_k of ext/vector.h against sorting: sizes, ties, zeros, NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "tensor/levels.h"

#define MOST (300 * 1000)

typedef struct entry {
    uint32_t key, index;
} entry;

static float x[MOST];
static entry sorted[MOST];
static uint32_t found[MOST], wanted[MOST];

static int by_size(const void *a, const void *b)
{
    const entry *p = a, *q = b;

    if (p->key != q->key)
        return p->key > q->key ? -1 : 1;
    return p->index < q->index ? -1 : 1;
}

static int by_index(const void *a, const void *b)
{
    const uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;

    return (p > q) - (p < q);
}

static void check_level(const co_vector_ops *vector, size_t n, size_t k)
{
    const size_t room = vector->top_k_room(k);
    /* The word after the room must not change. */
    uint32_t *memory = co_calloc(room + 1, sizeof(*memory));

    assert_non_null(memory);
    memory[room] = 12345;
    vector->top_k(NULL, found, memory, x, n, k);
    if (memcmp(found, wanted, k * sizeof(*found)) != 0)
        fail_msg("%s: %zu of %zu are not the largest", vector->name, k, n);
    assert_int_equal(memory[room], 12345);
    co_free(memory);
}

static void check(size_t n, size_t k)
{
    const co_vector_ops *vector[CO_ISA_LEVELS];
    const size_t levels = levels_list(vector);

    for (size_t i = 0; i < n; i++) {
        sorted[i].index = (uint32_t)i;
        memcpy(&sorted[i].key, &x[i], sizeof(float));
        sorted[i].key &= 0x7fffffffU;
    }
    qsort(sorted, n, sizeof(*sorted), by_size);
    for (size_t i = 0; i < k; i++)
        wanted[i] = sorted[i].index;
    qsort(wanted, k, sizeof(*wanted), by_index);
    for (size_t l = 0; l < levels; l++)
        check_level(vector[l], n, k);
}

static void fill(uint64_t seed, size_t n)
{
    levels_fill(x, n, seed);
}

static void top_k_any_size_is_sorted_prefix(void **state)
{
    static const size_t sizes[] = {1, 2, 15, 16, 17, 1000, 65536, 65537, 100001, MOST};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const size_t n = sizes[s], counts[] = {1, 2, n / 1000, n / 100, n / 10, n / 2, n - 1, n};

        fill(s, n);
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            if (counts[c] >= 1 && counts[c] <= n)
                check(n, counts[c]);
    }
}

/* Few distinct magnitudes, of both signs. */
static void top_k_ties_takes_the_first(void **state)
{
    (void)state;
    fill(1, MOST);
    for (size_t i = 0; i < MOST; i++)
        x[i] = roundf(x[i] * 2) / 2;
    check(MOST, 300);
    check(MOST, 3000);
    check(MOST, 100000);
    for (size_t i = 0; i < MOST; i++)
        x[i] = i % 2 ? -1 : 1;
    check(MOST, 1000);
    memset(x, 0, sizeof(x));
    check(MOST, 1000);
    check(1000, 10);
}

/* Inputs that a sample of the elements misrepresents. */
static void top_k_unlike_sample_is_exact(void **state)
{
    (void)state;
    memset(x, 0, sizeof(x));
    for (size_t i = 0; i < 500; i++)
        x[(i * 577 + 3) % MOST] = (float)i - 250;
    check(MOST, 100);
    check(MOST, 499);
    check(MOST, 600);
    for (size_t i = 0; i < MOST; i++)
        x[i] = i < MOST / 2 ? 1e-20F : (float)i;
    check(MOST, 3000);
    for (size_t i = 0; i < MOST; i++)
        x[i] = (float)(i % 16 == 5) * (float)i; /* nonzero at one place of each line only */
    check(MOST, 3000);
}

static void top_k_nan_is_largest(void **state)
{
    (void)state;
    fill(2, MOST);
    for (size_t i = 0; i < 200; i++)
        x[i * 1111] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    check(MOST, 50);
    check(MOST, 100);
    check(MOST, 3000);
    for (size_t i = 0; i < MOST; i++)
        x[i] = NAN;
    check(MOST, 3000);
    check(100, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_k_any_size_is_sorted_prefix),
        cmocka_unit_test(top_k_ties_takes_the_first),
        cmocka_unit_test(top_k_unlike_sample_is_exact),
        cmocka_unit_test(top_k_nan_is_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
