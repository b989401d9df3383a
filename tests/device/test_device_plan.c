/* test_device_plan.c - a plan in device memory: inputs, kernels and results go through the device's
   queue; what it cannot run is refused. */
#include "models/models_test.h"

#include "backends/backends.h"
#include "device/mock.h"
#include "graph/plan.h"

#define BATCH  3
#define VALUES 8 /* per sample: (2, 2, 2) */

/* ---- a backend with queued kernels: flatten, and each label as its loss ---- */

static co_status queued_flatten(co_call *call, const co_run *run)
{
    (void)run;
    return co_queue_copy(call->queue, call->out[0]->data, call->in[0]->data, call->in[0]->bytes);
}

static co_status queued_loss(co_call *call, const co_run *run)
{
    (void)run;
    return co_queue_copy(call->queue, call->out[0]->data, call->in[1]->data, call->out[0]->bytes);
}

static const co_kernel flatten_kernel = {.op = "flatten", .forward = queued_flatten};
static const co_kernel loss_kernel = {.op = "cross_entropy", .forward = queued_loss};
static const co_kernel *const kernels[] = {&flatten_kernel, &loss_kernel, NULL};
static const co_backend queued = {.name = "queued", .kernels = kernels, .device = "mock"};
static const co_backend here = {.name = "here", .kernels = kernels};

static co_status make_plan(co_plan **out, const models_test *t, co_store *store,
                           const co_backend *backend, co_dtype low)
{
    const co_backend *const backends[] = {backend, NULL};
    const co_plan_options options = {
        .batch = BATCH, .backends = backends, .precision = {.low = low, .everything = true}};

    return co_plan_create(out, t->graph, store, &options);
}

static models_test make_network(void)
{
    static const co_shape sample = {3, {2, 2, 2}};

    return models_test_make("layers: [flatten]\nloss: cross_entropy", &sample, VALUES);
}

static void fill(float *value, int32_t *label, int round)
{
    for (int i = 0; i < BATCH * VALUES; i++)
        value[i] = (float)(100 * round + i);
    for (int i = 0; i < BATCH; i++)
        label[i] = 10 * round + i;
}

static void check_round(co_plan *plan, int round)
{
    static const co_run run = {0};
    float value[BATCH * VALUES], want[BATCH * VALUES];
    int32_t label[BATCH];
    const float *output = NULL, *loss = NULL;

    fill(value, label, round);
    assert_int_equal(co_plan_feed(plan, CO_FIELD_INPUT, value, sizeof(value)), CO_OK);
    assert_int_equal(co_plan_feed(plan, CO_FIELD_LABEL, label, sizeof(label)), CO_OK);
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    assert_int_equal(co_plan_results(&output, &loss, plan), CO_OK);
    fill(want, label, round);
    assert_memory_equal(output, want, sizeof(want));
    assert_memory_equal(loss, label, sizeof(label));
}

static void check_zeros(co_plan *plan)
{
    static const co_run run = {0};
    const float *output = NULL, *loss = NULL;

    assert_int_equal(co_plan_feed(plan, CO_FIELD_INPUT, NULL, BATCH * VALUES * sizeof(float)),
                     CO_OK);
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    assert_int_equal(co_plan_results(&output, &loss, plan), CO_OK);
    for (int i = 0; i < BATCH * VALUES; i++)
        assert_true(output[i] == 0);
}

static void check_plan(co_device *device, const co_backend *backend)
{
    models_test t = make_network();
    co_store *store = NULL;
    co_plan *plan = NULL;

    assert_int_equal(co_store_create_on(&store, device, t.graph->n_store, t.graph->n_buffer),
                     CO_OK);
    if (make_plan(&plan, &t, store, backend, CO_F32) != CO_OK)
        fail_msg("%s", co_error_message());
    for (int round = 1; round <= 5; round++)
        check_round(plan, round);
    check_zeros(plan);
    co_plan_destroy(plan);
    co_store_destroy(store);
    models_test_free(&t);
}

static void plan_on_device_has_results_of_host(void **state)
{
    static const mock_way ways[] = {MOCK_TWICE, MOCK_KEYS};

    (void)state;
    check_plan(NULL, &here);
    for (size_t i = 0; i < 2; i++) {
        co_device *device = NULL;

        if (mock_open(&device, ways[i]) == CO_OK)
            check_plan(device, &queued);
        else
            assert_int_equal(ways[i], MOCK_KEYS);
        mock_close(device);
    }
}

static void assert_refused(const models_test *t, co_store *store, const co_backend *backend,
                           co_dtype low, const char *message)
{
    co_plan *plan = NULL;

    assert_int_equal(make_plan(&plan, t, store, backend, low), CO_E_UNSUPPORTED);
    assert_string_equal(co_error_message(), message);
    assert_null(plan);
}

static void plan_backend_of_other_device_is_refused(void **state)
{
    models_test t = make_network();
    co_store *on_host = NULL, *on_mock = NULL;
    co_device *device = NULL;

    (void)state;
    assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    assert_int_equal(co_store_create(&on_host, t.graph->n_store, 0), CO_OK);
    assert_int_equal(co_store_create_on(&on_mock, device, t.graph->n_store, 0), CO_OK);
    assert_refused(&t, on_mock, &co_backend_ref, CO_F32,
                   "backend ref works in memory of device host, and the weights are in that of "
                   "device mock");
    assert_refused(&t, on_host, &queued, CO_F32,
                   "backend queued works in memory of device mock, and the weights are in that of "
                   "device host");
    assert_refused(&t, on_mock, &queued, CO_BF16,
                   "device mock: no backend there converts to half precision");
    co_store_destroy(on_host);
    co_store_destroy(on_mock);
    models_test_free(&t);
    mock_close(device);
}

static co_status make_and_drop(const models_test *t, co_store *store)
{
    co_plan *plan = NULL;
    co_status st = make_plan(&plan, t, store, &queued, CO_F32);

    co_plan_destroy(plan);
    return st;
}

static void plan_survives_every_failed_allocation(void **state)
{
    models_test t = make_network();
    co_device *device = NULL;
    co_store *store = NULL;
    uint64_t k = 0;
    co_status st;

    (void)state;
    assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    assert_int_equal(co_store_create_on(&store, device, t.graph->n_store, 0), CO_OK);
    do {
        co_mem_fail_at(++k);
        st = make_and_drop(&t, store);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
    } while (st != CO_OK);
    co_mem_fail_at(0);
    assert_true(k > 5);
    co_store_destroy(store);
    models_test_free(&t);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_on_device_has_results_of_host),
        cmocka_unit_test(plan_backend_of_other_device_is_refused),
        cmocka_unit_test(plan_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
