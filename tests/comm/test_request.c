/*
 * test_request.c - waiting for an operation that the transport's other thread completes between two
 * polls, and for one whose messages come. Uses a fake transport.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>

#include "comm/comm_internal.h"
#include "core/clock.h"

#define FAKE_WAIT_NS 20000000

typedef struct fake {
    co_comm base;
    bool finishes; /* another thread finishes it while is_saving is called */
    bool finished;
    bool delivers;   /* each poll brings a message */
    uint64_t end_ns; /* when it is finished; 0: not by itself */
    long awake;      /* it is finished once this thread has slept more often; 0: not by itself */
    int failures;
} fake;

static co_request request;

/* How often this thread has given its core away to wait for something. */
static long sleeps(void)
{
    struct rusage use;

    getrusage(RUSAGE_THREAD, &use);
    return use.ru_nvcsw;
}

static co_status fake_progress(co_comm *comm)
{
    fake *self = (fake *)comm;

    comm->arrivals += self->delivers;
    request.done = self->finished || (self->end_ns && co_clock_ns() >= self->end_ns) ||
                   (self->awake && sleeps() >= self->awake);
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
    .polled = true,
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

static void wait_without_messages_sleeps(void **state)
{
    fake comm = {.base = {.ops = &fake_ops, .size = 2, .timeout_ms = 60000}, .awake = sleeps() + 1};

    (void)state;
    request = (co_request){.comm = &comm.base};
    assert_int_equal(co_request_wait(&request), CO_OK);
    assert_int_equal(comm.failures, 0);
}

static void wait_while_messages_come_does_not_sleep(void **state)
{
    fake comm = {.base = {.ops = &fake_ops, .size = 2, .timeout_ms = 60000},
                 .delivers = true,
                 .end_ns = co_clock_ns() + FAKE_WAIT_NS};
    const long before = sleeps();

    (void)state;
    request = (co_request){.comm = &comm.base};
    assert_int_equal(co_request_wait(&request), CO_OK);
    assert_int_equal(sleeps(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_for_operation_ending_at_limit_succeeds),
        cmocka_unit_test(wait_for_operation_without_end_fails),
        cmocka_unit_test(wait_without_messages_sleeps),
        cmocka_unit_test(wait_while_messages_come_does_not_sleep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
