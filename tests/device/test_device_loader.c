/* test_device_loader.c - a device copies batches later than the loader returns the next one: their
   memory is not reused before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "device/mock.h"

#define SAMPLES 60
#define BATCH   8
#define FLOATS  (2 * 5 * 5) /* per sample */
#define BATCHES 25          /* more than three epochs; the last batch of each is short */

typedef struct source {
    co_dataset *data;
    co_sampler *sampler;
    co_loader *loader;
} source;

typedef struct result {
    uint64_t count[BATCHES];
    float input[BATCHES][BATCH * FLOATS];
    int32_t label[BATCHES][BATCH];
} result;

static void source_open(source *s, co_queue *queue, int threads, int depth)
{
    const co_sampler_options sampling = {.count = SAMPLES, .batch = BATCH, .ranks = 1, .seed = 3};
    co_loader_options loading = {.threads = threads, .depth = depth, .queue = queue};

    assert_int_equal(co_dataset_open(&s->data,
                                     "{name: synthetic, shape: [2, 5, 5], classes: 7, samples: 60}",
                                     CO_SPLIT_TRAIN),
                     CO_OK);
    assert_int_equal(co_sampler_create(&s->sampler, &sampling), CO_OK);
    loading.dataset = s->data;
    loading.sampler = s->sampler;
    assert_int_equal(co_loader_create(&s->loader, &loading), CO_OK);
}

static void source_close(source *s)
{
    co_loader_destroy(s->loader);
    co_sampler_destroy(s->sampler);
    co_dataset_destroy(s->data);
}

static void read_here(result *out, int threads)
{
    source s;

    memset(out, 0, sizeof(*out));
    source_open(&s, NULL, threads, 0);
    for (int i = 0; i < BATCHES; i++) {
        co_batch batch;

        assert_int_equal(co_loader_next(&batch, s.loader), CO_OK);
        out->count[i] = batch.count;
        memcpy(out->input[i], co_batch_find(&batch, CO_FIELD_INPUT)->data,
               batch.count * FLOATS * sizeof(float));
        memcpy(out->label[i], co_batch_find(&batch, CO_FIELD_LABEL)->data,
               batch.count * sizeof(int32_t));
    }
    source_close(&s);
}

static void *take(co_device *device, size_t bytes, co_memory kind)
{
    void *block = NULL;

    assert_int_equal(co_device_alloc(&block, device, bytes, kind), CO_OK);
    return block;
}

/* Delayed operations before every copy make it run long after the loader could have reused the
   memory. Waits only at the end. */
static void read_there(result *out, co_device *device, int threads, int depth)
{
    result *there = take(device, sizeof(*there), CO_MEMORY_DEVICE);
    void *room = take(device, 64, CO_MEMORY_DEVICE);
    co_queue *queue = NULL;
    source s;

    assert_int_equal(co_queue_create(&queue, device), CO_OK);
    memset(out, 0, sizeof(*out));
    source_open(&s, queue, threads, depth);
    for (int i = 0; i < BATCHES; i++) {
        co_batch batch;

        assert_int_equal(co_loader_next(&batch, s.loader), CO_OK);
        out->count[i] = batch.count;
        for (int k = 0; k < 8; k++)
            assert_int_equal(co_queue_fill(queue, room, k, 64), CO_OK);
        assert_int_equal(co_queue_copy(queue, there->input[i],
                                       co_batch_find(&batch, CO_FIELD_INPUT)->data,
                                       batch.count * FLOATS * sizeof(float)),
                         CO_OK);
        assert_int_equal(co_queue_copy(queue, there->label[i],
                                       co_batch_find(&batch, CO_FIELD_LABEL)->data,
                                       batch.count * sizeof(int32_t)),
                         CO_OK);
    }
    source_close(&s); /* waits for the copies */
    assert_int_equal(co_queue_copy_now(queue, out->input, there->input, sizeof(out->input)), CO_OK);
    assert_int_equal(co_queue_copy_now(queue, out->label, there->label, sizeof(out->label)), CO_OK);
    co_queue_destroy(queue);
    co_device_free(device, there, CO_MEMORY_DEVICE);
    co_device_free(device, room, CO_MEMORY_DEVICE);
}

static void loader_batches_copied_late_equal_host(void **state)
{
    static const struct {
        int threads, depth;
    } cases[] = {{0, 0}, {1, 1}, {2, 2}, {3, 4}};
    static result here, there;
    co_device *device = NULL;

    (void)state;
    read_here(&here, 0);
    assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        read_there(&there, device, cases[i].threads, cases[i].depth);
        assert_memory_equal(&there, &here, sizeof(here));
    }
    mock_close(device);
}

static void loader_failed_device_fails_next_batch(void **state)
{
    static const int threads[] = {0, 2};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        co_device *device = NULL;
        co_queue *queue = NULL;
        co_batch batch;
        source s;

        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
        assert_int_equal(co_queue_create(&queue, device), CO_OK);
        source_open(&s, queue, threads[i], 2);
        assert_int_equal(co_loader_next(&batch, s.loader), CO_OK);
        assert_int_equal(co_loader_next(&batch, s.loader), CO_OK);
        mock_break(device);
        assert_int_equal(co_loader_next(&batch, s.loader), CO_E_FAILED);
        source_close(&s);
        co_queue_destroy(queue);
        mock_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loader_batches_copied_late_equal_host),
        cmocka_unit_test(loader_failed_device_fails_next_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
