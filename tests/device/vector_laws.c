/*
 * vector_laws.c - every entry of ext/vector.h on a device, compared with the host's bits.
 */
#include "device/vector_laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/mem.h"
#include "core/rng.h"
#include "tensor/vector.h"

#define N       1000
#define K       50
#define ROOM    20000
#define SQUARES 5

/* Arrays in memory of a device or the host. */
typedef struct arrays {
    co_device *device;
    co_queue *queue;
    float *x, *y, *z; /* (N) */
    uint32_t *index, *room;
    uint16_t *half;  /* (2, N) */
    double *squares; /* (SQUARES) */
    float *most;
    co_grad_rule *rule; /* 0.5, 0.8 */
    uint64_t *step;     /* 3 */
    int32_t *flag;      /* 0, 1 */
    double *part;       /* 0, 0.1 */
    float *limits;      /* 0, infinity, 0.5 */
} arrays;

/* Their contents. */
typedef struct values {
    float x[N], y[N], z[N];
    uint32_t index[K];
    uint16_t half[2 * N];
    double squares[SQUARES];
    float most[2];
} values;

static void *take(arrays *a, size_t bytes)
{
    void *out = NULL;

    assert_int_equal(co_device_alloc(&out, a->device, bytes, CO_MEMORY_DEVICE), CO_OK);
    return out;
}

static void give(arrays *a, void *block)
{
    co_device_free(a->device, block, CO_MEMORY_DEVICE);
}

static void get(arrays *a, void *to, const void *from, size_t bytes)
{
    assert_int_equal(co_queue_copy_now(a->queue, to, from, bytes), CO_OK);
}

static void open_arrays(arrays *a, co_device *device)
{
    values *v = co_calloc(1, sizeof(*v));
    const co_rng rng = {.seed = 1, .stream = CO_RNG_TEST};
    const co_grad_rule rule = {.scale = 0.5F, .limit = 0.8F};
    const uint64_t step = 3;
    const int32_t flag[2] = {0, 1};
    const double part[2] = {0, 0.1};
    const float limits[3] = {0, INFINITY, 0.5F};

    *a = (arrays){.device = device};
    assert_int_equal(co_queue_create(&a->queue, device), CO_OK);
    a->x = take(a, sizeof(v->x));
    a->y = take(a, sizeof(v->y));
    a->z = take(a, sizeof(v->z));
    a->index = take(a, sizeof(v->index));
    a->room = take(a, ROOM * sizeof(*a->room));
    a->half = take(a, sizeof(v->half));
    a->squares = take(a, sizeof(v->squares));
    a->most = take(a, sizeof(v->most));
    a->rule = take(a, sizeof(rule));
    a->step = take(a, sizeof(step));
    a->flag = take(a, sizeof(flag));
    a->part = take(a, sizeof(part));
    a->limits = take(a, sizeof(limits));
    get(a, a->rule, &rule, sizeof(rule));
    get(a, a->step, &step, sizeof(step));
    get(a, a->flag, flag, sizeof(flag));
    get(a, a->part, part, sizeof(part));
    get(a, a->limits, limits, sizeof(limits));
    co_rng_normal(v->x, &rng, 0, N);
    co_rng_normal(v->y, &rng, N, N);
    get(a, a->x, v->x, sizeof(v->x));
    get(a, a->y, v->y, sizeof(v->y));
    co_free(v);
}

static void close_arrays(arrays *a)
{
    co_queue_destroy(a->queue);
    give(a, a->x);
    give(a, a->y);
    give(a, a->z);
    give(a, a->index);
    give(a, a->room);
    give(a, a->half);
    give(a, a->squares);
    give(a, a->most);
    give(a, a->rule);
    give(a, a->step);
    give(a, a->flag);
    give(a, a->part);
    give(a, a->limits);
}

static values *read_arrays(arrays *a)
{
    values *v = co_calloc(1, sizeof(*v));

    assert_non_null(v);
    get(a, v->x, a->x, sizeof(v->x));
    get(a, v->y, a->y, sizeof(v->y));
    get(a, v->z, a->z, sizeof(v->z));
    get(a, v->index, a->index, sizeof(v->index));
    get(a, v->half, a->half, sizeof(v->half));
    get(a, &v->squares, a->squares, sizeof(v->squares));
    get(a, v->most, a->most, sizeof(v->most));
    return v;
}

/* Calls every entry, each on results of others. */
static void compute(const co_vector_ops *vector, const arrays *a)
{
    const co_vector_matrix shape = {.rows = 25, .cols = 40, .rank = 3};
    co_rng rng = {.seed = 2, .stream = CO_RNG_ROUND};
    co_queue *q = a->queue;

    assert_true(vector->top_k_room(K) <= ROOM);
    vector->copy(q, a->z, a->y, N);
    vector->add(q, a->z, a->x, N);
    vector->axpby(q, a->y, 0.3F, a->x, -0.7F, a->y, N);
    vector->add_difference(q, a->z, 0.1F, a->x, a->z, N);
    vector->average(q, a->z, a->part, a->y, N);
    vector->average(q, a->z, a->part + 1, a->y, N);
    vector->scale(q, a->x, 1 / 3.0, a->z, N);
    vector->divide(q, a->x, 7, N);
    vector->swap(q, a->x, a->y, N);
    vector->narrow(q, a->half, a->x, a->y, true, N, CO_F16);
    vector->narrow(q, a->half + N, a->y, NULL, false, N, CO_F16);
    vector->widen_sum(q, a->z, a->half, N, 2, N, CO_F16);
    vector->round_stochastic(q, a->x, N, CO_BF16, &rng, NULL, 5);
    rng.seed = 77; /* already copied */
    vector->round_stochastic(q, a->x + 100, 50, CO_BF16, &rng, a->step, 5);
    vector->round_nearest(q, a->y, N, CO_BF16);
    vector->top_k(q, a->index, a->room, a->z, N, K);
    vector->gather(q, a->y, a->z, a->index, K);
    vector->scatter_add(q, a->x, a->index, a->y, K);
    vector->scatter(q, a->z, a->index, NULL, K);
    vector->drop_nonfinite(q, a->z, N);
    vector->matrix_times(q, a->y, a->x, a->z, &shape);
    vector->matrix_orthonormalize(q, a->y, &shape);
    vector->matrix_transposed_times(q, a->z, a->x, a->y, &shape);
    vector->matrix_add_outer(q, a->x, -1, a->y, a->z, &shape);
    vector->zero(q, a->y + 900, 50);
    vector->copy_if(q, a->flag, a->y, a->x, 70);
    vector->copy_if(q, a->flag + 1, a->x, a->z, 70);
    for (size_t i = 0; i < 3; i++) { /* 0, not finite, neither */
        vector->max_abs(q, a->most, a->limits + i, 1);
        vector->copy_unless(q, a->most, a->y + 400 + 30 * i, a->x + 200, 20);
        vector->copy_unless(q, a->most, a->y + 500 + 30 * i, NULL, 20);
    }
    vector->sum_squares(q, a->squares, a->most + 1, a->x, N, a->rule);
    vector->block_squares(q, a->squares + 1, a->x, N, NULL);
    vector->block_squares(q, a->squares + 2, a->y + 5, N - 5, a->rule);
    vector->sum_blocks(q, a->squares + 3, a->squares, 3);
    vector->sum_blocks(q, a->squares + 4, a->squares, 0);
    vector->max_abs(q, a->most, a->x, N);
}

static void check_equal(arrays *device, arrays *host)
{
    values *got = read_arrays(device), *want = read_arrays(host);

    assert_memory_equal(got, want, sizeof(*got));
    co_free(got);
    co_free(want);
}

void vector_check_bits(co_device *device)
{
    arrays there, here;

    open_arrays(&there, device);
    open_arrays(&here, NULL);
    compute(device->ops->vector, &there);
    compute(co_vector_host(), &here);
    check_equal(&there, &here);
    close_arrays(&there);
    close_arrays(&here);
}

static co_status compute_for_capture(void *arg)
{
    const arrays *a = arg;

    a->device->ops->vector->axpby(a->queue, a->x, 0.9F, a->x, 0.1F, a->y, N);
    a->device->ops->vector->add_difference(a->queue, a->y, 0.01F, a->x, a->y, N);
    return CO_OK;
}

void vector_check_capture(co_device *device)
{
    co_capture *capture = NULL;
    arrays there, here;

    open_arrays(&there, device);
    open_arrays(&here, NULL);
    assert_int_equal(co_capture_create(&capture, there.queue, compute_for_capture, &there), CO_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(co_capture_replay(capture, there.queue), CO_OK);
        co_vector_host()->axpby(NULL, here.x, 0.9F, here.x, 0.1F, here.y, N);
        co_vector_host()->add_difference(NULL, here.y, 0.01F, here.x, here.y, N);
    }
    check_equal(&there, &here);
    co_capture_destroy(capture);
    close_arrays(&there);
    close_arrays(&here);
}
