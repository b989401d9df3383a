/*
 * test_sync_order.c - which operations `sync` posts, and when. Uses a transport that records every
 * operation and sums nothing.
 */
#include "strategy/strategy_test.h"

#include <cohort/ext/comm.h>

#define N             160
#define CONFIG        "strategy: {name: sync, bucket_mib: 0.0002}" /* full: 64 elements */
#define RECORDER_MOST 16

typedef struct recorder {
    co_comm base;
    co_coll_args posted[RECORDER_MOST];
    int n_posted, n_open, fail_at; /* fail_at: number of the post that fails; 0: none */
    bool aborted;
    co_status first; /* failure; CO_OK: none */
    char cause[128];
} recorder;

static co_status recorder_post(co_request **request, co_comm *comm, const co_coll_args *args)
{
    recorder *r = (recorder *)comm;

    assert_true(r->n_posted < RECORDER_MOST);
    if (r->n_posted + 1 == r->fail_at)
        return co_fail(CO_E_PEER, "rank 1 has died");
    r->posted[r->n_posted++] = *args;
    *request = co_calloc(1, sizeof(**request));
    assert_non_null(*request);
    **request = (co_request){.comm = comm, .args = *args};
    (*request)->done = args->coll != CO_COLL_ALLREDUCE;
    r->n_open++;
    return CO_OK;
}

static co_status recorder_progress(co_comm *comm)
{
    const recorder *r = (recorder *)comm;

    return r->first == CO_OK ? CO_OK : co_fail(r->first, "%s", r->cause);
}

static void recorder_destroy_request(co_request *request)
{
    ((recorder *)request->comm)->n_open--;
    co_free(request);
}

static void recorder_describe_wait(const co_request *request, char *out, size_t size)
{
    (void)request;
    (void)snprintf(out, size, "waiting for nobody");
}

static void recorder_fail(co_comm *comm, int rank, co_status status, const char *cause)
{
    recorder *r = (recorder *)comm;

    (void)rank;
    if (r->first != CO_OK)
        return;
    r->first = status;
    (void)snprintf(r->cause, sizeof(r->cause), "%s", cause);
}

static void recorder_abort(co_comm *comm, co_status status, const char *cause)
{
    (void)status;
    (void)cause;
    ((recorder *)comm)->aborted = true;
}

static const co_comm_ops recorder_ops = {
    .name = "recorder",
    .post = recorder_post,
    .progress = recorder_progress,
    .describe_wait = recorder_describe_wait,
    .destroy_request = recorder_destroy_request,
    .fail = recorder_fail,
    .abort = recorder_abort,
};

static recorder make_recorder(void)
{
    return (recorder){.base = {.ops = &recorder_ops, .size = 2, .timeout_ms = 50}};
}

static void open_sync(strategy_test *t, recorder *r, const char *text)
{
    if (strategy_test_open(t, text, &r->base, N, 32) != CO_OK)
        fail_msg("%s", co_error_message());
}

/* Waits time out here, so what was posted is what the strategy posts before it waits. */
static void expect_all_posted(strategy_test *t, recorder *r, co_reduce_op op)
{
    static const size_t end[] = {0, 16, 80, 144, 160};
    const co_strategy_step first = {.step = 0};

    assert_int_equal(co_strategy_before_update(t->strategy, &first), CO_E_TIMEOUT);
    assert_int_equal(r->n_posted, 4);
    for (int i = 0; i < 4; i++) {
        const co_coll_args *a = &r->posted[i];

        assert_int_equal(a->coll, CO_COLL_ALLREDUCE);
        assert_ptr_equal(a->in, t->store->grad + end[i]);
        assert_ptr_equal(a->out, a->in);
        assert_int_equal(a->count, end[i + 1] - end[i]);
        assert_int_equal(a->dtype, CO_F32);
        assert_int_equal(a->op, op);
    }
}

/* Closing in the middle of a step tells the other ranks, and leaks no request. */
static void expect_clean_close(strategy_test *t, recorder *r, bool in_a_step)
{
    strategy_test_close(t);
    assert_int_equal(r->n_open, 0);
    assert_int_equal(r->aborted, in_a_step);
}

static void sync_start_broadcasts_weights_and_buffers(void **state)
{
    recorder r = make_recorder();
    strategy_test t;

    (void)state;
    open_sync(&t, &r, CONFIG);
    assert_int_equal(co_strategy_start(t.strategy), CO_OK);
    assert_int_equal(r.n_posted, 2);
    assert_int_equal(r.posted[0].coll, CO_COLL_BCAST);
    assert_ptr_equal(r.posted[0].out, t.store->param);
    assert_int_equal(r.posted[0].count, N);
    assert_int_equal(r.posted[0].peer, 0);
    assert_ptr_equal(r.posted[1].out, t.store->buffer);
    assert_int_equal(r.posted[1].count, 32);
    assert_int_equal(co_strategy_finish(t.strategy), CO_OK);
    expect_clean_close(&t, &r, false);
}

static void sync_complete_bucket_is_posted(void **state)
{
    static const struct {
        size_t end;
        int posted;
    } announced[] = {{8, 0}, {16, 1}, {79, 1}, {96, 2}, {150, 3}, {160, 4}};
    recorder r = make_recorder();
    strategy_test t;
    size_t begin = 0;

    (void)state;
    open_sync(&t, &r, CONFIG);
    for (size_t i = 0; i < sizeof(announced) / sizeof(announced[0]); i++) {
        assert_int_equal(co_strategy_grad_ready(t.strategy, begin, announced[i].end), CO_OK);
        assert_int_equal(r.n_posted, announced[i].posted);
        begin = announced[i].end;
    }
    expect_all_posted(&t, &r, CO_SUM);
    expect_clean_close(&t, &r, true);
}

static void sync_one_range_may_complete_many_buckets(void **state)
{
    recorder r = make_recorder();
    strategy_test t;

    (void)state;
    open_sync(&t, &r, CONFIG);
    assert_int_equal(co_strategy_grad_ready(t.strategy, 0, 144), CO_OK);
    assert_int_equal(r.n_posted, 3);
    expect_all_posted(&t, &r, CO_SUM);
    expect_clean_close(&t, &r, true);
}

static void sync_without_samples_posts_all_before_update(void **state)
{
    recorder r = make_recorder();
    strategy_test t;

    (void)state;
    open_sync(&t, &r, CONFIG);
    expect_all_posted(&t, &r, CO_SUM);
    expect_clean_close(&t, &r, true);
}

/* A range after a gap must not be sent. */
static void sync_range_after_gap_is_not_posted(void **state)
{
    recorder r = make_recorder();
    strategy_test t;

    (void)state;
    open_sync(&t, &r, CONFIG);
    assert_int_equal(co_strategy_grad_ready(t.strategy, 16, 160), CO_OK);
    assert_int_equal(r.n_posted, 0);
    assert_int_equal(co_strategy_grad_ready(t.strategy, 0, 40), CO_OK);
    assert_int_equal(r.n_posted, 1);
    assert_int_equal(co_strategy_grad_ready(t.strategy, 20, 90), CO_OK);
    assert_int_equal(r.n_posted, 2);
    expect_all_posted(&t, &r, CO_SUM);
    expect_clean_close(&t, &r, true);
}

static void sync_mean_is_done_by_transport(void **state)
{
    recorder r = make_recorder();
    strategy_test t;

    (void)state;
    open_sync(&t, &r, "strategy: {name: sync, bucket_mib: 0.0002, reduction: mean}");
    expect_all_posted(&t, &r, CO_AVG);
    expect_clean_close(&t, &r, true);
}

static void sync_failure_to_post_is_returned(void **state)
{
    (void)state;
    for (int k = 1; k <= 4; k++) {
        recorder r = make_recorder();
        strategy_test t;

        open_sync(&t, &r, CONFIG);
        r.fail_at = k;
        assert_int_equal(co_strategy_grad_ready(t.strategy, 0, N), CO_E_PEER);
        assert_string_equal(co_error_message(), "rank 1 has died");
        expect_clean_close(&t, &r, k > 1);
    }
}

static co_comm *nobody_is_local(co_comm *comm)
{
    (void)comm;
    return NULL;
}

/* The first bucket is a quarter of the bucket size: 4 MiB where all ranks share memory, else 1. */
static void sync_buckets_between_hosts_are_smaller(void **state)
{
    const size_t n = (size_t)3 << 20; /* 12 MiB */
    co_comm_ops apart = recorder_ops;

    (void)state;
    apart.local = nobody_is_local;
    for (int hosts = 1; hosts <= 2; hosts++) {
        recorder r = make_recorder();
        strategy_test t;

        r.base.ops = hosts == 1 ? &recorder_ops : &apart;
        assert_int_equal(strategy_test_open(&t, "strategy: sync", &r.base, n, 32), CO_OK);
        assert_int_equal(co_strategy_grad_ready(t.strategy, 0, (size_t)1 << 18), CO_OK);
        assert_true(r.n_posted > 0);
        assert_int_equal(r.posted[0].count, (size_t)1 << (hosts == 1 ? 18 : 16));
        expect_clean_close(&t, &r, true);
    }
}

static void sync_bad_config_is_refused_at_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"strategy: snyc", "bad.yaml:1:11: unknown strategy 'snyc'; did you mean 'sync'?"},
        {"strategy: magic", "bad.yaml:1:11: unknown strategy 'magic'; there are sync, "},
        {"strategy: {reduction: max}",
         "bad.yaml:1:23: strategy sync: key 'reduction': expected one of sum, mean, got 'max'"},
        {"strategy: [sync]",
         "bad.yaml:1:11: strategy: expected a name, or {name: ..., key: value}"},
        {"strategy: {name: sync, reduction: max}",
         "bad.yaml:1:35: strategy sync: key 'reduction': expected one of sum, mean, got 'max'"},
        {"strategy: {name: sync, bucket_mib: -1}",
         "bad.yaml:1:36: strategy sync: key 'bucket_mib': expected auto, or a number from "
         "0.0001 to 4096, got '-1'"},
        {"strategy: {name: sync, bucket: 1}",
         "bad.yaml:1:32: strategy sync: unknown key 'bucket'; there are reduction, "},
    };
    recorder r = make_recorder();

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        strategy_test t;

        assert_int_equal(strategy_test_open(&t, cases[c].text, &r.base, N, 0), CO_E_USAGE);
        assert_memory_equal(co_error_message(), cases[c].message, strlen(cases[c].message));
        assert_null(t.strategy);
        strategy_test_close(&t);
    }
}

static void sync_failed_allocation_is_an_error(void **state)
{
    recorder r = make_recorder();

    (void)state;
    strategy_test_fail_allocations(CONFIG, &r.base, N, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sync_start_broadcasts_weights_and_buffers),
        cmocka_unit_test(sync_complete_bucket_is_posted),
        cmocka_unit_test(sync_one_range_may_complete_many_buckets),
        cmocka_unit_test(sync_without_samples_posts_all_before_update),
        cmocka_unit_test(sync_range_after_gap_is_not_posted),
        cmocka_unit_test(sync_mean_is_done_by_transport),
        cmocka_unit_test(sync_failure_to_post_is_returned),
        cmocka_unit_test(sync_buckets_between_hosts_are_smaller),
        cmocka_unit_test(sync_bad_config_is_refused_at_its_line),
        cmocka_unit_test(sync_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
