/* test_vector.c - every instruction set's loops of compressors give the bits of plain C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "strategy/vector.h"

#define N 700

static const size_t lengths[] = {0, 1, 15, 16, 17, 31, 48, 333, N};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static float a[N + 1], b[CO_VECTOR_TERMS][N + 1];

static void fill(void)
{
    const co_rng rng = {.seed = 5, .stream = CO_RNG_TEST};

    co_rng_normal(a, &rng, 0, N + 1);
    for (int t = 0; t < CO_VECTOR_TERMS; t++)
        co_rng_normal(b[t], &rng, (uint64_t)(t + 1) * 1000, N + 1);
}

/* At an address that no vector is aligned to. */
static void check_sums(const co_vector_loops *loops, size_t n)
{
    const float *const terms[] = {b[0] + 1, b[1] + 1, b[2] + 1, b[3] + 1};

    for (int t = 1; t <= CO_VECTOR_TERMS; t++) {
        float got[N + 1], want[N + 1], sum[CO_VECTOR_TERMS], wanted[CO_VECTOR_TERMS];

        memcpy(got, a, sizeof(got));
        memcpy(want, a, sizeof(want));
        loops->add_scaled(got + 1, terms, b[0], t, n);
        co_vector_plain.add_scaled(want + 1, terms, b[0], t, n);
        assert_memory_equal(got, want, sizeof(got));
        loops->add(got + 1, b[2] + 1, n);
        co_vector_plain.add(want + 1, b[2] + 1, n);
        assert_memory_equal(got, want, sizeof(got));
        loops->dot(sum, a + 1, terms, t, n);
        co_vector_plain.dot(wanted, a + 1, terms, t, n);
        assert_memory_equal(sum, wanted, (size_t)t * sizeof(*sum));
    }
}

static void check_gather(const co_vector_loops *loops, size_t n, float bound, size_t most)
{
    uint32_t got[N + 1 + CO_VECTOR_MORE], want[N + 1 + CO_VECTOR_MORE], bits;
    size_t n_got, n_want;

    memcpy(&bits, &bound, sizeof(bits));
    n_got = loops->gather(got, a + 1, n, bits, most);
    n_want = co_vector_plain.gather(want, a + 1, n, bits, most);
    assert_true((n_got > most) == (n_want > most));
    if (n_got > most)
        return;
    assert_int_equal(n_got, n_want);
    assert_memory_equal(got, want, n_got * sizeof(*got));
}

static void plain_is_right(void **state)
{
    const float *const term = b[0];
    float y[N], sum = 0, dot;
    uint32_t places[N + 1 + CO_VECTOR_MORE], bits;
    size_t n = 0;

    (void)state;
    fill();
    memcpy(y, a, sizeof(y));
    co_vector_plain.add_scaled(y, &term, &b[1][0], 1, N);
    for (size_t i = 0; i < N; i++) {
        const float product = b[1][0] * b[0][i];

        assert_true(y[i] == a[i] + product);
        sum += a[i] * b[0][i];
    }
    co_vector_plain.dot(&dot, a, &term, 1, N);
    assert_true(dot - sum < 1e-4F && sum - dot < 1e-4F);
    bits = 0x3f800000; /* 1 */
    assert_true(co_vector_plain.gather(places, a, N, bits, N) > 100);
    for (size_t i = 0; i < N; i++)
        if (a[i] >= 1 || a[i] <= -1)
            assert_int_equal(places[n++], i);
    assert_int_equal(co_vector_plain.gather(places, a, N, bits, N), n);
    memcpy(&bits, &a[5], sizeof(bits)); /* one that is as large as the bound is in */
    bits &= 0x7fffffff;
    n = co_vector_plain.gather(places, a, N, bits, N);
    while (n > 0 && places[n - 1] != 5)
        n--;
    assert_true(n > 0);
}

static void all_sets_agree(void **state)
{
    size_t sets;
    const co_vector_loops *const *loops = co_vector_loops_of_cpu(&sets);

    (void)state;
    fill();
    assert_ptr_equal(loops[sets - 1], &co_vector_plain);
    for (size_t s = 0; s + 1 < sets; s++)
        for (size_t l = 0; l < N_LENGTHS; l++) {
            check_sums(loops[s], lengths[l]);
            check_gather(loops[s], lengths[l], 1.5F, N);
            check_gather(loops[s], lengths[l], 0, N);
            check_gather(loops[s], lengths[l], 100, N);
            check_gather(loops[s], lengths[l], 1, 20);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_is_right),
        cmocka_unit_test(all_sets_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
