/*
 * test_backends.c - every backend of this build gives the results of ref.
 *
 * Each case of the table runs on {backend, ref} and on the list that `auto` stands for. Outputs,
 * losses, gradients (also accumulated over two parts of a batch) and running statistics, in
 * training and in evaluation, are compared with ref's. The argument is the number of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "core/isa.h"

static int backends_threads = 1;

/* Relative to the tensor's largest value, for other orders of addition; and the absolute error an
   approximate exp or log may leave where the exact result is 0. */
#define BACKENDS_TOLERANCE 2e-5f
#define BACKENDS_FLOOR     2e-6f

/* Second batch size of each case: large enough for kernels with one sample per lane, and no
   multiple of a vector. */
#define BACKENDS_BATCH 13

static void backends_compare(const float *got, const float *want, size_t n, const char *where,
                             const char *what)
{
    float allowed = 0;

    for (size_t i = 0; i < n; i++)
        allowed = fabsf(want[i]) > allowed ? fabsf(want[i]) : allowed;
    allowed = allowed * BACKENDS_TOLERANCE + BACKENDS_FLOOR;
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= allowed))
            fail_msg("%s: %s[%zu] is %.8g, ref gives %.8g", where, what, i, (double)got[i],
                     (double)want[i]);
}

static void backends_compare_results(const harness *h, const harness_result *got,
                                     const harness_result *want, const char *where)
{
    backends_compare(got->out, want->out, want->n_out, where, "output");
    backends_compare(got->loss, want->loss, want->n_loss, where, "loss");
    for (int p = 0; p < h->graph->n_param; p++) {
        const co_param *param = &h->graph->param[p];
        const float *g = param->spec.buffer ? got->buffer : got->grad;
        const float *w = param->spec.buffer ? want->buffer : want->grad;

        if (param->spec.buffer || want->n_grad)
            backends_compare(g + param->offset, w + param->offset, param->count, where,
                             param->name);
    }
}

/* A way to run a network. */
typedef struct backends_way {
    const char *name;
    bool training, twice;
} backends_way;

static void backends_check_list(const ops_case *c, harness *h, const backends_way *way,
                                const co_backend *const *list, const harness_result *want)
{
    for (int no_reuse = 0; no_reuse <= (way->twice ? 1 : 0); no_reuse++) {
        const harness_mode mode = {.backends = list,
                                   .training = way->training,
                                   .no_reuse = no_reuse == 1,
                                   .threads = backends_threads};
        harness_result got;
        char where[160];

        snprintf(where, sizeof(where), "%s on %s%s (batch %d, %s%s)", c->name, list[0]->name,
                 list[1] && list[2] ? " and others" : "", (int)c->batch, way->name,
                 no_reuse ? ", no memory shared" : "");
        if (harness_measure(&got, h, &mode, way->twice) != CO_OK)
            fail_msg("%s: %s", where, co_error_message());
        backends_compare_results(h, &got, want, where);
        harness_result_free(&got);
    }
}

/* Each backend alone, as far as it supports the case, and all together as in `auto`. */
static void backends_check(const ops_case *c)
{
    static const backends_way ways[] = {
        {"evaluation", false, false}, {"training", true, false}, {"training twice", true, true}};
    harness *h = cases_create(c);

    h->values.grad_scale = 0.125f;
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        const harness_mode ref = {.training = ways[w].training};
        harness_result want;

        assert_int_equal(harness_measure(&want, h, &ref, ways[w].twice), CO_OK);
        backends_check_list(c, h, &ways[w], co_backends, &want);
        for (const co_backend *const *b = co_backends; *b; b++) {
            const co_backend *const alone[] = {*b, &co_backend_ref, NULL};

            if (*b != &co_backend_ref)
                backends_check_list(c, h, &ways[w], alone, &want);
        }
        harness_result_free(&want);
    }
    harness_destroy(h);
}

static void backends_every_case_agrees_with_ref(void **state)
{
    (void)state;
    for (const ops_case *const *part = cases_all; *part; part++)
        for (const ops_case *c = *part; c->name; c++) {
            ops_case more = *c;

            more.batch = BACKENDS_BATCH;
            backends_check(c);
            backends_check(&more);
        }
}

static void backends_compare_nan(const float *got, const float *want, size_t n, const char *net,
                                 const char *what, size_t place)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(got[i]) != isnan(want[i]))
            fail_msg("%s with a NaN at %zu: %s[%zu] is %g, ref gives %g", net, place, what, i,
                     (double)got[i], (double)want[i]);
}

/* A run that diverges must show it, with our kernels and with what is chosen from all. (oneDNN's
   relu, maxpool and softmax replace NaN by a number, as the library defines them.) */
static void kernels_propagate_nan(void **state)
{
    static const char *const nets[] = {"conv2d {out: 2, kernel: 1}; relu",
                                       "conv2d {out: 2, kernel: 1}; maxpool {kernel: 2}",
                                       "conv2d {out: 2, kernel: 1}; maxpool {kernel: 3, stride: 1}",
                                       "conv2d {out: 3, kernel: 3, padding: 1}; batchnorm",
                                       "keep; conv2d {out: 2, kernel: 1}; add",
                                       "conv2d {out: 2, kernel: 1}; tanh",
                                       "conv2d {out: 2, kernel: 1}; scale {factor: 3}",
                                       "flatten; linear {out: 5}; log_softmax",
                                       "flatten; linear {out: 5}; cross_entropy",
                                       "flatten; mse_loss",
                                       "flatten; l1_loss",
                                       "flatten; bce_with_logits_loss"};
    static const co_backend *const cpu[] = {&co_backend_cpu, &co_backend_ref, NULL};
    static const co_backend *const general[] = {&co_backend_cpu_general, &co_backend_ref, NULL};
    const co_backend *const *const lists[] = {cpu, general, co_backends};
    const size_t n = sizeof(nets) / sizeof(nets[0]);
    const harness_mode ref = {.training = true};

    (void)state;
    for (size_t way = 0; way < 3 * n; way++)
        for (size_t place = 0; place < 16; place++) {
            const size_t i = way % n;
            const harness_mode mode = {.backends = lists[way / n], .training = true};
            const ops_case c = {nets[i], BACKENDS_BATCH, {3, {2, 4, 4}}, nets[i], false};
            harness *h = cases_create(&c);
            harness_result got, want;

            harness_values(h, harness_param(h, "source.value"))[160 + place] = NAN;
            assert_int_equal(harness_measure(&got, h, &mode, false), CO_OK);
            assert_int_equal(harness_measure(&want, h, &ref, false), CO_OK);
            backends_compare_nan(got.out, want.out, want.n_out, nets[i], "output", place);
            backends_compare_nan(got.loss, want.loss, want.n_loss, nets[i], "loss", place);
            backends_compare_nan(got.grad, want.grad, want.n_grad, nets[i], "gradient", place);
            harness_result_free(&got);
            harness_result_free(&want);
            harness_destroy(h);
        }
}

/* A class is ruled out by a logit of -inf: it has no share of the loss of another label. */
static void cross_entropy_class_ruled_out_leaves_loss_finite(void **state)
{
    const ops_case c = {"cross_entropy", 3, {1, {5}}, "cross_entropy", false};

    (void)state;
    for (const co_backend *const *b = co_backends; *b; b++) {
        const co_backend *const alone[] = {*b, &co_backend_ref, NULL};
        const harness_mode mode = {.backends = alone, .training = true};
        harness *h = cases_create(&c);
        const size_t offset = harness_param(h, "source.value")->offset;
        const int64_t other = h->label[1] == 0 ? 1 : 0;
        harness_result got;

        harness_values(h, harness_param(h, "source.value"))[5 + other] = -INFINITY;
        assert_int_equal(harness_measure(&got, h, &mode, false), CO_OK);
        assert_true(isfinite(got.loss[1]) && got.loss[1] > 0);
        assert_true(fabsf(got.grad[offset + 5 + (size_t)other]) < 1e-30f);
        harness_result_free(&got);
        harness_destroy(h);
    }
}

/* Whether `backend` runs a node of this op in any case, in training. */
static bool backends_runs(const co_backend *backend, const char *op)
{
    const co_backend *const list[] = {backend, &co_backend_ref, NULL};
    const harness_mode mode = {.backends = list, .training = true};
    bool found = false;

    for (const ops_case *const *part = cases_all; *part && !found; part++)
        for (const ops_case *c = *part; c->name && !found; c++) {
            ops_case more = *c;
            co_plan *plan = NULL;
            harness *h;

            if (!strstr(c->net, op))
                continue;
            more.batch = BACKENDS_BATCH;
            h = cases_create(&more);
            assert_int_equal(harness_plan(&plan, h, &mode), CO_OK);
            for (int i = 0; i < h->graph->n_node; i++)
                found |= strcmp(h->graph->node[i].op->name, op) == 0 &&
                         strcmp(co_plan_backend(plan, i, NULL), backend->name) == 0;
            co_plan_destroy(plan);
            harness_destroy(h);
        }
    return found;
}

/* Our own linear layer has loops from AVX2 on, and `cpu` has attention in bf16 alone, which
   test_half.c runs. */
static bool backends_needs_more(const co_backend *backend, const char *op)
{
    if (backend == &co_backend_cpu && strcmp(op, "attention") == 0)
        return true;
    return (backend == &co_backend_cpu || backend == &co_backend_cpu_general) &&
           strcmp(op, "linear") == 0 && !co_isa_has(CO_ISA_AVX2);
}

/* Without this the comparison would pass for kernels that reject everything. */
static void kernels_every_one_runs_some_case(void **state)
{
    (void)state;
    for (const co_backend *const *b = co_backends; *b; b++)
        for (const co_kernel *const *k = (*b)->kernels; *k; k++)
            if (!backends_needs_more(*b, (*k)->op) && !backends_runs(*b, (*k)->op))
                fail_msg("no case runs %s of backend %s", (*k)->op, (*b)->name);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backends_every_case_agrees_with_ref),
        cmocka_unit_test(kernels_propagate_nan),
        cmocka_unit_test(cross_entropy_class_ruled_out_leaves_loss_finite),
        cmocka_unit_test(kernels_every_one_runs_some_case),
    };

    if (argc > 1)
        backends_threads = atoi(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
