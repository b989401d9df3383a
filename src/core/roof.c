/*
 * roof.c - short loops that only multiply and add, or only move bytes.
 *
 * Each thread takes the best of many short rounds, so that rounds disturbed by other programs do
 * not count. Independent of what is compared with the result.
 */
#include "core/roof.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <hwloc.h>

#include "core/clock.h"
#include "core/isa.h"
#include "core/mem.h"
#include "core/roof_flops.h"
#include "core/thread.h"

#define ROOF_RAM_NS    100000000u /* a pass takes a tenth of it */
#define ROOF_NS        25000000u  /* for each measurement */
#define ROOF_L2        ((size_t)256 << 10)
#define ROOF_L3        ((size_t)8 << 20)
#define ROOF_RAM       ((size_t)96 << 20) /* of all ranks of the machine */
#define ROOF_RAM_LEAST ((size_t)12 << 20)
#define ROOF_ROUND_BYTES                                                                           \
    ((size_t)1 << 20) /* bytes moved between two readings of the clock, at least */

typedef struct roof_thread {
    pthread_t thread;
    bool started;
    size_t bytes[CO_ROOF_LEVELS]; /* of the three arrays together */
    float *memory;                /* owned; bytes[CO_ROOF_LEVELS - 1] */
    float sink;                   /* so that no loop is idle */
    double flops_per_second, bf16_flops_per_second, bytes_per_second[CO_ROOF_LEVELS];
} roof_thread;

/* Operations in a second; 0 without a loop. */
static double roof_measure_flops(co_roof_flops_fn loop, float *sink)
{
    const uint64_t start = co_clock_ns();
    uint64_t before = start, after = start;
    double best = 0;

    while (loop && after - start < ROOF_NS) {
        const double flops = loop(sink);
        double rate;

        after = co_clock_ns();
        rate = flops / co_clock_seconds(before, after);
        best = rate > best ? rate : best;
        before = after;
    }
    return best;
}

/* a = b + s c over arrays of n floats; each is passed once. */
static inline __attribute__((always_inline)) void roof_triad(float *memory, size_t n, float s)
{
    float *restrict a = memory;
    const float *restrict b = memory + n, *restrict c = memory + 2 * n;

    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}

typedef void (*roof_triad_fn)(float *memory, size_t n, float s);

static void roof_triad_basic(float *memory, size_t n, float s)
{
    roof_triad(memory, n, s);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void roof_triad_avx2(float *memory, size_t n, float s)
{
    roof_triad(memory, n, s);
}

__attribute__((target("avx512f,avx512vl,prefer-vector-width=512"))) static void
roof_triad_avx512(float *memory, size_t n, float s)
{
    roof_triad(memory, n, s);
}
#endif

static roof_triad_fn roof_choose_triad(void)
{
#if defined(__x86_64__)
    if (co_isa_has(CO_ISA_AVX512))
        return roof_triad_avx512;
    if (co_isa_has(CO_ISA_AVX2))
        return roof_triad_avx2;
#endif
    return roof_triad_basic;
}

static void roof_measure_bytes(roof_thread *t, int level)
{
    const size_t n = t->bytes[level] / sizeof(float) / 3 / 16 * 16, bytes = 3 * n * sizeof(float);
    const size_t passes = 1 + ROOF_ROUND_BYTES / bytes;
    const roof_triad_fn triad = roof_choose_triad();
    uint64_t start, before, after;

    triad(t->memory, n, 0.5f);
    start = before = co_clock_ns();
    do {
        double rate;

        for (size_t i = 0; i < passes; i++)
            triad(t->memory, n, (float)i);
        after = co_clock_ns();
        rate = (double)(passes * bytes) / co_clock_seconds(before, after);
        if (rate > t->bytes_per_second[level])
            t->bytes_per_second[level] = rate;
        before = after;
    } while (after - start < (level + 1 < CO_ROOF_LEVELS ? ROOF_NS : ROOF_RAM_NS));
    t->sink += t->memory[n / 2];
}

static void *roof_run(void *arg)
{
    roof_thread *t = arg;

    t->flops_per_second = roof_measure_flops(co_roof_find_flops(), &t->sink);
    t->bf16_flops_per_second = roof_measure_flops(co_roof_find_bf16_flops(), &t->sink);
    for (int level = 0; level < CO_ROOF_LEVELS; level++)
        roof_measure_bytes(t, level);
    return NULL;
}

/* Bytes of the cache of this kind; `otherwise` where it is unknown. */
static double roof_cache(hwloc_topology_t topology, hwloc_obj_type_t type, double otherwise)
{
    struct hwloc_obj *cache = hwloc_get_obj_by_type(topology, type, 0);

    return cache && cache->attr->cache.size ? (double)cache->attr->cache.size : otherwise;
}

/* A rank has the L2 of each of its cores, and its part of the machine's L3. */
static void roof_describe(co_roof *out, int threads, int ranks)
{
    hwloc_topology_t topology = co_thread_topology();
    double l2 = 4.0 * ROOF_L2, l3 = 2.0 * ROOF_L3;

    if (topology) {
        l2 = roof_cache(topology, HWLOC_OBJ_L2CACHE, l2);
        l3 = roof_cache(topology, HWLOC_OBJ_L3CACHE, l3);
        hwloc_topology_destroy(topology);
    }
    out->threads = threads;
    out->level[0] = (co_roof_level){"L2", l2 * threads, 0};
    out->level[1] = (co_roof_level){"L3", l3 / ranks, 0};
    out->level[2] = (co_roof_level){"RAM", CO_ROOF_ALL, 0};
}

static co_status roof_start(roof_thread *t, size_t ram)
{
    t->bytes[0] = ROOF_L2;
    t->bytes[1] = ROOF_L3 < ram ? ROOF_L3 : ram;
    t->bytes[2] = ram;
    t->memory = co_calloc_aligned(ram / sizeof(float), sizeof(float));
    if (!t->memory)
        return CO_E_NOMEM;
    t->started = pthread_create(&t->thread, NULL, roof_run, t) == 0;
    return t->started ? CO_OK
                      : co_fail(CO_E_FAILED, "cannot start a thread to measure the machine");
}

/* What a rank has of its cores, where more ranks than there are cores take turns. */
static double roof_share(int threads, int ranks)
{
    const double wanted = (double)threads * ranks, cores = (double)sysconf(_SC_NPROCESSORS_ONLN);

    return wanted > cores && cores > 0 ? cores / wanted : 1;
}

co_status co_roof_measure(co_roof *out, int threads, int ranks)
{
    const int cores = co_thread_cores();
    roof_thread *thread;
    double share;
    size_t ram;
    co_status st = CO_OK;

    threads = threads < 1 ? 1 : threads > cores ? cores : threads;
    ranks = ranks < 1 ? 1 : ranks;
    share = roof_share(threads, ranks);
    memset(out, 0, sizeof(*out));
    roof_describe(out, threads, ranks);
    ram = ROOF_RAM / (size_t)threads / (size_t)ranks;
    ram = ram < ROOF_RAM_LEAST ? ROOF_RAM_LEAST : ram;
    thread = co_calloc((size_t)threads, sizeof(*thread));
    if (!thread)
        return CO_E_NOMEM;
    for (int i = 0; i < threads && st == CO_OK; i++)
        st = roof_start(&thread[i], ram);
    for (int i = 0; i < threads; i++) {
        if (thread[i].started)
            pthread_join(thread[i].thread, NULL);
        co_free(thread[i].memory);
        out->flops_per_second += share * thread[i].flops_per_second;
        out->bf16_flops_per_second += share * thread[i].bf16_flops_per_second;
        for (int k = 0; k < CO_ROOF_LEVELS; k++)
            out->level[k].bytes_per_second += share * thread[i].bytes_per_second[k];
    }
    co_free(thread);
    return st;
}

/* Of the units for such factors; where there are none, of those for fp32. */
static double roof_rate(const co_roof *roof, co_dtype factors)
{
    const double rate = factors == CO_BF16  ? roof->bf16_flops_per_second
                        : factors == CO_F16 ? roof->f16_flops_per_second
                        : roof->tf32        ? roof->tf32_flops_per_second
                                            : 0;

    return rate > 0 ? rate : roof->flops_per_second;
}

double co_roof_seconds(const char **bound, const co_roof *roof, double flops, double bytes,
                       co_dtype factors)
{
    const double compute = flops / roof_rate(roof, factors);
    int level = 0;
    double move;

    while (level < CO_ROOF_LEVELS - 1 && bytes > roof->level[level].capacity)
        level++;
    move = bytes / roof->level[level].bytes_per_second;
    if (bound)
        *bound = compute > move ? "flops" : roof->level[level].name;
    return compute > move ? compute : move;
}
