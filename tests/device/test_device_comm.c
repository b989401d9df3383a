/* test_device_comm.c - collectives on memory of a device with delayed queues give the host's
   results, in the order in which they were begun. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bits.h"
#include "comm/comm_internal.h"
#include "comm/queued.h"
#include "comm/shm/shm.h"
#include "comm/tree.h"
#include "core/mem.h"
#include "device/device.h"
#include "device/mock.h"
#include "waits.h"

#define RANKS  3
#define COUNT  700
#define LEAVES 7
#define ROUNDS 4

/* A rank with device and host memory; each operation runs on both. */
typedef struct rank {
    pthread_t thread;
    co_shm *shm;
    co_device *device;
    int index, size;
    co_comm *comm;
    co_queue *queue;
    co_tree *tree;
    float *there[2]; /* (RANKS * COUNT) on the device */
    float here[2][RANKS * COUNT];
    float seen[RANKS * COUNT];
    const char *wrong; /* NULL: no error */
    co_status status;
    char message[256];
} rank;

static const size_t bytes = RANKS * COUNT * sizeof(float);

static void fill(float *out, int index, int round)
{
    for (int i = 0; i < RANKS * COUNT; i++)
        out[i] = (float)((i * 7 + index * 13 + round * 5) % 31) / 3;
}

static co_status open_rank(rank *r)
{
    if (r->shm)
        CO_TRY(co_shm_attach(&r->comm, r->shm, r->index));
    else
        CO_TRY(co_comm_create_self(&r->comm));
    CO_TRY(co_comm_set_timeout(r->comm, WAITS_MS));
    CO_TRY(co_tree_create(&r->tree, LEAVES, r->size));
    CO_TRY(co_queue_create(&r->queue, r->device));
    for (int i = 0; i < 2; i++) {
        void *block = NULL;

        CO_TRY(co_device_alloc(&block, r->device, bytes, CO_MEMORY_DEVICE));
        r->there[i] = block;
    }
    return CO_OK;
}

static void close_rank(rank *r)
{
    co_comm_destroy(r->comm);
    co_queue_destroy(r->queue);
    co_tree_destroy(r->tree);
    for (int i = 0; i < 2; i++)
        co_device_free(r->device, r->there[i], CO_MEMORY_DEVICE);
}

/* Runs `args` on the host, and on the device with delayed input; another operation on the host is
   begun in between. */
static co_status check_args(rank *r, const co_coll_args *args, int round)
{
    const bool tree = args->coll == CO_COLL_TREE, in_place = args->in == args->out;
    const void *here[CO_TREE_MAX_PARTS], *there[CO_TREE_MAX_PARTS];
    co_coll_args at = *args, on = *args;
    co_request *request = NULL;
    int32_t all = r->index;

    fill(r->here[0], r->index, round);
    fill(r->here[1], r->index + 3, round);
    for (int i = 0; i < 2; i++)
        CO_TRY(co_queue_copy_now(r->queue, r->there[i], r->here[i], bytes));
    CO_TRY(co_queue_fill(r->queue, r->there[0], 0x77, bytes));
    memcpy(r->seen, r->here[0], bytes);
    CO_TRY(co_queue_copy(r->queue, r->there[0], r->seen, bytes));
    for (int i = 0; tree && i < co_tree_parts(r->tree, r->index); i++) {
        here[i] = r->here[0] + i * 100;
        there[i] = r->there[0] + i * 100;
    }
    at.in = tree ? (const void *)here : r->here[0];
    on.in = tree ? (const void *)there : r->there[0];
    at.out = in_place ? r->here[0] : r->here[1];
    on.out = in_place ? r->there[0] : r->there[1];
    on.queue = r->queue;
    CO_TRY(co_comm_enqueue(&request, r->comm, &on));
    CO_TRY(co_comm_allreduce(r->comm, &all, &all, 1, CO_I32, CO_SUM));
    CO_TRY(co_request_order(request, r->queue));
    co_request_destroy(request);
    CO_TRY(co_comm_enqueue_run(r->comm, &at));
    if (all != r->size * (r->size - 1) / 2)
        r->wrong = "the sum of the host";
    for (int i = 0; i < 2; i++) {
        CO_TRY(co_queue_copy_now(r->queue, r->seen, r->there[i], bytes));
        if (!bits_are_same(r->seen, r->here[i], bytes))
            r->wrong = co_comm_coll_name(args->coll);
    }
    return CO_OK;
}

static co_status check_all(rank *r, int round)
{
    static float a, b; /* placeholders for two buffers */
    const int root = round % r->size;
    const co_coll_args cases[] = {
        {.coll = CO_COLL_ALLREDUCE, .in = &a, .out = &a, .count = COUNT, .op = CO_SUM},
        {.coll = CO_COLL_ALLREDUCE, .in = &a, .out = &b, .count = 1, .op = CO_MAX},
        {.coll = CO_COLL_ALLREDUCE, .in = &a, .out = &b, .op = CO_SUM},
        {.coll = CO_COLL_BCAST, .in = &a, .out = &a, .count = COUNT, .peer = root},
        {.coll = CO_COLL_REDUCE, .in = &a, .out = &b, .count = COUNT, .op = CO_AVG, .peer = root},
        {.coll = CO_COLL_REDUCE_SCATTER, .in = &a, .out = &b, .count = COUNT, .op = CO_SUM},
        {.coll = CO_COLL_ALLGATHER, .in = &a, .out = &b, .count = COUNT},
        {.coll = CO_COLL_GATHER, .in = &a, .out = &b, .count = COUNT, .peer = root},
        {.coll = CO_COLL_SCATTER, .in = &a, .out = &b, .count = COUNT, .peer = root},
        {.coll = CO_COLL_TREE, .in = &a, .out = &b, .count = 90, .tree = r->tree},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CO_TRY(check_args(r, &cases[i], round));
    return CO_OK;
}

static void *rank_main(void *arg)
{
    rank *r = arg;

    r->status = open_rank(r);
    for (int round = 0; round < ROUNDS && r->status == CO_OK && !r->wrong; round++)
        r->status = check_all(r, round);
    if (r->status != CO_OK)
        (void)snprintf(r->message, sizeof(r->message), "%s", co_error_message());
    close_rank(r);
    return NULL;
}

static void run_ranks(co_device *device, int size)
{
    static rank ranks[RANKS];
    co_shm *shm = NULL;

    memset(ranks, 0, sizeof(ranks));
    if (size > 1)
        assert_int_equal(co_shm_create(&shm, size), CO_OK);
    for (int i = 0; i < size; i++) {
        ranks[i].shm = shm;
        ranks[i].device = device;
        ranks[i].index = i;
        ranks[i].size = size;
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < size; i++) {
        if (ranks[i].status != CO_OK)
            fail_msg("rank %d of %d: %s", i, size, ranks[i].message);
        if (ranks[i].wrong)
            fail_msg("rank %d of %d: %s", i, size, ranks[i].wrong);
    }
    co_shm_destroy(shm);
}

static co_device *open_device(mock_way way)
{
    co_device *device = NULL;

    return mock_open(&device, way) == CO_OK ? device : NULL;
}

static void operations_on_a_late_device_give_what_the_host_gets(void **state)
{
    (void)state;
    for (int way = MOCK_KEYS; way <= MOCK_TWICE; way++) {
        co_device *device = open_device((mock_way)way);

        for (int size = 1; device && size <= RANKS; size++)
            run_ranks(device, size);
        mock_close(device);
    }
}

/* When the device makes no progress, waiting ends at the communicator's limit. */
static void wait_for_a_device_that_hangs_ends(void **state)
{
    co_device *device = open_device(MOCK_TWICE);
    co_comm *comm = NULL;
    co_queue *queue = NULL;
    co_fence *fence = NULL;
    float one = 1;
    void *block = NULL;

    (void)state;
    assert_non_null(device);
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(co_queue_create(&queue, device), CO_OK);
    assert_int_equal(co_fence_create(&fence, device), CO_OK);
    assert_int_equal(co_device_alloc(&block, device, sizeof(one), CO_MEMORY_DEVICE), CO_OK);
    assert_int_equal(co_comm_wait_fence(comm, fence), CO_OK); /* not recorded yet */
    mock_hold(device);
    assert_int_equal(co_queue_copy(queue, block, &one, sizeof(one)), CO_OK);
    assert_int_equal(co_fence_record(fence, queue), CO_OK);
    assert_int_equal(co_comm_set_timeout(comm, 20), CO_OK);
    assert_int_equal(co_comm_wait_fence(comm, fence), CO_E_TIMEOUT);
    assert_non_null(strstr(co_error_message(), "rank 0: the device mock has not done its work"));
    mock_go_on(device);
    assert_int_equal(co_comm_barrier(comm), CO_E_TIMEOUT); /* the communicator has failed */
    co_comm_destroy(comm);
    co_queue_destroy(queue);
    co_fence_destroy(fence);
    co_device_free(device, block, CO_MEMORY_DEVICE);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_on_a_late_device_give_what_the_host_gets),
        cmocka_unit_test(wait_for_a_device_that_hangs_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
