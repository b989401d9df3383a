/*
 * test_request.c - waiting for an operation that the transport's other thread completes between two
 * polls. Uses a fake transport.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>

#include "comm/comm_internal.h"

typedef struct fake {
    co_comm base;
    bool finishes; /* another thread finishes it while is_saving is called */
    bool finished;
    int failures;
} fake;

static co_request request;

static co_status fake_progress(co_comm *comm)
{
    request.done = ((fake *)comm)->finished;
    return CO_OK;
}

static bool fake_is_saving(const co_request *asked)
{
    fake *self = (fake *)asked->comm;

    self->finished = self->finishes;
    return false;
}

static void fake_describe_wait(const co_request *asked, char *out, size_t size)
{
    (void)asked;
    snprintf(out, size, "waiting");
}

static void fake_fail(co_comm *comm, int rank, co_status status, const char *cause)
{
    (void)rank;
    (void)status;
    (void)cause;
    ((fake *)comm)->failures++;
    ((fake *)comm)->finished = true; /* ends a wait that goes on */
}

static const co_comm_ops fake_ops = {
    .name = "fake",
    .progress = fake_progress,
    .describe_wait = fake_describe_wait,
    .is_saving = fake_is_saving,
    .fail = fake_fail,
};

/* How often the communicator was failed during a wait beyond its limit. */
static int failures_in_a_long_wait(bool finishes)
{
    fake comm = {.base = {.ops = &fake_ops, .size = 2, .timeout_ms = 50}, .finishes = finishes};

    request = (co_request){.comm = &comm.base};
    assert_int_equal(co_request_wait(&request), CO_OK);
    return comm.failures;
}

static void wait_for_operation_ending_at_limit_succeeds(void **state)
{
    (void)state;
    assert_int_equal(failures_in_a_long_wait(true), 0);
}

static void wait_for_operation_without_end_fails(void **state)
{
    (void)state;
    assert_int_equal(failures_in_a_long_wait(false), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_for_operation_ending_at_limit_succeeds),
        cmocka_unit_test(wait_for_operation_without_end_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
