/*
 * test_device_nccl.c - what is on GPUs of several ranks goes by NCCL, with the results that it has
 * through the host's memory; calls that differ, ranks that are late and ranks that die are reported
 * by name, and no rank hangs. On the stand-in of two GPUs.
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

#include "comm/nccl.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "comm/watch.h"
#include "core/clock.h"
#include "device/cuda/cuda.h"
#include "device/device.h"

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
} rank;

static const size_t bytes = RANKS * COUNT * sizeof(float);

static co_status rank_open(rank *r, co_comm *comm)
{
    const co_cuda_options options = {.index = co_comm_rank(comm)};

    *r = (rank){.comm = comm};
    CO_TRY(co_cuda_open(&r->device, &options));
    CO_TRY(co_nccl_open(comm, r->device));
    CO_TRY(co_queue_create(&r->queue, r->device));
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
    co_comm_release_devices(r->comm);
    for (int i = 0; i < 2; i++)
        co_device_free(r->device, r->there[i], CO_MEMORY_DEVICE);
    co_tree_destroy(r->tree);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nccl_collectives_have_results_of_host),
        cmocka_unit_test(nccl_call_that_differs_is_named_on_all_ranks),
        cmocka_unit_test(nccl_late_rank_ends_the_wait_by_its_name),
        cmocka_unit_test(nccl_killed_rank_ends_the_others),
    };

    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
