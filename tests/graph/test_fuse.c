/*
 * test_fuse.c - which nodes are fused: those directly after a node whose kernel accepts them, as
 * many as it accepts, and none whose result has another reader.
 *
 * The kernel here is a batch norm that only records its calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backends.h"
#include "graph/plan.h"
#include "ops/ops.h"

#define BATCH 2

static bool fuses_all(const co_call *call)
{
    (void)call;
    return true;
}

static bool fuses_one(const co_call *call)
{
    return !call->fused[1];
}

static co_status plan_adding(co_call *call)
{
    call->adds_gradients = true;
    return CO_OK;
}

static co_status do_nothing(co_call *call, const co_run *run)
{
    (void)call;
    (void)run;
    return CO_OK;
}

#define NOTING(id, ...)                                                                            \
    static const co_kernel id##_kernel = {                                                         \
        .op = "batchnorm", .forward = do_nothing, .backward = do_nothing, __VA_ARGS__};            \
    static const co_kernel *const id##_kernels[] = {&id##_kernel, NULL};                           \
    static const co_backend id##_backend = {.name = #id, .kernels = id##_kernels}

NOTING(all, .fuses = fuses_all, .plan = plan_adding);
NOTING(one, .fuses = fuses_one);
NOTING(none, .fuses = NULL);

/* Pointwise with two inputs, but no sum. */
static co_status shape_of_first(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    *out = in[0];
    return CO_OK;
}

static const co_op product = {.name = "product",
                              .n_in = 2,
                              .n_out = 1,
                              .grad_in = 1 | 2,
                              .pointwise = true,
                              .shape = shape_of_first};
static const co_kernel product_kernel = {
    .op = "product", .forward = do_nothing, .backward = do_nothing};
static const co_kernel *const product_kernels[] = {&all_kernel, &product_kernel, NULL};
static const co_backend product_backend = {.name = "product", .kernels = product_kernels};

static int add(co_graph *g, const co_op *op, int a, int b)
{
    const co_batchnorm_attr norm = {.eps = 1e-5, .momentum = 0.1};
    const _Alignas(64) char zeros[256] = {0};
    const int in[] = {a, b};
    int out = -1;

    assert_true(op->attr_size <= sizeof(zeros));
    assert_int_equal(
        co_graph_add(&out, g, op, NULL, op == &co_op_batchnorm ? (const void *)&norm : zeros, in),
        CO_OK);
    return out;
}

/* x -> norm -> relu -> norm -> + -> relu -> flatten; the sum adds the first relu's output. With
   `also`, the first norm's result has another reader. */
static co_graph *make_graph(bool also)
{
    const co_shape sample = {3, {3, 2, 2}};
    const co_cross_entropy_attr loss = {0};
    co_graph *g = NULL;
    int x, y, z;

    assert_int_equal(co_graph_create(&g), CO_OK);
    assert_int_equal(co_graph_add_input(&x, g, CO_FIELD_INPUT, &sample, CO_F32), CO_OK);
    x = add(g, &co_op_batchnorm, x, 0);
    y = add(g, &co_op_relu, x, 0);
    z = add(g, &co_op_batchnorm, y, 0);
    z = add(g, &co_op_add, y, z);
    if (also)
        z = add(g, &co_op_add, x, z);
    z = add(g, &co_op_relu, z, 0);
    z = add(g, &co_op_flatten, z, 0);
    assert_int_equal(co_graph_add_loss(&z, g, &co_op_cross_entropy, NULL, &loss, z), CO_OK);
    assert_int_equal(co_graph_finish(g), CO_OK);
    return g;
}

/* "batchnorm+relu batchnorm+add+relu ..." of the forward or backward steps. */
static void write_steps(char *out, const co_plan *plan, bool backward)
{
    char *at = out;

    *out = '\0';
    for (int s = 0; s < co_plan_step_count(plan); s++) {
        co_plan_step step;

        co_plan_step_at(&step, plan, s);
        if (step.backward != backward)
            continue;
        at = stpcpy(stpcpy(at, at > out ? " " : ""), step.call->op->name);
        for (int i = 0; step.call->fused[i]; i++)
            at = stpcpy(stpcpy(at, "+"), step.call->fused[i]->name);
    }
}

typedef struct fuse_case {
    const co_backend *backend;
    bool also;
    const char *forward, *backward;
} fuse_case;

static const fuse_case cases[] = {
    {&all_backend, false, "batchnorm+relu batchnorm+add+relu flatten cross_entropy",
     "cross_entropy flatten batchnorm+add+relu batchnorm+relu"},
    {&all_backend, true, "batchnorm relu batchnorm+add+add relu flatten cross_entropy",
     "cross_entropy flatten relu batchnorm+add+add add relu batchnorm"},
    {&one_backend, false, "batchnorm+relu batchnorm+add relu flatten cross_entropy",
     "cross_entropy flatten relu batchnorm+add add batchnorm+relu"},
    {&none_backend, false, "batchnorm relu batchnorm add relu flatten cross_entropy",
     "cross_entropy flatten relu add batchnorm add relu batchnorm"},
};

static co_status note_range(void *arg, size_t begin, size_t end)
{
    size_t *done = arg;

    assert_int_equal(begin, *done);
    *done = end;
    return CO_OK;
}

static void check_case(const fuse_case *c, bool no_reuse)
{
    const co_backend *const list[] = {c->backend, &co_backend_ref, NULL};
    const co_plan_options options = {
        .batch = BATCH, .training = true, .backends = list, .no_reuse = no_reuse};
    const co_step_values values = {.grad_scale = 1};
    const co_run run = {.values = &values};
    co_graph *g = make_graph(c->also);
    co_store *store = NULL;
    co_plan *plan = NULL;
    char steps[256];
    size_t done = 0;

    assert_int_equal(co_store_create(&store, g->n_store, g->n_buffer), CO_OK);
    assert_int_equal(co_plan_create(&plan, g, store, &options), CO_OK);
    write_steps(steps, plan, false);
    assert_string_equal(steps, c->forward);
    write_steps(steps, plan, true);
    assert_string_equal(steps, c->backward);
    memset(co_plan_input(plan, CO_FIELD_LABEL), 0, BATCH * sizeof(int32_t));
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    assert_int_equal(co_plan_backward(plan, &run, note_range, &done), CO_OK);
    assert_int_equal(done, store->n);
    co_plan_destroy(plan);
    co_store_destroy(store);
    co_graph_destroy(g);
}

static void fuse_supported_chain_is_one_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(&cases[i], false);
        check_case(&cases[i], true);
    }
}

/* The second norm's call reads the first one's output and gives it a gradient; the first gets the
   sum of both. */
static void fuse_sum_keeps_both_gradients(void **state)
{
    const co_backend *const list[] = {&all_backend, &co_backend_ref, NULL};
    const co_plan_options options = {.batch = BATCH, .training = true, .backends = list};
    co_graph *g = make_graph(false);
    co_store *store = NULL;
    co_plan *plan = NULL;
    co_plan_step first, second, last;

    (void)state;
    assert_int_equal(co_store_create(&store, g->n_store, g->n_buffer), CO_OK);
    assert_int_equal(co_plan_create(&plan, g, store, &options), CO_OK);
    co_plan_step_at(&first, plan, 0);
    co_plan_step_at(&second, plan, 1);
    co_plan_step_at(&last, plan, 2);
    assert_int_equal(first.call->n_in, 1);
    assert_int_equal(second.call->n_in, 2);
    assert_ptr_equal(second.call->in[0], first.call->out[0]);
    assert_ptr_equal(second.call->in[1], first.call->out[0]);
    assert_ptr_equal(last.call->in[0], second.call->out[0]);
    assert_ptr_equal(second.call->grad_out[0], last.call->grad_in[0]);
    assert_non_null(first.call->grad_out_extra);
    assert_true(first.call->grad_out[0] != first.call->grad_out_extra);
    for (int i = 0; i < 2; i++)
        assert_true(second.call->grad_in[i] == first.call->grad_out[0] ||
                    second.call->grad_in[i] == first.call->grad_out_extra);
    assert_null(second.call->grad_out_extra);
    assert_null(first.call->grad_in[0]);
    co_plan_destroy(plan);
    co_store_destroy(store);
    co_graph_destroy(g);
}

/* A kernel that accepts a fused op of two inputs would add them. */
static void fuse_op_of_two_inputs_but_sum_is_not_offered(void **state)
{
    const co_backend *const list[] = {&product_backend, &co_backend_ref, NULL};
    const co_plan_options options = {.batch = BATCH, .training = true, .backends = list};
    const co_shape sample = {3, {3, 2, 2}};
    const co_cross_entropy_attr loss = {0};
    co_graph *g = NULL;
    co_store *store = NULL;
    co_plan *plan = NULL;
    char steps[256];
    int x;

    (void)state;
    assert_int_equal(co_graph_create(&g), CO_OK);
    assert_int_equal(co_graph_add_input(&x, g, CO_FIELD_INPUT, &sample, CO_F32), CO_OK);
    x = add(g, &co_op_relu, x, 0);
    x = add(g, &product, add(g, &co_op_batchnorm, x, 0), x);
    x = add(g, &co_op_flatten, x, 0);
    assert_int_equal(co_graph_add_loss(&x, g, &co_op_cross_entropy, NULL, &loss, x), CO_OK);
    assert_int_equal(co_graph_finish(g), CO_OK);
    assert_int_equal(co_store_create(&store, g->n_store, g->n_buffer), CO_OK);
    assert_int_equal(co_plan_create(&plan, g, store, &options), CO_OK);
    write_steps(steps, plan, false);
    assert_string_equal(steps, "relu batchnorm product flatten cross_entropy");
    co_plan_destroy(plan);
    co_store_destroy(store);
    co_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fuse_supported_chain_is_one_call),
        cmocka_unit_test(fuse_sum_keeps_both_gradients),
        cmocka_unit_test(fuse_op_of_two_inputs_but_sum_is_not_offered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
