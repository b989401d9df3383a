/* test_device_strategies.c - strategies with each rank's store on a device with delayed queues: the
   host's bits, or a refusal before the first step. */
#include "strategy/ranks.h"

#include "device/mock.h"

#define STEPS 7

static co_device *open_device(void)
{
    co_device *device = NULL;

    if (mock_open(&device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    return device;
}

/* `config` on the device as `of_host` on the host. */
static void check_alike(size_t split, const char *config, const char *of_host, bool early,
                        co_device *device)
{
    static rank host[MAX_RANKS], mock[MAX_RANKS];
    job j = job_of(split, of_host, STEPS);

    j.early = early;
    run(host, &j);
    j.device = device;
    j.config = config;
    run(mock, &j);
    for (int i = 0; i < j.ranks; i++) {
        assert_same_bytes(mock[i].param, host[i].param);
        assert_memory_equal(mock[i].buffer, host[i].buffer, sizeof(host[i].buffer));
        if (strstr(config, "update: zero") || strstr(config, "update: parts")) /* whole sums */
            assert_true(mock[i].bytes_sent >= host[i].bytes_sent);
        else
            assert_int_equal(mock[i].bytes_sent, host[i].bytes_sent);
        assert_int_equal(mock[i].updates, host[i].updates);
    }
}

static void check_split(size_t split, const char *config, bool early, co_device *device)
{
    check_alike(split, config, config, early, device);
}

/* Ranks share no memory of a device: those of a host divide the update as all ranks do. */
static void strategy_parts_on_a_device_gathers_weights(void **state)
{
    co_device *device = open_device();

    (void)state;
    for (size_t s = 0; s < N_SPLITS; s++)
        for (int early = 0; early < 2; early++)
            check_alike(s, "strategy: {name: sync, update: parts, bucket_mib: 0.0002}",
                        "strategy: {name: sync, update: zero, bucket_mib: 0.0002}", early, device);
    mock_close(device);
}

static void strategies_on_a_late_device_have_bits_of_host(void **state)
{
    static const char *const configs[] = {
        "strategy: {name: sync, bucket_mib: 0.0002}",
        "strategy: {name: sync, reduction: mean, update: whole}",
        "strategy: {name: local, period: 2, start: 1, bucket_mib: 0.0002}",
        "strategy: {name: local, period: 3, outer: {momentum: 0.5, nesterov: true}}",
        "strategy: one-shot",
        "strategy: {name: stale, k: 2, bucket_mib: 0.0002}",
        "strategy: {name: stale, k: 0}",
        "strategy: {name: sync, update: zero}",
        "strategy: {name: sync, update: zero, bucket_mib: 0.0002}",
    };
    co_device *device = open_device();

    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++)
        for (size_t s = 0; s < N_SPLITS; s++)
            check_split(s, configs[c], false, device);
    for (size_t s = 0; s < N_SPLITS; s++)
        check_split(s, configs[0], true, device);
    mock_close(device);
}

/* Rank 1 fails while its gradients are in flight. */
static co_status run_until_rank_1_fails(rank_thread *base, strategy_test *t, co_comm *comm)
{
    const rank *r = (const rank *)base;

    if (base->index != 1)
        return rank_run(base, t, comm);
    CO_TRY(strategy_test_open_on(t, r->job->config, comm, r->job->device, N, N_BUFFER));
    CO_TRY(co_strategy_start(t->strategy));
    CO_TRY(co_strategy_grad_ready(t->strategy, 0, N));
    return co_fail(CO_E_FAILED, "out of patience");
}

static void strategy_of_failing_rank_ends_the_others(void **state)
{
    co_device *device = open_device();
    job j = job_of(3, "strategy: {name: sync, bucket_mib: 0.0002}", STEPS);
    rank ranks[] = {{.job = &j}, {.job = &j}, {.job = &j}};

    (void)state;
    j.device = device;
    rank_threads_run(ranks, sizeof(*ranks), 3, run_until_rank_1_fails);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ranks[i].base.status, i == 1 ? CO_E_FAILED : CO_E_PEER);
        assert_non_null(strstr(ranks[i].base.message, "out of patience"));
    }
    mock_close(device);
}

static void expect_refusal(co_device *device, const char *config, const char *message)
{
    co_comm *comm = NULL;
    strategy_test t;

    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(strategy_test_open_on(&t, config, comm, device, N, 0), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), message));
    strategy_test_close(&t);
    co_comm_destroy(comm);
}

static void strategy_that_shares_memory_is_refused(void **state)
{
    static const char *const names[] = {"ssp", "hogwild", "threads"};
    co_device *device = open_device();

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char config[64], message[256];

        (void)snprintf(config, sizeof(config), "strategy: %s", names[i]);
        (void)snprintf(message, sizeof(message),
                       "the strategy '%s' has weights that all ranks share, which the "
                       "device mock has no memory for; use sync, local, one-shot or stale",
                       names[i]);
        expect_refusal(device, config, message);
    }
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_on_a_late_device_have_bits_of_host),
        cmocka_unit_test(strategy_parts_on_a_device_gathers_weights),
        cmocka_unit_test(strategy_of_failing_rank_ends_the_others),
        cmocka_unit_test(strategy_that_shares_memory_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
