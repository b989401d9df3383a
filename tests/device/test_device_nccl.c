/*
 * test_device_nccl.c - what is on GPUs of several ranks goes by NCCL, with the results that it has
 * through the host's memory; calls that differ, ranks that are late and ranks that die are reported
 * by name, and no rank hangs. The same where operations are captured and replayed. On the stand-in
 * of three GPUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cohort/launch.h>

#include "comm/captured.h"
#include "comm/nccl.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "comm/watch.h"
#include "core/clock.h"
#include "device/cuda/cuda.h"
#include "device/device.h"
#include "waits.h"

#define RANKS  3
#define COUNT  3000
#define LEAVES 7

/* A rank with its GPU, its queue and room for results, there and here. */
typedef struct rank {
    co_comm *comm;
    co_device *device;
    co_queue *queue;
    float *there[2], here[2][RANKS * COUNT], seen[RANKS * COUNT];
    co_tree *tree;
    co_fence *done;
    co_comm_captured *captured;
    size_t count; /* of the second operation of a captured step */
    bool more;    /* a captured step has a third one */
} rank;

static const size_t bytes = RANKS * COUNT * sizeof(float);

static co_status rank_open(rank *r, co_comm *comm)
{
    const co_cuda_options options = {.index = co_comm_rank(comm)};

    *r = (rank){.comm = comm};
    CO_TRY(co_cuda_open(&r->device, &options));
    CO_TRY(co_nccl_open(comm, r->device));
    CO_TRY(co_queue_create(&r->queue, r->device));
    CO_TRY(co_fence_create(&r->done, r->device));
    r->count = COUNT;
    CO_TRY(co_tree_create(&r->tree, LEAVES, co_comm_size(comm)));
    for (int i = 0; i < 2; i++) {
        void *block = NULL;

        CO_TRY(co_device_alloc(&block, r->device, bytes, CO_MEMORY_DEVICE));
        r->there[i] = block;
    }
    return CO_OK;
}

static void rank_close(rank *r)
{
    co_comm_captured_destroy(r->captured);
    co_comm_release_devices(r->comm);
    for (int i = 0; i < 2; i++)
        co_device_free(r->device, r->there[i], CO_MEMORY_DEVICE);
    co_tree_destroy(r->tree);
    co_fence_destroy(r->done);
    co_queue_destroy(r->queue);
    co_cuda_close(r->device);
}

/* The operation there, and on the host; what they leave is the same. Of sums in an order of NCCL's
   own with whole numbers, which any order adds up alike. */
static co_status rank_compare(rank *r, co_coll_args args, bool in_place)
{
    const void *here[CO_TREE_MAX_PARTS], *there[CO_TREE_MAX_PARTS];
    const bool tree = args.coll == CO_COLL_TREE;

    for (int i = 0; i < RANKS * COUNT; i++) {
        r->here[0][i] = (float)((i * 7 + r->comm->rank * 13) % 31) / (tree ? 3 : 1);
        r->here[1][i] = -1;
    }
    for (int i = 0; i < 2; i++)
        CO_TRY(co_queue_copy(r->queue, r->there[i], r->here[i], bytes));
    for (int i = 0; tree && i < co_tree_parts(r->tree, r->comm->rank); i++) {
        here[i] = r->here[0] + i * 50;
        there[i] = r->there[0] + i * 50;
    }
    args.tree = r->tree;
    args.queue = r->queue;
    args.in = tree ? (const void *)there : r->there[0];
    args.out = r->there[in_place ? 0 : 1];
    CO_TRY(co_comm_enqueue_run(r->comm, &args));
    CO_TRY(co_queue_copy_now(r->queue, r->seen, args.out, bytes));
    args.queue = NULL;
    args.in = tree ? (const void *)here : r->here[0];
    args.out = r->here[in_place ? 0 : 1];
    CO_TRY(co_comm_enqueue_run(r->comm, &args));
    if (memcmp(r->seen, args.out, bytes) != 0)
        return co_fail(CO_E_FAILED, "%s differs from the host's", co_comm_coll_name(args.coll));
    return CO_OK;
}

static co_status collectives(rank *r)
{
    const co_coll_args sum = {.coll = CO_COLL_ALLREDUCE, .count = COUNT, .op = CO_SUM};
    const co_coll_args gather = {.coll = CO_COLL_ALLGATHER, .count = COUNT};
    const co_coll_args scatter = {.coll = CO_COLL_REDUCE_SCATTER, .count = COUNT, .op = CO_SUM};
    const co_coll_args bcast = {.coll = CO_COLL_BCAST, .count = COUNT, .peer = RANKS - 1};
    co_coll_args tree = {.coll = CO_COLL_TREE, .count = COUNT - 5, .op = CO_SUM};

    for (int round = 0; round < 2; round++) {
        CO_TRY(rank_compare(r, sum, true));
        CO_TRY(rank_compare(r, gather, false));
        CO_TRY(rank_compare(r, scatter, false));
        CO_TRY(rank_compare(r, bcast, true));
        CO_TRY(rank_compare(r, tree, false));
        tree.count = 20; /* some ranks add up nothing */
    }
    return CO_OK;
}

/* Rank 1 calls something else. */
static co_status other_count(rank *r)
{
    co_coll_args sum = {.coll = CO_COLL_ALLREDUCE, .op = CO_SUM, .queue = r->queue};

    sum.in = sum.out = r->there[0];
    sum.count = r->comm->rank == 1 ? 9 : 10;
    return co_comm_enqueue_run(r->comm, &sum);
}

/* Rank 1 does not call it. */
static co_status late(rank *r)
{
    co_coll_args sum = {.coll = CO_COLL_ALLREDUCE, .count = 10, .op = CO_SUM, .queue = r->queue};

    sum.in = sum.out = r->there[0];
    CO_TRY(co_comm_set_timeout(r->comm, 400));
    if (r->comm->rank == 1)
        pause();
    return co_comm_enqueue_run(r->comm, &sum);
}

static co_status killed(rank *r)
{
    co_coll_args sum = {.coll = CO_COLL_ALLREDUCE, .count = 10, .op = CO_SUM, .queue = r->queue};

    sum.in = sum.out = r->there[0];
    for (int step = 0; step < 100; step++) {
        if (r->comm->rank == 1 && step == 3)
            raise(SIGKILL);
        CO_TRY(co_comm_enqueue_run(r->comm, &sum));
    }
    return CO_OK;
}

/* ---- captured steps ---- */

/* A sum in place, one in tree order of it, and copies that run meanwhile. */
static co_status step_work(void *arg)
{
    const rank *r = arg;
    const void *part[CO_TREE_MAX_PARTS];
    co_coll_args sum = {.coll = CO_COLL_ALLREDUCE,
                        .in = r->there[0],
                        .out = r->there[0],
                        .count = 10,
                        .op = CO_SUM,
                        .queue = r->queue};
    co_coll_args tree = {.coll = CO_COLL_TREE,
                         .in = (const void *)part,
                         .out = r->there[1],
                         .count = r->count,
                         .op = CO_SUM,
                         .tree = r->tree,
                         .queue = r->queue};
    co_request *request = NULL;

    for (int i = 0; i < co_tree_parts(r->tree, r->comm->rank); i++)
        part[i] = r->there[0] + 10 + i * 50;
    CO_TRY(co_comm_enqueue(&request, r->comm, &sum));
    CO_TRY(co_queue_copy(r->queue, r->there[1] + COUNT, r->there[0] + COUNT, 64));
    CO_TRY(co_comm_enqueue_run(r->comm, &tree));
    CO_TRY(co_request_order(request, r->queue));
    co_request_destroy(request);
    sum.count = 0;
    CO_TRY(co_comm_enqueue_run(r->comm, &sum));
    return r->more ? co_comm_enqueue_run(r->comm, &tree) : CO_OK;
}

/* Each number of there[0] is `value` on this rank. */
static co_status step_fill(rank *r, float value)
{
    for (int i = 0; i < RANKS * COUNT; i++)
        r->here[0][i] = value;
    return co_queue_copy(r->queue, r->there[0], r->here[0], bytes);
}

static co_status step_give(rank *r, uint64_t step)
{
    co_comm_give give = r->captured ? CO_GIVE_REPLAY : CO_GIVE_CAPTURE;

    CO_TRY(co_comm_agree(&give, r->comm, step, 3, r->captured));
    if (give == CO_GIVE_CAPTURE)
        CO_TRY(co_comm_capture(&r->captured, r->comm, r->queue, step_work, r));
    CO_TRY(co_comm_replay(r->captured, r->queue));
    return co_fence_record(r->done, r->queue);
}

static co_status step_capture_first(rank *r)
{
    CO_TRY(step_fill(r, 1));
    CO_TRY(step_work(r));
    CO_TRY(step_fill(r, 1));
    CO_TRY(step_give(r, 1));
    return co_comm_wait_fence(r->comm, r->done);
}

static co_status replays(rank *r)
{
    const uint64_t before = co_comm_bytes_sent(r->comm);
    uint64_t sent;

    CO_TRY(step_capture_first(r));
    sent = co_comm_bytes_sent(r->comm) - before;
    for (int step = 2; step < 20; step++) {
        const float own = (float)(step * (r->comm->rank + 1)), all = (float)step * 6;
        float leaves = 0;

        for (int p = 0; p < RANKS; p++)
            leaves += (float)(step * co_tree_parts(r->tree, p) * (p + 1));
        CO_TRY(step_fill(r, own));
        CO_TRY(step_give(r, (uint64_t)step));
        CO_TRY(co_comm_wait_fence(r->comm, r->done));
        CO_TRY(co_queue_copy_now(r->queue, r->seen, r->there[0], bytes));
        if (r->seen[0] != all || r->seen[9] != all || r->seen[10] != own)
            return co_fail(CO_E_FAILED, "step %d: %g and %g are a sum", step, (double)r->seen[0],
                           (double)r->seen[10]);
        CO_TRY(co_queue_copy_now(r->queue, r->seen, r->there[1], bytes));
        if (r->seen[0] != leaves || r->seen[COUNT - 1] != leaves || r->seen[COUNT] != own)
            return co_fail(CO_E_FAILED, "step %d: %g is a sum in tree order", step,
                           (double)r->seen[0]);
    }
    if (co_comm_bytes_sent(r->comm) - before != sent / 2 * 20)
        return co_fail(CO_E_FAILED, "replays are not counted as sent");
    return CO_OK;
}

static co_status captures_other_count(rank *r)
{
    CO_TRY(step_fill(r, 1));
    CO_TRY(step_work(r));
    r->count -= r->comm->rank == 1;
    return step_give(r, 1);
}

static co_status captures_more(rank *r)
{
    CO_TRY(step_fill(r, 1));
    CO_TRY(step_work(r));
    r->more = r->comm->rank == 2;
    return step_give(r, 1);
}

static co_status captures_host(rank *r)
{
    float one = 1;

    return co_comm_allreduce(r->comm, &one, &one, 1, CO_F32, CO_SUM);
}

static co_status body_for_host(void *arg)
{
    return captures_host(arg);
}

static co_status captures_work_of_host(rank *r)
{
    return co_comm_capture(&r->captured, r->comm, r->queue, body_for_host, r);
}

static co_status is_at_another_step(rank *r)
{
    CO_TRY(step_capture_first(r));
    return step_give(r, r->comm->rank == 1 ? 8 : 7);
}

/* Rank 1 is where it can only do the step's work as it is. */
static co_status gives_less(rank *r)
{
    co_comm_give give = r->comm->rank == 1 ? CO_GIVE_PLAINLY : CO_GIVE_REPLAY;

    CO_TRY(step_capture_first(r));
    CO_TRY(co_comm_agree(&give, r->comm, 2, 3, r->captured));
    return give == CO_GIVE_PLAINLY ? CO_OK : co_fail(CO_E_FAILED, "ranks give different work");
}

/* Until others have given up. */
static co_status stall(rank *r)
{
    const uint64_t start_ns = co_clock_ns();

    while (waits_more(start_ns)) {
        CO_TRY(co_comm_progress(r->comm));
        co_clock_sleep_us(1000);
    }
    return CO_OK;
}

static co_status replays_late(rank *r)
{
    CO_TRY(step_capture_first(r));
    CO_TRY(co_comm_set_timeout(r->comm, 400));
    for (uint64_t step = 2; step < 20; step++) {
        if (r->comm->rank == 1 && step == 4)
            return stall(r);
        CO_TRY(step_give(r, step));
    }
    return co_comm_wait_fence(r->comm, r->done);
}

/* Rank 1 agrees, and gives its GPU nothing. */
static co_status replays_not(rank *r)
{
    co_comm_give give = CO_GIVE_REPLAY;

    CO_TRY(step_capture_first(r));
    CO_TRY(co_comm_set_timeout(r->comm, 400));
    CO_TRY(co_comm_agree(&give, r->comm, 2, 3, r->captured));
    if (r->comm->rank == 1)
        return stall(r);
    CO_TRY(co_comm_replay(r->captured, r->queue));
    CO_TRY(co_fence_record(r->done, r->queue));
    return co_comm_wait_fence(r->comm, r->done);
}

static co_status replays_killed(rank *r)
{
    CO_TRY(step_capture_first(r));
    for (uint64_t step = 2; step < 20; step++) {
        CO_TRY(step_give(r, step));
        if (r->comm->rank == 1 && step == 4)
            raise(SIGKILL);
        CO_TRY(co_comm_wait_fence(r->comm, r->done));
    }
    return CO_OK;
}

static co_status run_rank(co_comm *comm, void *arg)
{
    co_status (*const *body)(rank * r) = arg;
    static rank r;
    co_status st = rank_open(&r, comm);

    if (st == CO_OK)
        st = (*body)(&r);
    rank_close(&r);
    return st;
}

static co_status run(co_status (*body)(rank *r))
{
    const co_launch_options options = {.ranks = RANKS, .fork_one = true};

    return co_launch(&options, run_rank, &body);
}

static void nccl_collectives_have_results_of_host(void **state)
{
    (void)state;
    if (run(collectives) != CO_OK)
        fail_msg("%s", co_error_message());
}

static void nccl_call_that_differs_is_named_on_all_ranks(void **state)
{
    (void)state;
    assert_int_equal(run(other_count), CO_E_MISMATCH);
    assert_non_null(strstr(co_error_message(), "calls allreduce of 9 f32 (sum)"));
    assert_non_null(strstr(co_error_message(), "calls allreduce of 10 f32 (sum)"));
}

static void nccl_late_rank_ends_the_wait_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(run(late), CO_E_TIMEOUT);
    assert_non_null(strstr(co_error_message(), "before allreduce of 10 f32 (sum): waiting"));
    assert_non_null(strstr(co_error_message(), "rank 1"));
}

static void nccl_killed_rank_ends_the_others(void **state)
{
    (void)state;
    assert_int_equal(run(killed), CO_E_PEER);
    assert_non_null(strstr(co_error_message(), "killed by signal 9"));
}

/* A body, its status and what its message has. */
typedef struct failure {
    co_status (*body)(rank *r);
    co_status status;
    const char *text[2];
} failure;

static void check_failures(const failure *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(run(all[i].body), all[i].status);
        for (int k = 0; k < 2 && all[i].text[k]; k++)
            if (!strstr(co_error_message(), all[i].text[k]))
                fail_msg("%s: lacks '%s'", co_error_message(), all[i].text[k]);
    }
}

static void nccl_captured_step_has_results_at_each_replay(void **state)
{
    (void)state;
    if (run(replays) != CO_OK || run(gives_less) != CO_OK)
        fail_msg("%s", co_error_message());
}

static void nccl_captured_steps_that_differ_are_named(void **state)
{
    static const failure failures[] = {
        {captures_other_count,
         CO_E_MISMATCH,
         {"calls tree_allreduce of 2999 f32 over 7 leaves", "operation 2 of a step"}},
        {captures_more, CO_E_MISMATCH, {"operations in a step, rank"}},
        {captures_work_of_host, CO_E_USAGE, {"has operations of NCCL alone"}},
        {is_at_another_step, CO_E_MISMATCH, {"begins step 8", "begins step 7"}},
    };

    (void)state;
    check_failures(failures, sizeof(failures) / sizeof(failures[0]));
}

static void nccl_captured_step_waits_for_no_rank_for_ever(void **state)
{
    static const failure failures[] = {
        {replays_late, CO_E_TIMEOUT, {"before allreduce of 10 f32 (sum): waiting", "rank 1"}},
        {replays_not,
         CO_E_TIMEOUT,
         {"of the step's 3 operations with other ranks 0 are done, next is allreduce of 10 f32"}},
        {replays_killed, CO_E_PEER, {"killed by signal 9"}},
    };

    (void)state;
    check_failures(failures, sizeof(failures) / sizeof(failures[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nccl_collectives_have_results_of_host),
        cmocka_unit_test(nccl_call_that_differs_is_named_on_all_ranks),
        cmocka_unit_test(nccl_late_rank_ends_the_wait_by_its_name),
        cmocka_unit_test(nccl_killed_rank_ends_the_others),
        cmocka_unit_test(nccl_captured_step_has_results_at_each_replay),
        cmocka_unit_test(nccl_captured_steps_that_differ_are_named),
        cmocka_unit_test(nccl_captured_step_waits_for_no_rank_for_ever),
    };

    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
