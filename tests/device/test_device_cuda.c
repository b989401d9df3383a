/*
 * test_device_cuda.c - a GPU against the contract of ext/device.h, and its errors. With the
 * argument "standin" the driver must be the stand-in; without, it is the machine's own, if there is
 * one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda/cuda.h"
#include "device/laws.h"
#include "standin/open_gpu.h"
#include "standin/standin.h"
#include "waits.h"

static void has(const char *part)
{
    if (!strstr(co_error_message(), part))
        fail_msg("\"%s\" is not in: %s", part, co_error_message());
}

static void need_standin(void)
{
    if (standin)
        return;
    printf("skipped: it changes the stand-in's driver\n");
    skip();
}

/* The first one: nothing has opened the driver yet. */
static void probe_without_usable_driver_names_what_is_needed(void **state)
{
    co_cuda_machine machine;

    (void)state;
    need_standin();
    setenv(STANDIN_VERSION, "11040", 1);
    assert_int_equal(co_cuda_probe(&machine), CO_E_UNSUPPORTED);
    has("is for CUDA 11.4, and 12.0 is needed");
    unsetenv(STANDIN_VERSION);
    setenv(STANDIN_GPUS, "0", 1);
    assert_int_equal(co_cuda_probe(&machine), CO_E_UNSUPPORTED);
    has("CUDA_ERROR_NO_DEVICE");
    has("CUDA_VISIBLE_DEVICES");
    unsetenv(STANDIN_GPUS);
    assert_int_equal(co_cuda_probe(&machine), CO_OK);
    assert_int_equal(machine.n, 1);
    assert_string_equal(machine.gpu[0].name, "stand-in");
}

static void cuda_device_keeps_every_law(void **state)
{
    co_device *device = open_gpu();

    (void)state;
    for (const law *l = device_laws; l->name; l++)
        l->check(device);
    co_cuda_close(device);
}

static void cuda_without_memory_reports_what_was_asked(void **state)
{
    co_device *device = open_gpu(), *other = NULL;
    void *block = NULL;

    (void)state;
    assert_int_equal(co_device_alloc(&block, device, (size_t)1 << 45, CO_MEMORY_DEVICE),
                     CO_E_NOMEM);
    has("33554432 MiB of the memory of GPU 0");
    has("CUDA_ERROR_OUT_OF_MEMORY");
    assert_null(block);
    assert_int_equal(co_cuda_open(&other, &(co_cuda_options){.index = 99}), CO_E_USAGE);
    has("no GPU 99");
    co_cuda_close(device);
}

static void cuda_peak_is_what_was_held_at_once(void **state)
{
    co_device *device = open_gpu();
    const size_t before = co_device_peak(device);
    void *block[3] = {NULL};

    (void)state;
    assert_int_equal(co_device_alloc(&block[0], device, 1 << 20, CO_MEMORY_DEVICE), CO_OK);
    assert_int_equal(co_device_alloc(&block[1], device, 3 << 20, CO_MEMORY_EXCHANGED), CO_OK);
    assert_int_equal(co_device_alloc(&block[2], device, 5 << 20, CO_MEMORY_PINNED), CO_OK);
    assert_true(co_device_peak(device) >= before + (4 << 20));
    assert_true(co_device_peak(device) < before + (5 << 20));
    co_device_free(device, block[1], CO_MEMORY_EXCHANGED);
    co_device_free(device, block[2], CO_MEMORY_PINNED);
    assert_int_equal(co_device_alloc(&block[1], device, 2 << 20, CO_MEMORY_DEVICE), CO_OK);
    assert_true(co_device_peak(device) < before + (5 << 20));
    co_device_free(device, block[0], CO_MEMORY_DEVICE);
    co_device_free(device, block[1], CO_MEMORY_DEVICE);
    assert_int_equal(co_device_peak(NULL), 0);
    co_cuda_close(device);
}

static void *use_device(void *arg)
{
    static char seen[100];
    co_device *device = arg;
    co_queue *queue = NULL;
    void *block = NULL;
    co_status st = co_queue_create(&queue, device);

    if (st == CO_OK)
        st = co_device_alloc(&block, device, sizeof(seen), CO_MEMORY_DEVICE);
    if (st == CO_OK)
        st = co_queue_fill(queue, block, 7, sizeof(seen));
    if (st == CO_OK)
        st = co_queue_copy_now(queue, seen, block, sizeof(seen));
    co_queue_destroy(queue);
    co_device_free(device, block, CO_MEMORY_DEVICE);
    return st == CO_OK && seen[99] == 7 ? device : NULL;
}

static void cuda_device_serves_any_thread(void **state)
{
    co_device *device = open_gpu();
    void *done = NULL;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, use_device, device), 0);
    pthread_join(thread, &done);
    assert_ptr_equal(done, device);
    co_cuda_close(device);
}

static void cuda_failed_work_fails_every_fence(void **state)
{
    co_device *device;
    co_queue *queue = NULL, *other = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *block = NULL;
    standin_break_fn *break_gpu;

    (void)state;
    need_standin();
    device = open_gpu();
    assert_non_null(driver);
    *(void **)&break_gpu = dlsym(driver, STANDIN_BREAK);
    assert_non_null(break_gpu);
    assert_int_equal(co_queue_create(&queue, device), CO_OK);
    assert_int_equal(co_queue_create(&other, device), CO_OK);
    assert_int_equal(co_device_alloc(&block, device, 64, CO_MEMORY_DEVICE), CO_OK);
    break_gpu();
    assert_int_equal(co_queue_fill(queue, block, 1, 64), CO_OK);
    assert_int_equal(co_queue_wait(queue, WAITS_MS), CO_E_PEER);
    has("work on GPU 0 (stand-in) has failed: CUDA_ERROR_LAUNCH_FAILED");
    assert_int_equal(co_queue_wait(other, WAITS_MS), CO_E_PEER);
    co_device_free(device, block, CO_MEMORY_DEVICE);
    co_queue_destroy(queue);
    co_queue_destroy(other);
    co_cuda_close(device);
    dlclose(driver);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_without_usable_driver_names_what_is_needed),
        cmocka_unit_test(cuda_device_keeps_every_law),
        cmocka_unit_test(cuda_without_memory_reports_what_was_asked),
        cmocka_unit_test(cuda_peak_is_what_was_held_at_once),
        cmocka_unit_test(cuda_device_serves_any_thread),
        cmocka_unit_test(cuda_failed_work_fails_every_fence),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
