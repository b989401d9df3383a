/*
 * test_gradients.c - ref's backward gives the derivative of its forward.
 *
 * For each case of the table and each element of the input and the parameters (of large tensors a
 * sample of them) backward is compared with the central difference (f(x + h) - f(x - h)) / 2h of
 * the objective.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cases.h"

#define GRADIENTS_PROBES 40 /* elements of a tensor that are varied */

typedef struct gradients_probe {
    harness *h;
    co_plan *plan;
    float step;
} gradients_probe;

/* d objective / d *at. Divides by the distance of the rounded values. */
static double gradients_slope(const gradients_probe *p, float *at)
{
    const float centre = *at, up = centre + p->step, down = centre - p->step;
    double above, below;

    *at = up;
    assert_int_equal(harness_forward(&above, p->h, p->plan), CO_OK);
    *at = down;
    assert_int_equal(harness_forward(&below, p->h, p->plan), CO_OK);
    *at = centre;
    return (above - below) / ((double)up - (double)down);
}

static float gradients_largest(const float *v, size_t n)
{
    float largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fabsf(v[i]) > largest ? fabsf(v[i]) : largest;
    return largest;
}

/* `grad`: gradients of the whole store, measured before. */
static void gradients_check_param(const gradients_probe *p, const co_param *param,
                                  const float *grad, const char *name)
{
    const float *want = grad + param->offset;
    const size_t stride = param->count / GRADIENTS_PROBES + 1;
    const double allowed = 5e-4 * gradients_largest(want, param->count) + 5e-5;

    for (size_t e = 0; e < param->count; e += stride) {
        double slope = gradients_slope(p, harness_values(p->h, param) + e);

        if (!(fabs(slope - want[e]) <= allowed))
            fail_msg("%s: gradient of %s[%zu] is %.7g, the slope is %.7g", name, param->name, e,
                     (double)want[e], slope);
    }
}

static void gradients_check(const ops_case *c)
{
    const harness_mode mode = {.training = true};
    harness *h = cases_create(c);
    gradients_probe probe = {.h = h, .step = 1e-2f};
    harness_result result;

    /* small enough not to cross a kink: see harness_fill */
    if (strstr(c->net, "relu") || strstr(c->net, "maxpool"))
        probe.step = 0.2f / (float)harness_param(h, "source.value")->count;
    assert_int_equal(harness_measure(&result, h, &mode, false), CO_OK);
    assert_int_equal(harness_plan(&probe.plan, h, &mode), CO_OK);
    for (int i = 0; i < h->graph->n_param; i++)
        if (!h->graph->param[i].spec.buffer)
            gradients_check_param(&probe, &h->graph->param[i], result.grad, c->name);
    co_plan_destroy(probe.plan);
    harness_result_free(&result);
    harness_destroy(h);
}

static void backward_equals_central_differences(void **state)
{
    (void)state;
    for (const ops_case *const *list = cases_all; *list; list++)
        for (const ops_case *c = *list; c->name; c++)
            if (!c->kinked)
                gradients_check(c);
}

/* A second part of a batch adds to the gradients; the loss scale multiplies all of them. */
static void gradients_accumulate_and_scale(void **state)
{
    const harness_mode mode = {.training = true};

    (void)state;
    for (const ops_case *const *list = cases_all; *list; list++)
        for (const ops_case *c = *list; c->name; c++) {
            harness *h = cases_create(c);
            harness_result once, twice;

            assert_int_equal(harness_measure(&once, h, &mode, false), CO_OK);
            h->values.grad_scale = 0.25f;
            assert_int_equal(harness_measure(&twice, h, &mode, true), CO_OK);
            for (size_t i = 0; i < once.n_grad; i++)
                if (!(fabsf(twice.grad[i] - once.grad[i] / 2) <=
                      1e-6f + 1e-5f * fabsf(once.grad[i])))
                    fail_msg("%s: element %zu of the store: %.7g twice at a quarter, %.7g once",
                             c->name, i, (double)twice.grad[i], (double)once.grad[i]);
            harness_result_free(&once);
            harness_result_free(&twice);
            harness_destroy(h);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_equals_central_differences),
        cmocka_unit_test(gradients_accumulate_and_scale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
