/*
 * test_lanes_pool.c - max pooling with a sample per lane, with every instruction set of this
 * machine, against the definition: values, places and gradients.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "kernels/sample_lanes/sample_lanes.h"

static void near(double got, double want, const lanes_loops *lanes)
{
    if (!(fabs(got - want) <= 1e-5 * fabs(want) + 1e-5))
        fail_msg("%s: %.8g, not %.8g", lanes->name, got, want);
}

static void check_maxpool(const lanes_loops *lanes, const lanes_pool *p)
{
    const int64_t n = lanes->lanes;
    float *x = make_numbers(10, p->h * p->w * n), *y = make_numbers(11, p->oh * p->ow * n);
    float *dy = make_numbers(12, p->oh * p->ow * n), *dx = make_numbers(13, p->h * p->w * n);
    float *want = co_calloc((size_t)(p->h * p->w * n), sizeof(float));
    float *bare = make_numbers(14, p->oh * p->ow * n);
    uint8_t *place = co_calloc_aligned((size_t)(p->oh * p->ow * n), 1);

    assert_true(want && place);
    /* Rounded, so that windows have ties. */
    for (int64_t i = 0; i < p->h * p->w * n; i++)
        x[i] = roundf(3 * x[i]);
    x[n] = NAN;
    lanes->maxpool(y, place, x, p);
    lanes->maxpool_gradient(dx, place, dy, p);
    for (int64_t e = 0; e < p->oh * p->ow * n; e++) {
        const int64_t top = e / n / p->ow * p->sh - p->ph, left = e / n % p->ow * p->sw - p->pw;
        int64_t best = -1;

        for (int64_t t = 0; t < p->kh * p->kw; t++) {
            const int64_t r = top + t / p->kw, q = left + t % p->kw,
                          at = (r * p->w + q) * n + e % n;

            if (r < 0 || r >= p->h || q < 0 || q >= p->w)
                continue;
            if (best < 0 || x[at] > x[best] || isnan(x[at]))
                best = at;
        }
        if (p->relu && x[best] <= 0) {
            assert_true(y[e] == 0 && place[e] == LANES_NOWHERE);
            continue;
        }
        assert_memory_equal(&y[e], &x[best], sizeof(float));
        want[best] += dy[e];
    }
    lanes->maxpool(bare, NULL, x, p);
    assert_memory_equal(bare, y, (size_t)(p->oh * p->ow * n) * sizeof(float));
    for (int64_t i = 0; i < p->h * p->w * n; i++)
        near((double)dx[i], (double)want[i], lanes);
    co_free(x);
    co_free(y);
    co_free(dy);
    co_free(dx);
    co_free(want);
    co_free(bare);
    co_free(place);
}

/* Rows of results that are further apart: the same, and nothing between them is touched. */
static void check_maxpool_step(const lanes_loops *lanes, const lanes_pool *p)
{
    const int64_t n = lanes->lanes, row = p->ow * n, step = row + n;
    float *x = make_numbers(20, p->h * p->w * n), *y = make_numbers(21, p->oh * row);
    float *apart = make_numbers(22, p->oh * step);
    uint8_t *place = co_calloc_aligned((size_t)(p->oh * row), 1);
    uint8_t *places = co_calloc_aligned((size_t)(p->oh * step), 1);
    const float between = 7;
    lanes_pool wide = *p;

    assert_true(place && places);
    memset(places, 77, (size_t)(p->oh * step));
    for (int64_t i = 0; i < p->oh * step; i++)
        apart[i] = between;
    wide.step = p->ow + 1;
    lanes->maxpool(y, place, x, p);
    lanes->maxpool(apart, places, x, &wide);
    for (int64_t u = 0; u < p->oh; u++) {
        assert_memory_equal(apart + u * step, y + u * row, (size_t)row * sizeof(float));
        assert_memory_equal(places + u * step, place + u * row, (size_t)row);
        for (int64_t i = u * step + row; i < (u + 1) * step; i++)
            assert_true(apart[i] == between && places[i] == 77);
    }
    co_free(x);
    co_free(y);
    co_free(apart);
    co_free(place);
    co_free(places);
}

/* Each with ReLU after it, too: outputs that are zero have no gradient. */
static void maxpool_windows(const lanes_loops *lanes)
{
    static const lanes_pool pool[] = {
        {8, 6, 4, 3, 3, 2, 2, 2, 2, 0, 0, false}, {9, 7, 4, 3, 3, 2, 2, 2, 2, 0, 0, false},
        {9, 8, 5, 4, 4, 3, 3, 2, 2, 1, 1, false}, {7, 5, 3, 2, 2, 1, 2, 3, 3, 0, 0, false},
        {6, 6, 6, 4, 4, 3, 3, 1, 1, 1, 0, false}, {4, 5, 3, 3, 3, 2, 2, 2, 2, 1, 1, false},
    };

    for (size_t i = 0; i < 2 * sizeof(pool) / sizeof(pool[0]); i++) {
        lanes_pool p = pool[i / 2];

        p.relu = i % 2;
        check_maxpool(lanes, &p);
        check_maxpool_step(lanes, &p);
    }
}

static void maxpool_of_every_level_equals_definition(void **state)
{
    (void)state;
    for (const lanes_loops *const *l = lanes_find_all(); *l; l++)
        maxpool_windows(*l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maxpool_of_every_level_equals_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
