/*
 * test_device_ema.c - the moving average of weights in device memory: the host's bits, and its
 * arrays are the device's as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "device/mock.h"
#include "step/ema.h"
#include "tensor/values.h"

#define N        500
#define N_BUFFER 30

static void set(co_store *store, uint64_t step)
{
    const co_rng rng = {.seed = step, .stream = CO_RNG_TEST};
    float values[N];

    co_rng_normal(values, &rng, 0, N);
    assert_int_equal(co_store_write(store, CO_STORE_PARAM, 0, N, values), CO_OK);
    assert_int_equal(co_store_write(store, CO_STORE_BUFFER, 0, N_BUFFER, values), CO_OK);
}

/* Writes the average over some steps to `param` and `buffer`. */
static void train(float param[N], float buffer[N_BUFFER], co_device *device)
{
    const co_ema_options options = {.decay = 0.9, .every = 2, .warmup = true};
    co_store *store = NULL;
    co_ema *ema = NULL;

    assert_int_equal(co_store_create_on(&store, device, N, N_BUFFER), CO_OK);
    set(store, 0);
    assert_int_equal(co_ema_create(&ema, &options, store), CO_OK);
    for (uint64_t step = 1; step <= 7; step++) {
        set(store, step);
        co_ema_begin(ema, store, step);
        assert_int_equal(co_values_send(store), CO_OK);
        co_ema_update(ema, store);
    }
    co_ema_swap(ema, store, true);
    assert_int_equal(co_store_read(store, CO_STORE_PARAM, 0, N, param), CO_OK);
    assert_int_equal(co_store_read(store, CO_STORE_BUFFER, 0, N_BUFFER, buffer), CO_OK);
    co_ema_destroy(ema);
    co_store_destroy(store);
}

static void ema_on_device_has_bits_of_host(void **state)
{
    float want[N], want_buffer[N_BUFFER];

    (void)state;
    train(want, want_buffer, NULL);
    for (int way = MOCK_KEYS; way <= MOCK_TWICE; way++) {
        float got[N], got_buffer[N_BUFFER];
        co_device *device = NULL;

        if (mock_open(&device, (mock_way)way) != CO_OK)
            continue;
        train(got, got_buffer, device);
        assert_memory_equal(got, want, sizeof(got));
        assert_memory_equal(got_buffer, want_buffer, sizeof(got_buffer));
        mock_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ema_on_device_has_bits_of_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
