/* test_agree.c - ranks of one machine agree where to carry out a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "comm/shm/shm.h"
#include "control/session_internal.h"
#include "control/session_rank.h"
#include "core/clock.h"
#include "core/mem.h"
#include "waits.h"

#define RANKS 2
#define AHEAD 8 /* steps that rank 0 has made when it is asked */

static co_session session = {.ranks = RANKS, .capacity = RANKS};

typedef struct agreeing {
    co_comm *comm;
    co_status status;
} agreeing;

static co_status agree_ahead(co_rank_control *control)
{
    return co_session_before_step(control, AHEAD);
}

/* In all it takes longer than a rank waits, and no step does. */
static co_status agree_behind(co_rank_control *control)
{
    for (uint64_t step = 1; step <= AHEAD; step++) {
        co_clock_sleep_us(UINT64_C(1000) * WAITS_SHORT_MS * 3 / 2 / AHEAD);
        CO_TRY(co_session_before_step(control, step));
    }
    return CO_OK;
}

static void *agree(void *arg)
{
    agreeing *a = arg;
    co_rank_control control = {.options = {.comm = a->comm, .session = &session}};

    a->status = co_comm_rank(a->comm) == 0 ? agree_ahead(&control) : agree_behind(&control);
    return NULL;
}

static void agree_waits_for_rank_that_gets_on(void **state)
{
    const size_t size = sizeof(session_shared) + RANKS * sizeof(session_rank);
    agreeing a[RANKS] = {{0}};
    pthread_t thread[RANKS];
    co_shm *shm;

    (void)state;
    session.shared = co_calloc_aligned(1, size);
    assert_non_null(session.shared);
    atomic_store(&session.shared->rank[0].entered, AHEAD);
    atomic_store(&session.shared->rank[1].entered, 1);
    atomic_store(&session.shared->asked, 1 << 8 | SESSION_ASK_SAVE);
    assert_int_equal(co_shm_create(&shm, RANKS), CO_OK);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(co_shm_attach(&a[r].comm, shm, r), CO_OK);
        assert_int_equal(co_comm_set_timeout(a[r].comm, WAITS_SHORT_MS), CO_OK);
    }
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(pthread_create(&thread[r], NULL, agree, &a[r]), 0);
    for (int r = 0; r < RANKS; r++) {
        pthread_join(thread[r], NULL);
        assert_int_equal(a[r].status, CO_OK);
        assert_int_equal(atomic_load(&session.shared->rank[r].handled), 1);
    }
    for (int r = 0; r < RANKS; r++)
        co_comm_destroy(a[r].comm);
    co_shm_destroy(shm);
    co_free(session.shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agree_waits_for_rank_that_gets_on)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
