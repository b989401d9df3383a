/*
 * test_softmax.c - the loops of log_softmax of every level of instructions against the definition
 * in double precision, from rows of equal logits to rows with one that leaves the others nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "backends/backends_test.h"
#include "kernels/softmax/softmax.h"

#define MOST      2500 /* classes; sums are made by blocks of fewer */
#define TOLERANCE 1e-6

static const softmax_loops *const *find_all(void)
{
    static const softmax_loops *const all[] = {
        KERNELS_LIST(softmax_loops, &softmax_loops_basic, NULL)};

    return all + kernels_too_new();
}

/* Logits of a row whose label is `margin` above all others. */
static void fill(float *x, int64_t n, int64_t label, double margin)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(3 - (i == label ? 0 : margin + 0.37 * (double)(i % 5)));
}

/* log sum exp(x - x[label]), less exact only by a rounding of doubles. */
static double define(const float *x, int64_t n, int64_t label)
{
    double others = 0;

    for (int64_t i = 0; i < n; i++)
        others += i == label ? 0 : exp((double)x[i] - (double)x[label]);
    return log1p(others);
}

static void check(float got, double want, double tolerance, int64_t n, double margin,
                  const char *what)
{
    if (!(fabs((double)got - want) <= tolerance * fabs(want) + 1e-30))
        fail_msg("%s of %d logits, margin %g: %.9g instead of %.9g", what, (int)n, margin,
                 (double)got, want);
}

/* Of the mean of the negative log-probabilities of a batch of 8. */
static void check_row(const softmax_loops *loops, int64_t n, double margin)
{
    static float x[MOST], y[MOST], dx[MOST], dy[MOST];
    const int64_t label = n / 3;
    /* A lane adds up hundreds of terms where vectors are short. */
    const double tolerance = TOLERANCE * (1 + (double)n / 200);
    double norm;

    fill(x, n, label, margin);
    norm = define(x, n, label);
    for (int64_t i = 0; i < n; i++)
        dy[i] = i == label ? -0.125f : 0;
    loops->log_softmax(y, x, n);
    loops->log_softmax_gradient(dx, y, dy, n);
    for (int64_t i = 0; i < n; i++) {
        const double want = (double)x[i] - (double)x[label] - norm;
        /* exp makes an error of a relative one. */
        const double relative = tolerance * (1 + fabs(want));

        check(y[i], want, tolerance, n, margin, "log-probability");
        check(dx[i], 0.125 * (i == label ? expm1(want) : exp(want)), relative, n, margin,
              "gradient");
    }
}

static void log_softmax_of_any_margin_equals_definition(void **state)
{
    static const int64_t widths[] = {1, 2, 3, 10, 16, 17, 1000, MOST};

    (void)state;
    for (const softmax_loops *const *loops = find_all(); *loops; loops++)
        for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
            for (double margin = 0; margin < 60; margin = margin * 1.3 + 0.05)
                check_row(*loops, widths[w], margin);
}

/* Any gradient of the output, not only that of a loss: errors are those of its largest element. */
static void gradient_of_any_output_equals_definition(void **state)
{
    enum { N = 37 };
    float x[N], y[N], dx[N], dy[N];

    (void)state;
    for (const softmax_loops *const *loops = find_all(); *loops; loops++)
        for (double margin = 0; margin < 12; margin += 0.4) {
            double sum = 0;

            fill(x, N, 5, margin);
            for (int i = 0; i < N; i++) {
                dy[i] = (float)sin(1.7 * i);
                sum += (double)dy[i];
            }
            (*loops)->log_softmax(y, x, N);
            (*loops)->log_softmax_gradient(dx, y, dy, N);
            for (int i = 0; i < N; i++) {
                const double want = (double)dy[i] - exp((double)y[i]) * sum;

                if (!(fabs((double)dx[i] - want) <= 4 * TOLERANCE))
                    fail_msg("gradient %d, margin %g: %.9g instead of %.9g", i, margin,
                             (double)dx[i], want);
            }
        }
}

/* What went wrong earlier is not hidden. */
static void not_a_number_stays(void **state)
{
    static const float wrong[] = {NAN, INFINITY};
    float x[19], y[19];

    (void)state;
    for (const softmax_loops *const *loops = find_all(); *loops; loops++)
        for (int at = 0; at < 19; at++)
            for (size_t w = 0; w < 2; w++) {
                fill(x, 19, 4, 1);
                x[at] = wrong[w];
                (*loops)->log_softmax(y, x, 19);
                assert_true(isnan(y[at]));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_softmax_of_any_margin_equals_definition),
        cmocka_unit_test(gradient_of_any_output_equals_definition),
        cmocka_unit_test(not_a_number_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
