/*
 * test_device_vector.c - vector operations on device memory through delayed queues: every entry of
 * ext/vector.h, results the host waits for, and a captured step.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/mock.h"
#include "device/vector_laws.h"
#include "optim/optim.h"
#include "tensor/values.h"

#define N 1000

static co_device *open_device(mock_way way)
{
    co_device *device = NULL;

    return mock_open(&device, way) == CO_OK ? device : NULL;
}

static void vector_on_device_has_bits_of_host(void **state)
{
    (void)state;
    for (int way = MOCK_KEYS; way <= MOCK_TWICE; way++) {
        co_device *device = open_device((mock_way)way);

        if (device)
            vector_check_bits(device);
        mock_close(device);
    }
}

static void vector_captured_and_replayed_has_bits_of_host(void **state)
{
    co_device *device = open_device(MOCK_TWICE);

    (void)state;
    assert_non_null(device);
    vector_check_capture(device);
    mock_close(device);
}

static void store_results_wait_for_work_before(void **state)
{
    co_device *device = open_device(MOCK_TWICE);
    co_store *store = NULL;
    float grad[N], most = 0;
    co_step_values found;

    (void)state;
    assert_non_null(device);
    assert_int_equal(co_store_create_on(&store, device, N, 0), CO_OK);
    for (size_t i = 0; i < N; i++)
        grad[i] = i % 2 ? 3 : -3;
    assert_int_equal(co_store_write(store, CO_STORE_GRAD, 0, N, grad), CO_OK);
    store->vector->scale(store->queue, store->grad, 2, store->grad, N);
    assert_int_equal(co_store_max_abs(&most, store, store->grad, N), CO_OK);
    assert_true(most == 6);
    co_values_given(store)->clip_norm = 1;
    assert_int_equal(co_values_send(store), CO_OK);
    co_clip_norm(store, true);
    assert_int_equal(co_values_read(&found, store), CO_OK);
    assert_true(found.max_abs == 6);
    assert_true(found.norm == sqrt(36.0 * N));
    assert_true(found.rule.scale < 1);
    mock_break(device);
    assert_int_equal(co_store_max_abs(&most, store, store->grad, N), CO_E_FAILED);
    co_clip_norm(store, false);
    assert_int_equal(co_values_read(&found, store), CO_E_FAILED);
    co_store_destroy(store);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_on_device_has_bits_of_host),
        cmocka_unit_test(vector_captured_and_replayed_has_bits_of_host),
        cmocka_unit_test(store_results_wait_for_work_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
