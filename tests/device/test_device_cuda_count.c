/* test_device_cuda_count.c - what a GPU counts of a batch is what the host counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "metrics/metrics.h"
#include "model/metrics.h"
#include "standin/open_gpu.h"

#define MAX_SUMS 8

/* A batch of the host, and the same in memory of the GPU. */
typedef struct batches {
    co_device *device;
    co_queue *queue;
    co_metric_batch host, gpu;
    void *block[4];
    int n;
} batches;

static const void *to_gpu(batches *b, const void *from, size_t bytes)
{
    void *to = NULL;

    if (!from)
        return NULL;
    assert_int_equal(co_device_alloc(&to, b->device, bytes, CO_MEMORY_DEVICE), CO_OK);
    assert_int_equal(co_queue_copy_now(b->queue, to, from, bytes), CO_OK);
    b->block[b->n++] = to;
    return to;
}

/* Values with ties, and some that are no numbers. */
static float draw(uint64_t i)
{
    return i % 37 == 36 ? NAN : (float)((i * 7919) % 23) - 11;
}

static float *make_values(size_t n, size_t shift)
{
    float *values = co_calloc(n, sizeof(*values));

    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = draw(i + shift);
    return values;
}

static void open_batches(batches *b, co_device *device, co_target target, size_t n, size_t outputs)
{
    float *output = make_values(n * outputs, 0), *loss = make_values(n, 3), *wanted = NULL;
    int32_t *label = NULL;

    *b = (batches){.device = device};
    assert_int_equal(co_queue_create(&b->queue, device), CO_OK);
    if (target == CO_TARGET_LABEL) {
        label = co_calloc(n, sizeof(*label));
        for (size_t i = 0; i < n; i++)
            label[i] = (int32_t)(i * 5 % outputs);
    } else {
        wanted = co_calloc(n * outputs, sizeof(*wanted));
        for (size_t i = 0; i < n * outputs; i++)
            wanted[i] = target == CO_TARGET_BINARY ? (float)(i * 5 % 7 < 3) : (float)(i % 9);
    }
    for (size_t i = 0; i < n; i++)
        loss[i] = isnan(loss[i]) ? 0.5F : loss[i];
    b->host = (co_metric_batch){.form = {.target = target, .outputs = outputs},
                                .n = n,
                                .output = output,
                                .target = wanted,
                                .label = label,
                                .loss = loss};
    b->gpu = b->host;
    b->gpu.output = to_gpu(b, output, n * outputs * sizeof(*output));
    b->gpu.target = to_gpu(b, wanted, n * outputs * sizeof(*wanted));
    b->gpu.label = to_gpu(b, label, n * sizeof(*label));
    b->gpu.loss = to_gpu(b, loss, n * sizeof(*loss));
}

static void close_batches(batches *b)
{
    co_queue_destroy(b->queue);
    while (b->n > 0)
        co_device_free(b->device, b->block[--b->n], CO_MEMORY_DEVICE);
    co_free((void *)b->host.output);
    co_free((void *)b->host.target);
    co_free((void *)b->host.label);
    co_free((void *)b->host.loss);
}

static void check_count(co_device *device, co_target target, size_t n, size_t outputs)
{
    co_result want, got;
    void *counted = NULL;
    batches b;

    open_batches(&b, device, target, n, outputs);
    co_metrics_count(&want, &b.host);
    assert_int_equal(co_device_alloc(&counted, device, sizeof(got), CO_MEMORY_DEVICE), CO_OK);
    device->ops->metrics->count(b.queue, counted, &b.gpu);
    assert_int_equal(co_queue_copy_now(b.queue, &got, counted, sizeof(got)), CO_OK);
    assert_int_equal(got.count, want.count);
    assert_int_equal(got.correct, want.correct);
    assert_int_equal(got.correct5, want.correct5);
    assert_true(fabs(got.loss_sum - want.loss_sum) <= 1e-9 * fabs(want.loss_sum));
    co_device_free(device, counted, CO_MEMORY_DEVICE);
    close_batches(&b);
}

static void counts_of_labels_and_of_binary_targets_are_those_of_host(void **state)
{
    co_device *device = open_gpu();

    (void)state;
    check_count(device, CO_TARGET_LABEL, 1, 3);
    check_count(device, CO_TARGET_LABEL, 700, 10);
    check_count(device, CO_TARGET_LABEL, 40, 1000);
    check_count(device, CO_TARGET_BINARY, 700, 1);
    check_count(device, CO_TARGET_BINARY, 300, 5);
    check_count(device, CO_TARGET_VALUES, 300, 2);
    co_cuda_close(device);
}

/* Twice, as sums over two batches are. */
static void check_metric(co_device *device, const co_device_metric *metric, size_t n,
                         size_t outputs)
{
    const co_metric *host = co_metric_find(metric->name);
    const co_target target =
        host->targets & CO_METRIC_OF(CO_TARGET_VALUES) ? CO_TARGET_VALUES : CO_TARGET_BINARY;
    co_sum want[MAX_SUMS] = {{0, 0}}, got[MAX_SUMS];
    void *sums = NULL;
    batches b;

    assert_true(host->sums <= MAX_SUMS && host->sums_per_output == 0);
    open_batches(&b, device, target, n, outputs);
    assert_int_equal(co_device_alloc(&sums, device, sizeof(got), CO_MEMORY_DEVICE), CO_OK);
    for (int time = 0; time < 2; time++) {
        host->accumulate(want, &b.host);
        metric->accumulate(b.queue, sums, &b.gpu);
    }
    assert_int_equal(co_queue_copy_now(b.queue, got, sums, sizeof(got)), CO_OK);
    for (size_t s = 0; s < host->sums; s++) {
        const double is = co_sum_value(&got[s]), should = co_sum_value(&want[s]);

        if (isnan(is) != isnan(should) || fabs(is - should) > 1e-12 * fabs(should))
            fail_msg("%s: sum %zu is %.17g, on the host %.17g", metric->name, s, is, should);
    }
    co_device_free(device, sums, CO_MEMORY_DEVICE);
    close_batches(&b);
}

static void metrics_of_a_gpu_are_those_of_host(void **state)
{
    co_device *device = open_gpu();
    int n = 0;

    (void)state;
    for (const co_device_metric *m = device->ops->metrics->metric; m->name; m++, n++) {
        check_metric(device, m, 5, 3); /* no NaN among so few */
        check_metric(device, m, 900, 3);
    }
    assert_int_equal(n, 3);
    co_cuda_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_labels_and_of_binary_targets_are_those_of_host),
        cmocka_unit_test(metrics_of_a_gpu_are_those_of_host),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
