/* test_device_cuda_vector.c - arithmetic of a GPU against the host's bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cohort/ext/vector.h>

#include "core/mem.h"
#include "core/rng.h"
#include "device/vector_laws.h"
#include "standin/open_gpu.h"
#include "tensor/vector.h"

#define MANY   700001 /* more than the threads of the largest launch */
#define PICKS  5000
#define BLOCKS (MANY / CO_VECTOR_SQUARES + 1)

/* The same arrays in two places. */
typedef struct place {
    co_device *device;
    co_queue *queue;
    const co_vector_ops *vector;
    float *x, *y; /* (MANY) */
    uint16_t *half;
    uint32_t *index, *room;
    double *squares, *block; /* (1), (BLOCKS) */
    float *most;
} place;

static void *take(const place *p, size_t bytes)
{
    void *out = NULL;

    if (co_device_alloc(&out, p->device, bytes, CO_MEMORY_DEVICE) != CO_OK)
        fail_msg("%s", co_error_message());
    return out;
}

static void open_place(place *p, co_device *device, const float *x)
{
    *p = (place){.device = device};
    p->vector = device ? device->ops->vector : co_vector_host();
    assert_int_equal(co_queue_create(&p->queue, device), CO_OK);
    p->x = take(p, MANY * sizeof(float));
    p->y = take(p, MANY * sizeof(float));
    p->half = take(p, MANY * sizeof(*p->half));
    p->index = take(p, PICKS * sizeof(*p->index));
    p->room = take(p, p->vector->top_k_room(PICKS) * sizeof(*p->room));
    p->squares = take(p, sizeof(*p->squares));
    p->block = take(p, BLOCKS * sizeof(*p->block));
    p->most = take(p, sizeof(*p->most));
    assert_int_equal(co_queue_copy_now(p->queue, p->x, x, MANY * sizeof(float)), CO_OK);
}

static void close_place(place *p)
{
    void *const blocks[] = {p->x, p->y, p->half, p->index, p->room, p->squares, p->block, p->most};

    co_queue_destroy(p->queue);
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        co_device_free(p->device, blocks[i], CO_MEMORY_DEVICE);
}

static void check(const place *a, const place *b, const void *got, const void *want, size_t bytes)
{
    char *seen[2] = {co_calloc(bytes, 1), co_calloc(bytes, 1)};

    assert_true(seen[0] && seen[1]);
    assert_int_equal(co_queue_copy_now(a->queue, seen[0], got, bytes), CO_OK);
    assert_int_equal(co_queue_copy_now(b->queue, seen[1], want, bytes), CO_OK);
    assert_memory_equal(seen[0], seen[1], bytes);
    co_free(seen[0]);
    co_free(seen[1]);
}

/* Numbers of all sizes, some several times, and as `special` says infinities, too. */
static float *draw(bool special)
{
    static const float odd[] = {0.0F,   -0.0F,   65504.0F, 65520.0F, 1e-40F,
                                -6e-8F, 3.4e38F, INFINITY, -INFINITY};
    const co_rng rng = {.seed = 4, .stream = CO_RNG_TEST};
    float *x = co_calloc(MANY, sizeof(*x));

    assert_non_null(x);
    co_rng_normal(x, &rng, 0, MANY);
    for (size_t i = 0; i < MANY; i += 3)
        x[i] = ldexpf(x[i], (int)(i % 80) - 50);
    for (size_t i = 0; i < MANY; i += 7)
        x[i] = x[i / 2];
    for (size_t i = 0; special && i < MANY; i += 11)
        x[i] = odd[i % (sizeof(odd) / sizeof(odd[0]))];
    return x;
}

static void reduce(const place *p, size_t n, size_t k)
{
    p->vector->top_k(p->queue, p->index, p->room, p->x, n, k);
    p->vector->sum_squares(p->queue, p->squares, p->most, p->x, n, NULL);
    p->vector->block_squares(p->queue, p->block, p->x, n, NULL);
}

static void vector_reductions_of_any_length_have_bits_of_host(void **state)
{
    static const size_t length[] = {1, 7, 8, 9, 255, 2048, 2049, 4103, 32767, 32768, 40001, MANY};
    co_device *device = open_gpu();
    float *x = draw(false);
    place there, here;

    (void)state;
    open_place(&there, device, x);
    open_place(&here, NULL, x);
    for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
        const size_t k = length[i] < PICKS ? (length[i] + 1) / 2 : PICKS;

        reduce(&there, length[i], k);
        reduce(&here, length[i], k);
        check(&there, &here, there.index, here.index, k * sizeof(*here.index));
        check(&there, &here, there.squares, here.squares, sizeof(*here.squares));
        check(&there, &here, there.most, here.most, sizeof(*here.most));
        check(&there, &here, there.block, here.block,
              (length[i] + CO_VECTOR_SQUARES - 1) / CO_VECTOR_SQUARES * sizeof(*here.block));
    }
    close_place(&there);
    close_place(&here);
    co_free(x);
    co_cuda_close(device);
}

/* Of more blocks than are added up at once. */
static void vector_squares_of_many_blocks_have_bits_of_host(void **state)
{
    const size_t n = ((size_t)1 << 23) + 1500;
    co_device *device = open_gpu();
    float *x = draw(false), *lots = co_calloc(n, sizeof(*lots));
    place there, here;
    void *copy;

    (void)state;
    assert_non_null(lots);
    for (size_t i = 0; i < n; i++)
        lots[i] = x[i % MANY];
    open_place(&there, device, x);
    open_place(&here, NULL, x);
    copy = take(&there, n * sizeof(*lots));
    assert_int_equal(co_queue_copy_now(there.queue, copy, lots, n * sizeof(*lots)), CO_OK);
    there.vector->sum_squares(there.queue, there.squares, NULL, copy, n, NULL);
    here.vector->sum_squares(NULL, here.squares, NULL, lots, n, NULL);
    check(&there, &here, there.squares, here.squares, sizeof(*here.squares));
    co_device_free(device, copy, CO_MEMORY_DEVICE);
    close_place(&there);
    close_place(&here);
    co_free(lots);
    co_free(x);
    co_cuda_close(device);
}

static void round_all(const place *p, co_dtype dtype)
{
    const co_rng rng = {.seed = 9, .stream = CO_RNG_ROUND, .step = UINT64_C(1) << 33, .item = 2};

    p->vector->copy(p->queue, p->y, p->x, MANY);
    p->vector->narrow(p->queue, p->half, p->x, p->y, true, MANY, dtype);
    p->vector->round_stochastic(p->queue, p->x + 1, MANY - 1, dtype, &rng, NULL, 77);
    p->vector->scale(p->queue, p->y, 1e-3, p->y, MANY);
    p->vector->round_nearest(p->queue, p->y, MANY, dtype);
}

static void vector_rounding_of_every_size_has_bits_of_host(void **state)
{
    co_device *device = open_gpu();
    float *x = draw(true);

    (void)state;
    for (int dtype = CO_BF16; dtype <= CO_F16; dtype++) {
        place there, here;

        open_place(&there, device, x);
        open_place(&here, NULL, x);
        round_all(&there, (co_dtype)dtype);
        round_all(&here, (co_dtype)dtype);
        check(&there, &here, there.half, here.half, MANY * sizeof(*here.half));
        check(&there, &here, there.x, here.x, MANY * sizeof(float));
        check(&there, &here, there.y, here.y, MANY * sizeof(float));
        close_place(&there);
        close_place(&here);
    }
    co_free(x);
    co_cuda_close(device);
}

static void vector_entries_have_bits_of_host(void **state)
{
    co_device *device = open_gpu();

    (void)state;
    vector_check_bits(device);
    vector_check_capture(device);
    co_cuda_close(device);
}

/* Of equal ones the first, in whatever part they are. */
static void vector_top_k_with_ties_has_bits_of_host(void **state)
{
    static const size_t length[] = {4103, 32768, 100003, MANY};
    co_device *device = open_gpu();
    float *x = draw(true);
    place there, here;

    (void)state;
    open_place(&there, device, x);
    open_place(&here, NULL, x);
    there.vector->round_nearest(there.queue, there.x, MANY, CO_BF16);
    here.vector->round_nearest(NULL, here.x, MANY, CO_BF16);
    for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++)
        for (size_t k = 1; k <= PICKS && k <= length[i]; k = k * 3 + 1) {
            there.vector->top_k(there.queue, there.index, there.room, there.x, length[i], k);
            here.vector->top_k(NULL, here.index, here.room, here.x, length[i], k);
            check(&there, &here, there.index, here.index, k * sizeof(*here.index));
        }
    close_place(&there);
    close_place(&here);
    co_free(x);
    co_cuda_close(device);
}

/* In an order of their own, which is the same every time. */
static void vector_measured_squares_are_those_of_host(void **state)
{
    static const size_t lengths[] = {0, 1, 255, 4096, 65537, MANY};
    co_device *device = open_gpu();
    float *x = co_calloc(MANY, sizeof(*x));
    const co_rng rng = {.seed = 5, .stream = CO_RNG_TEST};
    place there, here;
    double got, want;
    void *room;

    (void)state;
    assert_non_null(x);
    co_rng_normal(x, &rng, 0, MANY);
    open_place(&there, device, x);
    open_place(&here, NULL, x);
    room = take(&there, CO_VECTOR_PARTS * sizeof(double));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        here.vector->measure_squares(NULL, here.squares, NULL, here.x, lengths[i], NULL);
        there.vector->measure_squares(there.queue, there.squares, room, there.x, lengths[i], NULL);
        assert_int_equal(co_queue_copy_now(there.queue, &got, there.squares, sizeof(got)), CO_OK);
        want = *here.squares;
        assert_true(fabs(got - want) <= 1e-12 * want);
    }
    co_device_free(device, room, CO_MEMORY_DEVICE);
    close_place(&there);
    close_place(&here);
    co_free(x);
    co_cuda_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_entries_have_bits_of_host),
        cmocka_unit_test(vector_reductions_of_any_length_have_bits_of_host),
        cmocka_unit_test(vector_squares_of_many_blocks_have_bits_of_host),
        cmocka_unit_test(vector_top_k_with_ties_has_bits_of_host),
        cmocka_unit_test(vector_measured_squares_are_those_of_host),
        cmocka_unit_test(vector_rounding_of_every_size_has_bits_of_host),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
