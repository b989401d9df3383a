/* test_device_ops.c - every case of the operator table on a device other than the host: queued
   kernels give the bits of the reference kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/backends.h"
#include "device/mock.h"
#include "device/mock_backend.h"
#include "device/ops_laws.h"
#include "ops/harness.h"

/* MOCK_TWICE works on every machine. */
static void device_ops_every_case_gives_the_bits_of_the_host(void **state)
{
    static const co_backend *const host[] = {&co_backend_ref, &harness_backend, NULL};
    co_device *device = NULL;
    mock_backend backend;

    (void)state;
    assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    mock_backend_init(&backend, host);
    assert_true(ops_check_table(device, &(ops_way){.backends = backend.all}) > 100);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_ops_every_case_gives_the_bits_of_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
