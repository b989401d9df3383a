/* test_device.c - the device contract on the host and the mock; on the mock also that the host
   crashes when it touches device memory, and that queued work is not done at once. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mem.h"
#include "device/laws.h"
#include "device/mock.h"
#include "waits.h"

/* Skips the test where this machine does not support `way`. */
static co_device *open_mock(mock_way way)
{
    co_device *device = NULL;
    const co_status st = mock_open(&device, way);

    if (st == CO_E_UNSUPPORTED && way == MOCK_KEYS) {
        print_message("skipped: %s\n", co_error_message());
        skip();
    }
    assert_int_equal(st, CO_OK);
    return device;
}

static void check_laws(co_device *device)
{
    for (const law *l = device_laws; l->name; l++) {
        print_message("%s: %s\n", co_device_name(device), l->name);
        l->check(device);
    }
}

static void device_host_keeps_the_laws(void **state)
{
    (void)state;
    check_laws(NULL);
    assert_true(co_device_is_host(NULL));
}

static void check_mock(mock_way way)
{
    co_device *mock = open_mock(way);

    check_laws(mock);
    assert_false(co_device_is_host(mock));
    mock_close(mock);
}

static void device_mock_with_keys_keeps_the_laws(void **state)
{
    (void)state;
    check_mock(MOCK_KEYS);
}

static void device_mock_mapped_twice_keeps_the_laws(void **state)
{
    (void)state;
    check_mock(MOCK_TWICE);
}

/* The signal that ends a child which reads or writes this byte, or 0. */
static int signal_of_touch(volatile char *at, bool write)
{
    const struct rlimit none = {0, 0};
    const pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        if (write)
            *at = 1;
        else
            (void)*at;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void check_trap(mock_way way)
{
    co_device *mock = open_mock(way);
    void *own = NULL, *pinned = NULL;

    assert_int_equal(co_device_alloc(&own, mock, 100, CO_MEMORY_DEVICE), CO_OK);
    assert_int_equal(co_device_alloc(&pinned, mock, 100, CO_MEMORY_PINNED), CO_OK);
    assert_int_equal(signal_of_touch(own, false), SIGSEGV);
    assert_int_equal(signal_of_touch(own, true), SIGSEGV);
    assert_int_equal(signal_of_touch(pinned, false), 0);
    assert_int_equal(signal_of_touch(pinned, true), 0);
    co_device_free(mock, own, CO_MEMORY_DEVICE);
    co_device_free(mock, pinned, CO_MEMORY_PINNED);
    mock_close(mock);
}

static void device_memory_with_keys_traps_host_access(void **state)
{
    (void)state;
    check_trap(MOCK_KEYS);
}

static void device_memory_mapped_twice_traps_host_access(void **state)
{
    (void)state;
    check_trap(MOCK_TWICE);
}

static void mock_open_queue(co_device **mock, co_queue **queue, char **block)
{
    void *at = NULL;

    *mock = open_mock(MOCK_TWICE);
    assert_int_equal(co_queue_create(queue, *mock), CO_OK);
    assert_int_equal(co_device_alloc(&at, *mock, 8, CO_MEMORY_PINNED), CO_OK);
    *block = at;
}

static void mock_close_queue(co_device *mock, co_queue *queue, char *block)
{
    co_queue_destroy(queue);
    co_device_free(mock, block, CO_MEMORY_PINNED);
    mock_close(mock);
}

/* CO_OK means accepted: nothing is executed before the queue gets to it. */
static void queue_accepted_work_is_not_yet_done(void **state)
{
    co_device *mock;
    co_queue *queue = NULL;
    co_fence *fence = NULL;
    char *block;
    bool reached = true;

    (void)state;
    mock_open_queue(&mock, &queue, &block);
    assert_int_equal(co_fence_create(&fence, mock), CO_OK);
    mock_hold(mock);
    assert_int_equal(co_queue_fill(queue, block, 7, 8), CO_OK);
    assert_int_equal(co_fence_record(fence, queue), CO_OK);
    assert_int_equal(co_fence_reached(&reached, fence), CO_OK);
    assert_false(reached);
    assert_int_equal(block[0], 0);
    assert_int_equal(mock_done(mock), 0);
    assert_int_equal(co_fence_wait(fence, 20), CO_E_TIMEOUT);
    assert_int_equal(co_queue_wait(queue, 20), CO_E_TIMEOUT);
    mock_go_on(mock);
    assert_int_equal(co_queue_follow(NULL, fence), CO_OK); /* the host waits */
    assert_int_equal(block[0], 7);
    assert_int_equal(mock_done(mock), 1);
    co_fence_destroy(fence);
    mock_close_queue(mock, queue, block);
}

static void queue_of_failed_device_ends_every_wait(void **state)
{
    co_device *mock;
    co_queue *queue = NULL;
    char *block;

    (void)state;
    mock_open_queue(&mock, &queue, &block);
    mock_break(mock);
    assert_int_equal(co_queue_fill(queue, block, 7, 8), CO_OK);
    assert_int_equal(co_queue_wait(queue, WAITS_MS), CO_E_FAILED);
    assert_int_equal(co_queue_copy_now(queue, block, block + 4, 4), CO_E_FAILED);
    mock_close_queue(mock, queue, block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_host_keeps_the_laws),
        cmocka_unit_test(device_mock_with_keys_keeps_the_laws),
        cmocka_unit_test(device_mock_mapped_twice_keeps_the_laws),
        cmocka_unit_test(device_memory_with_keys_traps_host_access),
        cmocka_unit_test(device_memory_mapped_twice_traps_host_access),
        cmocka_unit_test(queue_accepted_work_is_not_yet_done),
        cmocka_unit_test(queue_of_failed_device_ends_every_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
