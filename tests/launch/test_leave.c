/*
 * test_leave.c - ranks that end while others still work: an error at once for those that wait for
 * them, and no effect on the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cohort/ext/comm.h>
#include <cohort/launch.h>

#include "core/clock.h"
#include "core/mem.h"
#include "waits.h"

#define RANKS     4
#define LEAVER    1
#define TIMEOUT   (2 * WAITS_MS) /* must never be reached */
#define MANY      ((size_t)3 << 20)
#define PAUSE_US  200000 /* longer than a waiting rank takes to check on others */
#define MEETINGS  5      /* before it leaves */
#define REPEATS   5
#define SOME      1000
#define FAR_APART 30000 /* us between the ends of two ranks */

enum { AS_PROCESSES, AS_THREADS, AS_OWN_THREADS, WAYS };

typedef struct leaving {
    co_coll coll; /* in which the others wait */
    bool exits;   /* else it returns */
} leaving;

static co_status launch(int way, int ranks, co_rank_fn fn, void *arg)
{
    const co_launch_options options = {.ranks = ranks,
                                       .timeout_ms = TIMEOUT,
                                       .threads = way != AS_PROCESSES,
                                       .fork_one = way == AS_THREADS};

    return co_launch(&options, fn, arg);
}

/* ---- with a rank waiting ---- */

static co_status wait_in(co_comm *world, co_coll coll)
{
    float in[RANKS] = {0}, out[RANKS * RANKS];
    co_comm *part;

    switch (coll) {
    case CO_COLL_BARRIER:
        return co_comm_barrier(world);
    case CO_COLL_BCAST:
        return co_comm_bcast(world, out, 1, CO_F32, LEAVER);
    case CO_COLL_ALLGATHER:
        return co_comm_allgather(world, out, in, 1, CO_F32);
    case CO_COLL_RECV:
        return co_comm_recv(world, out, 1, CO_F32, LEAVER);
    case CO_COLL_SPLIT:
        return co_comm_split(&part, world, 0, 0);
    default:
        return co_comm_allreduce(world, out, in, 1, CO_F32, CO_SUM);
    }
}

static co_status leave_early(co_comm *world, void *arg)
{
    const leaving *l = arg;

    for (int i = 0; i < MEETINGS; i++)
        CO_TRY(wait_in(world, CO_COLL_ALLREDUCE));
    if (co_comm_rank(world) != LEAVER)
        return wait_in(world, l->coll);
    if (l->exits)
        _exit(0); /* skips the test's atexit handlers */
    return CO_OK;
}

static void check_leaving(int way, const leaving *l, const char *says)
{
    const uint64_t start = co_clock_ns();
    const co_status st = launch(way, RANKS, leave_early, (void *)l);

    if (st != CO_E_PEER || !strstr(co_error_message(), says))
        fail_msg("%d ranks, way %d, operation %d: status %d, %s", RANKS, way, (int)l->coll, (int)st,
                 st == CO_OK ? "" : co_error_message());
    assert_true(co_clock_seconds(start, co_clock_ns()) < WAITS_S);
}

static void wait_for_rank_that_returned_fails(void **state)
{
    static const co_coll colls[] = {CO_COLL_BARRIER,   CO_COLL_BCAST, CO_COLL_ALLREDUCE,
                                    CO_COLL_ALLGATHER, CO_COLL_RECV,  CO_COLL_SPLIT};

    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++)
            check_leaving(way, &(leaving){colls[i], false}, "rank 1 has left, and rank ");
}

static void wait_for_rank_that_exited_fails(void **state)
{
    (void)state;
    check_leaving(AS_PROCESSES, &(leaving){CO_COLL_ALLREDUCE, true}, "rank 1 has left, and rank ");
    check_leaving(AS_PROCESSES, &(leaving){CO_COLL_RECV, true}, "rank 1 has left, and rank ");
    check_leaving(AS_THREADS, &(leaving){CO_COLL_ALLREDUCE, true},
                  "exited with code 0 and gave no reason");
}

static co_status leave_in_the_middle(co_comm *world, void *arg)
{
    static float data[MANY]; /* large enough that rank 0 has begun before the others are missing */
    const int rank = co_comm_rank(world);

    (void)arg;
    CO_TRY(co_comm_barrier(world));
    return rank == 0 ? co_comm_send(world, data, MANY, CO_F32, LEAVER) : CO_OK;
}

static void send_to_rank_that_left_fails(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        assert_int_equal(launch(way, RANKS, leave_in_the_middle, NULL), CO_E_PEER);
        assert_non_null(strstr(co_error_message(), "rank 1 has left, and rank 0 waits for it in "
                                                   "send"));
    }
}

/* ---- with no rank waiting ---- */

/* A message in flight, and an operation that all ranks have contributed to. */
static co_status end_apart(co_comm *world, void *arg)
{
    const int rank = co_comm_rank(world), size = co_comm_size(world);
    const bool hurries = rank == 0 || *(const bool *)arg;
    float *sum = co_calloc(SOME, sizeof(*sum)), note[SOME] = {1};
    co_request *request = NULL;
    co_status st = sum ? CO_OK : CO_E_NOMEM;

    if (st == CO_OK && rank == 0)
        for (int p = 1; st == CO_OK && p < size; p++)
            st = co_comm_send(world, note, SOME, CO_F32, p);
    if (st == CO_OK)
        st = co_comm_iallreduce(&request, world, sum, note, SOME, CO_F32, CO_SUM);
    if (st == CO_OK && !hurries) /* the others may have ended by then */
        co_clock_sleep_us(PAUSE_US);
    if (st == CO_OK)
        st = co_request_wait(request);
    co_request_destroy(request);
    if (st == CO_OK && rank > 0) {
        co_clock_sleep_us((uint32_t)rank * FAR_APART);
        st = co_comm_recv(world, note, SOME, CO_F32, 0);
    }
    co_free(sum);
    return st;
}

static void leaving_at_different_times_is_no_error(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < 2 * REPEATS; i++) {
            bool hurry = i % 2;

            if (launch(way, RANKS, end_apart, &hurry) != CO_OK)
                fail_msg("way %d: %s", way, co_error_message());
        }
}

/* The root of a large broadcast leaves after its last part. */
static co_status end_after_bcast(co_comm *world, void *arg)
{
    const int rank = co_comm_rank(world);
    float *data = co_calloc(MANY, sizeof(*data));
    co_status st = data ? CO_OK : CO_E_NOMEM;

    (void)arg;
    for (size_t i = 0; st == CO_OK && rank == LEAVER && i < MANY; i++)
        data[i] = (float)(i % SOME);
    if (st == CO_OK)
        st = co_comm_bcast(world, data, MANY, CO_F32, LEAVER);
    for (size_t i = 0; st == CO_OK && i < MANY; i++)
        if (data[i] != (float)(i % SOME))
            st = co_fail(CO_E_FAILED, "element %zu is %f", i, (double)data[i]);
    co_free(data);
    return st;
}

/* The remaining ranks continue in their own communicator. */
static co_status go_on_without_one(co_comm *world, void *arg)
{
    const bool leaves = co_comm_rank(world) == LEAVER;
    co_comm *rest;
    co_status st = CO_OK;

    CO_TRY(co_comm_split(&rest, world, leaves ? -1 : 0, 0));
    if (leaves && *(const bool *)arg)
        _exit(0);
    if (leaves)
        return CO_OK;
    for (int i = 0; st == CO_OK && i < MEETINGS; i++) {
        if (co_comm_rank(rest) == i % (RANKS - 1))
            co_clock_sleep_us(PAUSE_US);
        st = co_comm_barrier(rest);
    }
    co_comm_destroy(rest);
    return st;
}

static void leaving_rank_without_waiters_is_no_error(void **state)
{
    bool exits = false;

    (void)state;
    for (int way = 0; way < WAYS; way++) {
        assert_int_equal(launch(way, RANKS, go_on_without_one, &exits), CO_OK);
        for (int i = 0; i < REPEATS; i++)
            assert_int_equal(launch(way, RANKS, end_after_bcast, NULL), CO_OK);
    }
    exits = true;
    assert_int_equal(launch(AS_PROCESSES, RANKS, go_on_without_one, &exits), CO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_for_rank_that_returned_fails),
        cmocka_unit_test(wait_for_rank_that_exited_fails),
        cmocka_unit_test(send_to_rank_that_left_fails),
        cmocka_unit_test(leaving_at_different_times_is_no_error),
        cmocka_unit_test(leaving_rank_without_waiters_is_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
