/* test_device_values.c - step values on a device with delayed queues: each step sees its own, with
   the host's bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "device/mock.h"
#include "tensor/values.h"

#define STEPS 24
#define N     40

static co_device *open_device(void)
{
    co_device *device = NULL;

    if (mock_open(&device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    return device;
}

static co_store *make_store(co_device *device)
{
    co_store *store = NULL;

    assert_int_equal(co_store_create_on(&store, device, N, 0), CO_OK);
    return store;
}

/* Queues what a step queues. Gradients of steps 5, 6 and 11 and the loss of step 7 are not
   finite. */
static void step(co_store *store, uint64_t i, float *grad)
{
    const co_loss_scale_rules rules = {
        .on = true, .dynamic = true, .min_scale = 1, .max_scale = 1024, .window = 4};
    const co_vector_ops *vector = store->vector;
    co_step_given *given = co_values_given(store);
    co_step_values *values = store->values;

    given->step = i;
    given->samples = 10 + i;
    given->lr = 1.0 / (double)(i + 1);
    given->clip_norm = i % 2 ? 3 : 0;
    given->clip_value = i % 3 ? 0.5 : 0;
    assert_int_equal(co_values_send(store), CO_OK);
    assert_int_equal(co_values_send(store), CO_OK); /* unchanged */
    grad[0] = i == 5 || i == 6 || i == 11 ? INFINITY : (float)i;
    grad[1] = (float)i / 3;
    assert_int_equal(co_queue_copy(store->queue, store->grad, grad, 2 * sizeof(*grad)), CO_OK);
    if (i == 7)
        assert_int_equal(co_queue_fill(store->queue, &values->bad_loss, 1, 1), CO_OK);
    vector->max_abs(store->queue, &values->max_abs, store->grad, N);
    vector->step(store->queue, values, CO_STEP_FOUND, NULL);
    vector->sum_squares(store->queue, &values->sum_squares, NULL, store->grad, N, NULL);
    vector->step(store->queue, values, CO_STEP_CLIP, NULL);
    vector->step(store->queue, values, CO_STEP_COUNT, NULL);
    vector->step(store->queue, values, CO_STEP_END, &rules);
}

static void run(co_step_values *out, co_device *device)
{
    const co_loss_scale first = {.scale = 256};
    co_store *store = make_store(device);
    co_step_values *seen = NULL, now;
    float *grad = NULL;
    void *at[2] = {NULL};

    assert_int_equal(co_device_alloc(&at[0], device, STEPS * sizeof(*seen), CO_MEMORY_PINNED),
                     CO_OK);
    assert_int_equal(co_device_alloc(&at[1], device, STEPS * 2 * sizeof(*grad), CO_MEMORY_PINNED),
                     CO_OK);
    seen = at[0];
    grad = at[1];
    assert_int_equal(co_values_set(store, 7, &first), CO_OK);
    for (uint64_t i = 0; i < STEPS; i++) {
        step(store, i, &grad[2 * i]);
        assert_int_equal(co_queue_copy(store->queue, &seen[i], store->values, sizeof(*seen)),
                         CO_OK);
    }
    assert_int_equal(co_values_read(&now, store), CO_OK);
    assert_memory_equal(&now, &seen[STEPS - 1], sizeof(now));
    memcpy(out, seen, STEPS * sizeof(*seen));
    co_store_destroy(store);
    co_device_free(device, at[0], CO_MEMORY_PINNED);
    co_device_free(device, at[1], CO_MEMORY_PINNED);
}

static void values_of_a_late_device_are_those_of_the_host(void **state)
{
    static co_step_values host[STEPS], mock[STEPS];
    co_device *device = open_device();

    (void)state;
    run(host, NULL);
    run(mock, device);
    assert_memory_equal(mock, host, sizeof(host));
    for (uint64_t i = 0; i < STEPS; i++) {
        const bool bad = i == 5 || i == 6 || i == 7 || i == 11;

        assert_int_equal(host[i].given.step, i);
        assert_int_equal(host[i].found_inf, bad);
        assert_true(isfinite(host[i].norm) || i != 7);
    }
    assert_int_equal(host[STEPS - 1].update, 7 + STEPS - 4);
    assert_int_equal(host[STEPS - 1].loss_scale.skipped, 4);
    assert_true(host[3].loss_scale.scale == 512 && host[7].loss_scale.scale == 64);
    mock_close(device);
}

static void scale_of_gradients_follows_the_loss_scale(void **state)
{
    const co_loss_scale scale = {.scale = 128};
    co_store *store = make_store(NULL);

    (void)state;
    assert_true(store->values->rule.scale == 1 && isinf(store->values->rule.limit));
    assert_true(store->values->grad_scale == 0 && store->values->update == 1);
    assert_int_equal(co_values_set(store, 1, &scale), CO_OK);
    co_values_given(store)->samples = 64;
    co_values_given(store)->clip_value = 0.25;
    assert_int_equal(co_values_send(store), CO_OK);
    assert_true(store->values->grad_scale == 2);
    assert_true(store->values->rule.scale == 1.0f / 128 && store->values->rule.limit == 0.25f);
    co_store_destroy(store);
}

static void values_survive_every_failed_allocation(void **state)
{
    co_device *device = open_device();
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_store *store = NULL;

        co_mem_fail_at(++k);
        st = co_store_create_on(&store, device, N, 0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        co_store_destroy(store);
    } while (st != CO_OK);
    co_mem_fail_at(0);
    assert_true(k > 6);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_a_late_device_are_those_of_the_host),
        cmocka_unit_test(scale_of_gradients_follows_the_loss_scale),
        cmocka_unit_test(values_survive_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
