/*
 * test_batchnorm.c - batch norm on blocked images, with every instruction set of this machine,
 * against double arithmetic; also with a mean far from zero.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "backends/backends_test.h"
#include "core/mem.h"
#include "core/rng.h"
#include "kernels/batchnorm/batchnorm.h"

#define VECTORS 301 /* no multiple of a chunk or an unrolled loop, but of a small plane */
#define FAR     300.0f

static const norm_loops *const *find_all(void)
{
    static const norm_loops *const all[] = {KERNELS_LIST(norm_loops, &norm_loops_basic, NULL)};

    return all + kernels_too_new();
}

static float *make(uint32_t item, float mean, size_t n)
{
    const co_rng rng = {.seed = 9, .stream = CO_RNG_TEST, .item = item};
    float *x = co_calloc_aligned(n, sizeof(float));

    assert_non_null(x);
    co_rng_normal(x, &rng, 0, n);
    for (size_t i = 0; i < n; i++)
        x[i] += mean;
    return x;
}

static void near(double got, double want, double scale)
{
    if (!(fabs(got - want) <= 2e-6 * scale))
        fail_msg("%.9g instead of %.9g", got, want);
}

/* The same vectors as planes of several sizes; strides are in vectors, multiplied by the lanes in
   shape(). */
static const norm_planes shapes[] = {{VECTORS, 1, 0}, {7, VECTORS / 7, 7}, {1, VECTORS, 1}};

static norm_planes shape(size_t i, int lanes)
{
    norm_planes planes = shapes[i];

    planes.step *= lanes;
    return planes;
}

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Input of the loops, and the results of double arithmetic. */
typedef struct plane {
    int lanes;
    size_t n; /* values */
    float *x, *dy, *more, *other;
    float *y, *sum, *dx;
    uint8_t *mask;
    norm_line line;
    norm_planes planes;
} plane;

static void open_plane(plane *p, const norm_loops *loops, size_t i)
{
    *p = (plane){.lanes = loops->lanes, .n = (size_t)(VECTORS * loops->lanes)};
    p->planes = shape(i, p->lanes);
    p->x = make(1, FAR, p->n);
    p->dy = make(2, 0, p->n);
    p->more = make(3, 0, p->n);
    p->other = make(4, 0, p->n);
    p->y = make(5, 0, p->n);
    p->sum = make(6, 0, p->n);
    p->dx = make(7, 0, p->n);
    p->mask = co_calloc_aligned((size_t)norm_mask_bytes((int64_t)p->n, p->lanes), 1);
    assert_non_null(p->mask);
    for (int l = 0; l < p->lanes; l++) {
        p->line.mean[l] = FAR + 0.01f * (float)l;
        p->line.scale[l] = 0.5f + 0.1f * (float)l;
        p->line.slope[l] = 0.2f - 0.05f * (float)l;
        p->line.shift[l] = -0.3f + 0.04f * (float)l;
    }
}

static void close_plane(plane *p)
{
    float *all[] = {p->x, p->dy, p->more, p->other, p->y, p->sum, p->dx};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        co_free(all[i]);
    co_free(p->mask);
}

static void check_measure(const norm_loops *loops, size_t s)
{
    norm_part part;
    plane p;

    open_plane(&p, loops, s);
    loops->measure(&part, p.x, &p.planes);
    for (int l = 0; l < p.lanes; l++) {
        double mean = 0, squares = 0;

        for (size_t i = 0; i < VECTORS; i++)
            mean += (double)p.x[i * (size_t)p.lanes + (size_t)l] / VECTORS;
        for (size_t i = 0; i < VECTORS; i++)
            squares += pow((double)p.x[i * (size_t)p.lanes + (size_t)l] - mean, 2);
        near(part.a[l], mean, 1);
        near(part.b[l], squares, squares);
    }
    close_plane(&p);
}

static void batchnorm_moments_of_every_level_equal_definition(void **state)
{
    (void)state;
    for (const norm_loops *const *loops = find_all(); *loops; loops++)
        for (size_t s = 0; s < SHAPES; s++)
            check_measure(*loops, s);
}

/* The ops after the norm, in double; *kept: whether the ReLU passes the value. */
static double follow(bool *kept, norm_tail tail, double v, double other)
{
    if (tail == NORM_ADD || tail == NORM_ADD_RELU)
        v += other;
    *kept = v > 0 || tail == NORM_PLAIN || tail == NORM_ADD;
    v = *kept ? v : 0;
    return tail == NORM_RELU_ADD ? v + other : v;
}

static bool bit(const plane *p, size_t i)
{
    return p->mask[norm_mask_bytes((int64_t)i, p->lanes)] >> i % (p->lanes < 8 ? 4 : 8) & 1;
}

static void check_apply(plane *p, const norm_loops *loops, norm_tail tail)
{
    const bool relu = tail == NORM_RELU || tail == NORM_ADD_RELU || tail == NORM_RELU_ADD;

    loops->apply(p->y, relu ? p->mask : NULL, p->x, p->other, &p->line, tail, &p->planes);
    for (size_t i = 0; i < p->n; i++) {
        const size_t l = i % (size_t)p->lanes;
        const double v = ((double)p->x[i] - (double)p->line.mean[l]) * (double)p->line.scale[l] +
                         (double)p->line.shift[l];
        bool kept;
        const double want = follow(&kept, tail, v, (double)p->other[i]);

        near((double)p->y[i], want, 10);
        if (relu && fabs(v) > 1e-5 && fabs(v + (double)p->other[i]) > 1e-5)
            assert_int_equal(bit(p, i), kept);
    }
}

static void check_back(plane *p, const norm_loops *loops, norm_back *back)
{
    norm_part part;
    double a[NORM_MAX_LANES] = {0}, b[NORM_MAX_LANES] = {0};

    loops->reduce(&part, back, &p->line, &p->planes);
    for (size_t i = 0; i < p->n; i++) {
        const size_t l = i % (size_t)p->lanes;
        const double g = (double)p->dy[i] + (back->more ? (double)p->more[i] : 0);
        const double d = back->mask && !bit(p, i) ? 0 : g;

        a[l] += d;
        b[l] += d * ((double)p->x[i] - (double)p->line.mean[l]);
        if (back->sum)
            near((double)p->sum[i], back->mask_sum ? d : g, 10);
    }
    for (int l = 0; l < p->lanes; l++) {
        near(part.a[l], a[l], VECTORS);
        near(part.b[l], b[l], VECTORS);
    }
    loops->gradient(p->dx, back, &p->line, &p->planes);
    for (size_t i = 0; i < p->n; i++) {
        const size_t l = i % (size_t)p->lanes;
        const double g = (double)p->dy[i] + (back->more ? (double)p->more[i] : 0);
        const double d = back->mask && !bit(p, i) ? 0 : g;

        near((double)p->dx[i],
             d * (double)p->line.scale[l] + (double)p->line.shift[l] +
                 ((double)p->x[i] - (double)p->line.mean[l]) * (double)p->line.slope[l],
             10);
    }
}

static void check_there_and_back(const norm_loops *loops, size_t s, norm_tail tail)
{
    plane p;

    open_plane(&p, loops, s);
    check_apply(&p, loops, tail);
    for (int way = 0; way < 16; way++) {
        norm_back back = {.x = p.x,
                          .dy = p.dy,
                          .more = way & 1 ? p.more : NULL,
                          .sum = way & 2 ? p.sum : NULL,
                          .mask = way & 4 ? p.mask : NULL,
                          .mask_sum = way & 8};

        check_back(&p, loops, &back);
    }
    close_plane(&p);
}

static void batchnorm_forward_and_backward_equal_definition(void **state)
{
    (void)state;
    for (const norm_loops *const *loops = find_all(); *loops; loops++)
        for (int tail = 0; tail < NORM_TAILS; tail++)
            for (size_t s = 0; s < SHAPES; s++)
                check_there_and_back(*loops, s, (norm_tail)tail);
}

static void batchnorm_relu_of_nan_is_nan(void **state)
{
    (void)state;
    for (const norm_loops *const *loops = find_all(); *loops; loops++) {
        plane p;

        open_plane(&p, *loops, 0);
        p.x[5] = NAN;
        (*loops)->apply(p.y, p.mask, p.x, p.other, &p.line, NORM_RELU, &p.planes);
        assert_true(isnan(p.y[5]));
        assert_true(bit(&p, 5));
        close_plane(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batchnorm_moments_of_every_level_equal_definition),
        cmocka_unit_test(batchnorm_forward_and_backward_equal_definition),
        cmocka_unit_test(batchnorm_relu_of_nan_is_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
