/*
 * test_device_nccl_buffer.c - memory that NCCL gives and has registered: operations on parts of it
 * have the same results, and it is freed after the communicator's end. On the stand-in, which
 * refuses to free it before, and ends ranks of which not all give an operation such memory. With
 * `older`, on one that has no such memory, the same results come from the device's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include <cohort/launch.h>

#include "comm/nccl.h"
#include "comm/queued.h"
#include "device/cuda/cuda.h"
#include "device/device.h"
#include "standin/standin.h"

#define RANKS 2
#define NONE  (-1) /* the library cannot register memory */
#define COUNT 3000

static int registered_so_far(void)
{
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    standin_registered_fn *count = NULL;

    *(void **)&count = nccl ? dlsym(nccl, STANDIN_REGISTERED) : NULL;
    return count ? count() : NONE;
}

static bool older;

/* Sums the second half of the buffer over ranks, whose numbers are `from`. */
static co_status sum_half(float *to, co_comm *comm, co_queue *queue, float *block,
                          const float *from)
{
    const co_coll_args sum = {.coll = CO_COLL_ALLREDUCE,
                              .in = block + COUNT,
                              .out = block + COUNT,
                              .count = COUNT,
                              .op = CO_SUM,
                              .queue = queue};

    CO_TRY(co_queue_copy_now(queue, block + COUNT, from, COUNT * sizeof(*from)));
    CO_TRY(co_comm_enqueue_run(comm, &sum));
    return co_queue_copy_now(queue, to, block + COUNT, COUNT * sizeof(*to));
}

static co_status run_rank(co_comm *comm, void *arg)
{
    const co_cuda_options options = {.index = co_comm_rank(comm)};
    const int *wanted = arg;
    float from[COUNT], to[COUNT];
    co_device *device = NULL;
    co_queue *queue = NULL;
    void *block = NULL;
    co_status st;

    for (int i = 0; i < COUNT; i++)
        from[i] = (float)(i + co_comm_rank(comm));
    CO_TRY(co_cuda_open(&device, &options));
    CO_TRY(co_nccl_open(comm, device));
    CO_TRY(co_queue_create(&queue, device));
    CO_TRY(co_device_alloc(&block, device, sizeof(from) * 2, CO_MEMORY_EXCHANGED));
    if (*wanted)
        CO_TRY(co_nccl_register(comm, block, sizeof(from) * 2));
    st = sum_half(to, comm, queue, block, from);
    for (int i = 0; i < COUNT && st == CO_OK; i++)
        if (to[i] != (float)(2 * i + 1))
            st = co_fail(CO_E_FAILED, "element %d is %g", i, (double)to[i]);
    if (st == CO_OK && registered_so_far() != (older ? NONE : *wanted))
        st = co_fail(CO_E_FAILED, "%d buffers are registered", registered_so_far());
    co_queue_destroy(queue);
    co_comm_release_devices(comm);
    co_device_free(device, block, CO_MEMORY_EXCHANGED);
    co_cuda_close(device);
    return st;
}

static void nccl_registered_buffer_is_summed_and_freed(void **state)
{
    const co_launch_options options = {.ranks = RANKS, .fork_one = true};

    (void)state;
    for (int wanted = 0; wanted < 2; wanted++)
        if (co_launch(&options, run_rank, &wanted) != CO_OK)
            fail_msg("%s", co_error_message());
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nccl_registered_buffer_is_summed_and_freed),
    };

    older = argc > 1 && strcmp(argv[1], "older") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
