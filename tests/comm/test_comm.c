/*
 * test_comm.c - one suite for every transport: test_comm self | shm N | threads N | mpi |
 * mpi-abort. The last two run under mpiexec.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/cases.h"
#include "comm/mpi/mpi.h"
#include "comm/reduce.h"
#include "comm/shm/shm.h"
#include "core/mem.h"

#define TEST_MAX_RANKS  8
#define TEST_MAX_CASES  64
#define TEST_FULL_RANKS 4 /* with more ranks only sums, where the number matters most */

static int test_ranks;
static co_comm *test_world; /* over MPI: one for all cases */

/* A rank whose check failed aborts the others, which would wait for it. */
static bool test_rank(co_comm *comm, const comm_case *c)
{
    const bool good = c->run(comm);

    if (!good)
        co_comm_abort(comm, CO_E_FAILED, c->name);
    return good;
}

/* ---- one rank ---- */

static void self_transport_passes_case(void **state)
{
    co_comm *comm;

    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_string_equal(co_comm_transport(comm), "self");
    assert_true(test_rank(comm, *state));
    co_comm_destroy(comm);
}

/* ---- ranks as forked processes ---- */

static int test_process(co_shm *shm, int rank, const comm_case *c)
{
    co_comm *comm;
    bool good;

    if (co_shm_attach(&comm, shm, rank) != CO_OK)
        return 1;
    good = co_comm_rank(comm) == rank && co_comm_size(comm) == test_ranks && test_rank(comm, c);
    co_comm_destroy(comm);
    co_shm_destroy(shm);
    return good ? 0 : 1;
}

static void shm_processes_pass_case(void **state)
{
    const comm_case *c = *state;
    co_shm *shm;
    bool good = true;

    assert_int_equal(co_shm_create(&shm, test_ranks), CO_OK);
    for (int rank = 0; rank < test_ranks; rank++) {
        const pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            exit(test_process(shm, rank, c));
    }
    for (int rank = 0; rank < test_ranks; rank++) {
        int status;

        assert_true(wait(&status) > 0);
        if (status != 0)
            co_shm_abort(shm, rank, CO_E_PEER, "a rank has ended");
        good = good && status == 0;
    }
    co_shm_destroy(shm);
    assert_true(good);
}

/* The launcher notices that a rank died and ends the others' wait. */
static void shm_killed_rank_ends_wait_of_others(void **state)
{
    char cause[64];
    co_shm *shm;
    int status, rank = -1;
    pid_t victim, waiter;

    (void)state;
    assert_int_equal(co_shm_create(&shm, 2), CO_OK);
    assert_int_equal(co_shm_cause(shm, &rank, cause, sizeof(cause)), CO_OK);
    victim = fork();
    if (victim == 0)
        raise(SIGKILL);
    waiter = fork();
    if (waiter == 0) {
        co_comm *comm;

        if (co_shm_attach(&comm, shm, 0) != CO_OK)
            exit(1);
        if (co_comm_barrier(comm) != CO_E_PEER)
            exit(2);
        if (strcmp(co_error_message(), "rank 1 was killed by signal 9") != 0)
            exit(3);
        co_comm_destroy(comm);
        co_shm_destroy(shm);
        exit(0);
    }
    assert_int_equal(waitpid(victim, &status, 0), victim);
    co_shm_abort(shm, 1, CO_E_PEER, "rank 1 was killed by signal 9");
    co_shm_abort(shm, 0, CO_E_PEER, "not the first cause");
    assert_int_equal(waitpid(waiter, &status, 0), waiter);
    assert_int_equal(status, 0);
    assert_int_equal(co_shm_cause(shm, &rank, cause, sizeof(cause)), CO_E_PEER);
    assert_int_equal(rank, 1);
    assert_string_equal(cause, "rank 1 was killed by signal 9");
    co_shm_destroy(shm);
}

/* Allocation number k fails, for every k: an error, no leak, no crash. */
static void shm_failed_allocation_is_an_error(void **state)
{
    co_status st = CO_E_NOMEM;

    (void)state;
    for (uint64_t k = 1; st == CO_E_NOMEM; k++) {
        float in[8] = {0}, out[8];
        co_shm *shm = NULL;
        co_comm *comm = NULL, *part = NULL;

        co_mem_fail_at(k);
        st = co_shm_create(&shm, 1);
        if (st == CO_OK)
            st = co_shm_attach(&comm, shm, 0);
        if (st == CO_OK)
            st = co_comm_allreduce(comm, out, in, 8, CO_F32, CO_SUM);
        if (st == CO_OK)
            st = co_comm_split(&part, comm, 0, 0);
        if (st == CO_OK)
            st = co_comm_barrier(part);
        co_mem_fail_at(0);
        co_comm_destroy(part);
        co_comm_destroy(comm);
        co_shm_destroy(shm);
        assert_true(k < 100);
    }
    assert_int_equal(st, CO_OK);
}

static void shm_bad_number_of_ranks_is_refused(void **state)
{
    co_shm *shm;
    co_comm *comm;

    (void)state;
    assert_int_equal(co_shm_create(&shm, 0), CO_E_USAGE);
    assert_int_equal(co_shm_create(&shm, 1 << 20), CO_E_USAGE);
    assert_int_equal(co_shm_create(&shm, 4), CO_OK);
    assert_int_equal(co_shm_attach(&comm, shm, 4), CO_E_USAGE);
    co_shm_destroy(shm);
    co_shm_destroy(NULL);
}

static void shm_unused_ranks_take_no_memory(void **state)
{
    struct rlimit limit;
    co_shm *shm;

    (void)state;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        print_message("skipped: addresses are limited\n");
        skip();
    }
    assert_int_equal(co_shm_create(&shm, 1024), CO_OK);
    co_shm_destroy(shm);
}

/* Integers wrap around, and averages are truncated towards zero. */
static void reduce_integers_wrap_and_truncate(void **state)
{
    const int32_t big = INT32_MAX, one = 1;
    const int64_t huge = INT64_MAX, two = 2;
    const uint8_t byte = 200;
    int32_t i;
    int64_t l;
    uint8_t b;

    (void)state;
    co_reduce_pair(&i, &big, &one, 1, CO_I32, CO_SUM);
    assert_int_equal(i, INT32_MIN);
    co_reduce_pair(&i, &big, &big, 1, CO_I32, CO_PROD);
    assert_int_equal(i, 1);
    co_reduce_pair(&l, &huge, &two, 1, CO_I64, CO_PROD);
    assert_int_equal(l, -2);
    co_reduce_pair(&b, &byte, &byte, 1, CO_U8, CO_AVG);
    assert_int_equal(b, 144);
    co_reduce_divide(&b, 1, CO_U8, 5);
    assert_int_equal(b, 28);
    co_reduce_divide(&b, 1, CO_U8, 256);
    assert_int_equal(b, 0);
    i = -7;
    co_reduce_divide(&i, 1, CO_I32, 2);
    assert_int_equal(i, -3);
}

/* ---- ranks as threads ---- */

typedef struct test_thread {
    co_shm *shm;
    const comm_case *c;
    int rank;
    bool good;
    pthread_t thread;
} test_thread;

static void *test_thread_main(void *arg)
{
    test_thread *t = arg;
    co_comm *comm;

    if (co_shm_attach(&comm, t->shm, t->rank) != CO_OK) {
        co_shm_abort(t->shm, t->rank, CO_E_FAILED, co_error_message());
        return NULL;
    }
    t->good = test_rank(comm, t->c);
    co_comm_destroy(comm);
    return NULL;
}

static void shm_threads_pass_case(void **state)
{
    test_thread threads[TEST_MAX_RANKS];
    co_shm *shm;
    bool good = true;

    assert_int_equal(co_shm_create(&shm, test_ranks), CO_OK);
    for (int rank = 0; rank < test_ranks; rank++) {
        threads[rank] = (test_thread){.shm = shm, .c = *state, .rank = rank};
        assert_int_equal(
            pthread_create(&threads[rank].thread, NULL, test_thread_main, &threads[rank]), 0);
    }
    for (int rank = 0; rank < test_ranks; rank++) {
        pthread_join(threads[rank].thread, NULL);
        good = good && threads[rank].good;
    }
    co_shm_destroy(shm);
    assert_true(good);
}

/* ---- ranks under mpiexec ---- */

static void mpi_processes_pass_case(void **state)
{
    co_comm *comm;

    assert_int_equal(co_comm_split(&comm, test_world, 0, 0), CO_OK);
    assert_string_equal(co_comm_transport(comm), "mpi");
    assert_true(test_rank(comm, *state));
    co_comm_destroy(comm);
}

static int test_mpi_abort(void)
{
    if (co_comm_rank(test_world) == co_comm_size(test_world) - 1)
        co_comm_abort(test_world, CO_E_DATA, "the disk is on fire");
    return co_comm_barrier(test_world) == CO_OK ? 0 : 1;
}

/* ---- the runner ---- */

static int test_add(struct CMUnitTest *tests, int n, const comm_case *cases,
                    CMUnitTestFunction runner)
{
    for (; cases->name; cases++)
        if (cases->min_ranks <= test_ranks)
            tests[n++] = (struct CMUnitTest){
                .name = cases->name, .test_func = runner, .initial_state = (void *)cases};
    return n;
}

static int test_run(CMUnitTestFunction runner)
{
    struct CMUnitTest tests[TEST_MAX_CASES];
    int n = test_add(tests, 0, comm_cases_tree, runner);

    n = test_add(tests, n, comm_cases_sum, runner);
    n = test_add(tests, n, comm_cases_slices, runner);
    n = test_add(tests, n, comm_cases_wire, runner);
    if (test_ranks > TEST_FULL_RANKS)
        return _cmocka_run_group_tests("comm", tests, (size_t)n, NULL, NULL);
    n = test_add(tests, n, comm_cases_data, runner);
    n = test_add(tests, n, comm_cases_order, runner);
    n = test_add(tests, n, comm_cases_failure, runner);
    n = test_add(tests, n, comm_cases_window, runner);
    n = test_add(tests, n, comm_cases_alloc, runner);
    if (runner == shm_processes_pass_case && test_ranks == 1) {
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(shm_killed_rank_ends_wait_of_others);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(shm_failed_allocation_is_an_error);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(shm_bad_number_of_ranks_is_refused);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(shm_unused_ranks_take_no_memory);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(reduce_integers_wrap_and_truncate);
    }
    return _cmocka_run_group_tests("comm", tests, (size_t)n, NULL, NULL);
}

static int test_under_mpi(bool abort_one)
{
    int failed;

    if (co_comm_create_mpi(&test_world, 0) != CO_OK) {
        fprintf(stderr, "%s\n", co_error_message());
        return 1;
    }
    test_ranks = co_comm_size(test_world);
    failed = abort_one ? test_mpi_abort() : test_run(mpi_processes_pass_case);
    co_comm_destroy(test_world);
    co_mpi_finalize(failed);
    return failed;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "self";

    test_ranks = argc > 2 ? atoi(argv[2]) : 1;
    if (test_ranks < 1 || test_ranks > TEST_MAX_RANKS)
        return 2;
    if (strncmp(how, "mpi", 3) == 0)
        return test_under_mpi(strcmp(how, "mpi-abort") == 0);
    if (strcmp(how, "shm") == 0)
        return test_run(shm_processes_pass_case);
    if (strcmp(how, "threads") == 0)
        return test_run(shm_threads_pass_case);
    return test_run(self_transport_passes_case);
}
