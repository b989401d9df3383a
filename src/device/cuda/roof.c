/*
 * roof.c - what a GPU can do at most: timed on its own clock, on larger and larger problems until
 * one takes long enough to hide what a launch costs.
 */
#include "core/roof.h"

#include <stdio.h>
#include <string.h>

#include "device/cuda/internal.h"
#include "device/cuda/matmul.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/roof.h"

#define ROOF_LONG        2e-3 /* seconds of a run: long enough */
#define ROOF_REPEATS     4
#define ROOF_LAUNCHES    8 /* of short kernels, between two points */
#define ROOF_FIRST_SIDE  128u
#define ROOF_LAST_SIDE   8192u
#define ROOF_FIRST_ARRAY ((size_t)128 << 10)
#define ROOF_LAST_ARRAY  ((size_t)512 << 20)
#define ROOF_FIRST_BLOCK 32u
#define ROOF_LAST_BLOCK  2048u

typedef struct roof {
    cuda_device *device;
    co_queue *queue;       /* owned */
    co_fence *begin, *end; /* owned */
} roof;

/* A problem that can be given to the queue again and again. */
typedef co_status (*roof_give)(const roof *r, void *problem);

/* The shortest of several runs, after one that is not timed. */
static co_status roof_time(double *seconds, const roof *r, roof_give give, void *problem)
{
    *seconds = 0;
    CO_TRY(give(r, problem));
    for (int i = 0; i < ROOF_REPEATS; i++) {
        double run = 0;

        CO_TRY(co_fence_record(r->begin, r->queue));
        CO_TRY(give(r, problem));
        CO_TRY(co_fence_record(r->end, r->queue));
        CO_TRY(co_fence_wait(r->end, CO_DEVICE_WAIT_MS));
        CO_TRY(co_fence_seconds(&run, r->begin, r->end));
        *seconds = i == 0 || run < *seconds ? run : *seconds;
    }
    return CO_OK;
}

static void roof_better(double *best, double work, double seconds)
{
    if (seconds > 0 && work / seconds > *best)
        *best = work / seconds;
}

/* Memory with numbers in it; its words are a multiple of 4 bytes. */
static co_status roof_take(void **out, const roof *r, size_t bytes)
{
    cuda_roof_draw draw = {.n = bytes / sizeof(uint32_t)};

    CO_TRY(co_device_alloc(out, &r->device->base, bytes, CO_MEMORY_DEVICE));
    draw.word = *out;
    cuda_launch(r->queue, CUDA_roof_draw, draw.n, &draw);
    return CO_OK;
}

static void roof_give_back(const roof *r, void **block, int n)
{
    for (int i = 0; i < n; i++)
        co_device_free(&r->device->base, block[i], CO_MEMORY_DEVICE);
}

/* ---- multiply-adds ---- */

typedef struct roof_chains {
    cuda_roof_multiply_add args;
    unsigned blocks;
} roof_chains;

static co_status roof_give_chains(const roof *r, void *problem)
{
    roof_chains *p = problem;

    cuda_launch_blocks(r->queue, CUDA_roof_multiply_add, p->blocks, &p->args);
    return CO_OK;
}

static co_status roof_measure_fp32(co_roof *out, const roof *r)
{
    roof_chains p = {{.factor = 0.999F, .summand = 1e-3F, .rounds = 32}, ROOF_FIRST_BLOCK};
    const size_t threads = (size_t)ROOF_LAST_BLOCK * CUDA_BLOCK;
    co_status st = CO_OK;
    void *memory = NULL;
    double seconds = 0;

    CO_TRY(roof_take(&memory, r, threads * sizeof(float)));
    p.args.inout = memory;
    for (; p.blocks <= ROOF_LAST_BLOCK && seconds < ROOF_LONG; p.blocks *= 2, p.args.rounds *= 2) {
        st = roof_time(&seconds, r, roof_give_chains, &p);
        if (st != CO_OK)
            break;
        roof_better(&out->flops_per_second,
                    2.0 * CUDA_ROOF_CHAINS * CUDA_BLOCK * p.blocks * p.args.rounds, seconds);
    }
    roof_give_back(r, &memory, 1);
    return st;
}

/* ---- products ---- */

typedef struct roof_product {
    cuda_matmul *matmul;
    cuda_matmul_operands operands;
} roof_product;

static co_status roof_give_product(const roof *r, void *problem)
{
    const roof_product *p = problem;

    return cuda_matmul_run(p->matmul, r->queue, &p->operands);
}

/* Square matrices. CO_E_NOMEM, CO_E_UNSUPPORTED: not of this size. */
static co_status roof_time_product(double *seconds, const roof *r, const cuda_matmul_shape *shape)
{
    const size_t bytes = (size_t)shape->n * shape->n * co_dtype_size(shape->in);
    roof_product p = {.matmul = NULL};
    void *block[4] = {NULL};
    co_status st = cuda_matmul_create(&p.matmul, &r->device->base, shape);

    for (int i = 0; i < 3 && st == CO_OK; i++)
        st = roof_take(&block[i], r, bytes);
    if (st == CO_OK)
        st = co_device_alloc(&block[3], &r->device->base, cuda_matmul_workspace(p.matmul),
                             CO_MEMORY_DEVICE);
    p.operands =
        (cuda_matmul_operands){.d = block[0], .a = block[1], .b = block[2], .workspace = block[3]};
    if (st == CO_OK)
        st = roof_time(seconds, r, roof_give_product, &p);
    cuda_matmul_destroy(p.matmul);
    roof_give_back(r, block, 4);
    return st;
}

static co_status roof_measure_products(double *best, const roof *r, co_dtype type)
{
    cuda_matmul_shape shape = {.in = type, .out = type, .tf32 = type == CO_F32};
    double seconds = 0;

    for (uint32_t side = ROOF_FIRST_SIDE; side <= ROOF_LAST_SIDE && seconds < ROOF_LONG;
         side *= 2) {
        co_status st;

        shape.m = shape.n = shape.k = side;
        st = roof_time_product(&seconds, r, &shape);
        if (st == CO_E_NOMEM || st == CO_E_UNSUPPORTED)
            return CO_OK;
        CO_TRY(st);
        roof_better(best, 2.0 * side * side * side, seconds);
    }
    return CO_OK;
}

/* ---- bytes ---- */

static co_status roof_give_triads(const roof *r, void *problem)
{
    cuda_roof_triad *args = problem;

    for (int i = 0; i < ROOF_LAUNCHES; i++)
        cuda_launch(r->queue, CUDA_roof_triad, args->n, args);
    return CO_OK;
}

static co_status roof_time_triad(double *seconds, const roof *r, size_t bytes)
{
    cuda_roof_triad args = {.n = bytes / sizeof(cuda_four), .s = 0.5F};
    void *block[3] = {NULL};
    co_status st = CO_OK;

    for (int i = 0; i < 3 && st == CO_OK; i++)
        st = roof_take(&block[i], r, bytes);
    args.a = block[0];
    args.b = block[1];
    args.c = block[2];
    if (st == CO_OK)
        st = roof_time(seconds, r, roof_give_triads, &args);
    roof_give_back(r, block, 3);
    return st;
}

/* Of arrays that all fit into the L2 cache, with room to spare, and of some that are far larger. */
static co_status roof_measure_bytes(co_roof *out, const roof *r)
{
    co_roof_level *cache = &out->level[0], *memory = &out->level[1];
    double seconds = 0;

    for (size_t bytes = ROOF_FIRST_ARRAY; bytes <= ROOF_LAST_ARRAY; bytes *= 2) {
        const double all = 3.0 * (double)bytes;
        co_roof_level *level = all <= 0.75 * cache->capacity ? cache
                               : all > 2 * cache->capacity   ? memory
                                                             : NULL;
        co_status st;

        if (!level || (level == memory && memory->bytes_per_second > 0 && seconds > ROOF_LONG))
            continue;
        st = roof_time_triad(&seconds, r, bytes);
        if (st == CO_E_NOMEM && memory->bytes_per_second > 0)
            return CO_OK;
        CO_TRY(st);
        roof_better(&level->bytes_per_second, ROOF_LAUNCHES * all, seconds);
    }
    return CO_OK;
}

/* ---- all ---- */

static co_status roof_describe(co_roof *out, const cuda_device *device)
{
    int cache = 0;
    const CUresult result =
        device->cu->cuDeviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device->handle);

    if (result != CUDA_SUCCESS)
        return cuda_fail(result, "GPU %d does not answer", device->index);
    *out = (co_roof){.tf32 = device->tf32, .level = {{"L2", cache, 0}, {"memory", CO_ROOF_ALL, 0}}};
    snprintf(out->gpu, sizeof(out->gpu), "GPU %d (%.40s)", device->index, device->gpu.name);
    return CO_OK;
}

static co_status roof_measure(co_roof *out, const roof *r)
{
    CO_TRY(roof_measure_fp32(out, r));
    CO_TRY(roof_measure_products(&out->tf32_flops_per_second, r, CO_F32));
    CO_TRY(roof_measure_products(&out->bf16_flops_per_second, r, CO_BF16));
    CO_TRY(roof_measure_products(&out->f16_flops_per_second, r, CO_F16));
    CO_TRY(roof_measure_bytes(out, r));
    return co_queue_wait(r->queue, CO_DEVICE_WAIT_MS);
}

co_status co_cuda_roof(co_roof *out, co_device *device)
{
    roof r = {.device = (cuda_device *)device};
    co_status st;

    if (strcmp(co_device_name(device), "cuda") != 0)
        return co_fail(CO_E_UNSUPPORTED, "device %s: nothing measures what it can do",
                       co_device_name(device));
    CO_TRY(cuda_enter(r.device));
    CO_TRY(roof_describe(out, r.device));
    st = co_queue_create(&r.queue, device);
    if (st == CO_OK)
        st = co_timed_fence_create(&r.begin, device);
    if (st == CO_OK)
        st = co_timed_fence_create(&r.end, device);
    if (st == CO_OK)
        st = roof_measure(out, &r);
    co_fence_destroy(r.begin);
    co_fence_destroy(r.end);
    co_queue_destroy(r.queue);
    return st;
}
