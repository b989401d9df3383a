/* test_batchnorm.c - a channel's mean may be far from 0: batch norm against double arithmetic, in
   the layouts in which networks begin and in rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "cases.h"
#include "core/rng.h"

#define BATCH 24
#define EPS   1e-5

/* Results of one channel. */
typedef struct oracle {
    double weight, bias; /* gradients */
    double slope, shift; /* of the input's gradient, which is scale (row - shift - z slope) */
    double mean, inv_std, scale; /* z = (x - mean) inv_std; scale of the gradient */
} oracle;

/* Value i of a channel in a tensor (N, C, plane). */
static int64_t place(int64_t i, int64_t channels, int64_t plane, int64_t c)
{
    return (i / plane * channels + c) * plane + i % plane;
}

static oracle compute(const float *x, const float *row, double weight, int64_t channels,
                      int64_t plane, int64_t c)
{
    const double count = (double)(BATCH * plane);
    oracle o = {0};
    double squares = 0;

    for (int64_t i = 0; i < BATCH * plane; i++)
        o.mean += (double)x[place(i, channels, plane, c)] / count;
    for (int64_t i = 0; i < BATCH * plane; i++)
        squares += pow((double)x[place(i, channels, plane, c)] - o.mean, 2);
    o.inv_std = 1 / sqrt(squares / count + EPS);
    o.scale = weight * o.inv_std;
    for (int64_t i = 0; i < BATCH * plane; i++) {
        const int64_t at = place(i, channels, plane, c);

        o.bias += (double)row[at];
        o.weight += (double)row[at] * ((double)x[at] - o.mean) * o.inv_std;
    }
    o.shift = o.bias / count;
    o.slope = o.weight / count;
    return o;
}

static void near(double got, double want, double allowed, const char *what, int64_t at)
{
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s[%d] is %.8g instead of %.8g", what, (int)at, got, want);
}

/* `mean` is rounded to float where it is subtracted: so far an input is from its place. */
static void check_channel(const harness *h, const harness_result *got, int64_t channels,
                          int64_t plane, double mean, int64_t c)
{
    const co_param *source = harness_param(h, "source.value");
    const co_param *weight = harness_param(h, "batchnorm1.weight");
    const co_param *bias = harness_param(h, "batchnorm1.bias");
    const float *x = harness_values(h, source), *w = harness_values(h, weight);
    const double rounding = 6e-8 * mean, count = (double)(BATCH * plane);
    const oracle o = compute(x, h->row, (double)w[c], channels, plane, c);

    near((double)got->grad[bias->offset + (size_t)c], o.bias, 2e-6 * sqrt(count), "bias", c);
    near((double)got->grad[weight->offset + (size_t)c], o.weight,
         2e-6 * sqrt(count) + 2 * rounding * o.inv_std * fabs(o.bias), "weight", c);
    for (int64_t i = 0; i < BATCH * plane; i++) {
        const int64_t at = place(i, channels, plane, c);
        const double z = ((double)x[at] - o.mean) * o.inv_std;
        const double y = z * (double)w[c] + (double)harness_values(h, bias)[c];

        near((double)got->out[at], y, 2e-6 + 2 * rounding * fabs(o.scale), "output", at);
        near((double)got->grad[source->offset + (size_t)at],
             o.scale * ((double)h->row[at] - o.shift - z * o.slope),
             (2e-6 + 2 * rounding * o.inv_std * (fabs(o.slope) + fabs(z * o.shift))) *
                 fabs(o.scale),
             "input", at);
    }
}

static void check(co_shape sample, float mean, const co_backend *const *backends)
{
    const int64_t channels = sample.dim[0], plane = co_shape_count(&sample) / channels;
    const ops_case c = {"far from 0", BATCH, sample, "batchnorm", false};
    const co_rng rng = {.seed = 4, .stream = CO_RNG_TEST};
    const harness_mode mode = {.backends = backends, .training = true};
    harness *h = cases_create(&c);
    const co_param *source = harness_param(h, "source.value");
    float row[BATCH * 512];
    harness_result got;

    assert_true(source->count <= sizeof(row) / sizeof(row[0]));
    co_rng_uniform(row, &rng, 0, source->count);
    h->row = row;
    h->values.grad_scale = 1;
    for (size_t i = 0; i < source->count; i++)
        harness_values(h, source)[i] += mean;
    assert_int_equal(harness_measure(&got, h, &mode, false), CO_OK);
    for (int64_t k = 0; k < channels; k++)
        check_channel(h, &got, channels, plane, (double)mean, k);
    harness_result_free(&got);
    harness_destroy(h);
}

/* Rows of whole blocks, rows that end within one, images. */
static void batchnorm_far_from_zero_keeps_its_digits(void **state)
{
    static const co_shape samples[] = {
        {1, {32}}, {1, {8}}, {1, {9}}, {3, {3, 8, 8}}, {3, {16, 5, 5}}};
    static const co_backend *const cpu[] = {&co_backend_cpu, &co_backend_ref, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        for (int far = 0; far <= 500; far += 250) {
            check(samples[i], (float)far / 10, co_backends);
            check(samples[i], (float)far / 10, cpu);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batchnorm_far_from_zero_keeps_its_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
