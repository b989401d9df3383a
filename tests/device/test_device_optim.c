/* test_device_optim.c - optimizers and clipping on a device with delayed queues give the host's
   bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/mock.h"
#include "device/optim_laws.h"

#define N 600

static co_device *open_device(void)
{
    co_device *device = NULL;

    if (mock_open(&device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    return device;
}

static void updates_on_a_late_device_have_bits_of_host(void **state)
{
    static const char *const optimizers[] = {
        "{name: sgd, lr: 1}",
        "{name: sgd, lr: 1, momentum: 0.9, nesterov: true, weight_decay: 0.01}",
        "{name: sgd, lr: 1, momentum: 0.9, dampening: 0.1, bias_weight_decay: 0.1}",
        "{name: adam, lr: 1, weight_decay: 0.01}",
        "{name: adamw, lr: 1, norm_weight_decay: 0}",
        "{name: lars, lr: 1}",
        "{name: lamb, lr: 1, exclude_norm_bias: true}",
    };
    co_device *device = open_device();

    (void)state;
    for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]); i++)
        optim_check_bits(device, optimizers[i]);
    mock_close(device);
}

static void optimizer_that_a_device_lacks_is_refused(void **state)
{
    co_device *device = open_device();
    co_store *store = NULL;
    co_config *config = NULL;
    co_optim *optim = NULL;

    (void)state;
    assert_int_equal(co_store_create_on(&store, device, N, 0), CO_OK);
    assert_int_equal(optim_make(&optim, &config, "adadelta", store), CO_E_UNSUPPORTED);
    assert_string_equal(co_error_message(),
                        "optimizer adadelta: the device mock has no arithmetic for it; it has sgd, "
                        "adam, adamw, lars, lamb");
    assert_null(optim);
    co_config_destroy(config);
    co_store_destroy(store);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_on_a_late_device_have_bits_of_host),
        cmocka_unit_test(optimizer_that_a_device_lacks_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
