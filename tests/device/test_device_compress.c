/* test_device_compress.c - compressed gradients with each rank's store on a device with delayed
   queues: the host's bits and bytes, also after a gradient that is not finite. */
#include "strategy/compress_test.h"

#include "device/mock.h"

static rank others[MAX_RANKS];

static void check(co_device *device, job j)
{
    run(others, &j);
    j.device = device;
    run(ranks, &j);
    for (int i = 0; i < j.ranks; i++) {
        for (int step = 0; step < STEPS; step++)
            assert_same(ranks[i].sum[step], others[i].sum[step], &j);
        assert_int_equal(ranks[i].has_memory, others[i].has_memory);
        assert_same(ranks[i].memory, others[i].memory, &j);
        assert_int_equal(ranks[i].bytes_sent, others[i].bytes_sent);
    }
}

static co_device *open_device(void)
{
    co_device *device = NULL;

    if (mock_open(&device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    return device;
}

static void compress_on_a_late_device_has_bits_of_host(void **state)
{
    co_device *device = open_device();

    (void)state;
    for (size_t c = 0; c < N_LOSSY; c++)
        check(device, (job){.config = lossy[c], .ranks = c % 2 ? 3 : 2});
    check(device, (job){.config = lossy[0], .ranks = 1});
    mock_close(device);
}

static void compress_on_a_device_recovers_from_bad_gradient(void **state)
{
    static const char *const more[] = {
        "strategy: {name: sync, compress: {name: topk, ratio: 0.3, momentum: 0.5}}",
        "strategy: {name: sync, compress: {name: powersgd, rank: 2, min_compression: 0}}",
    };
    co_device *device = open_device();

    (void)state;
    for (size_t c = 0; c < N_LOSSY; c++)
        check(device, (job){.config = lossy[c], .ranks = 3, .spoiled = 4});
    for (size_t c = 0; c < sizeof(more) / sizeof(more[0]); c++)
        check(device, (job){.config = more[c], .ranks = 3, .spoiled = 4});
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compress_on_a_late_device_has_bits_of_host),
        cmocka_unit_test(compress_on_a_device_recovers_from_bad_gradient),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
