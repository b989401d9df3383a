/*
 * rank_threads.h - runs ranks as threads over shared memory, each with its strategy, until all have
 * ended or failed.
 */
#ifndef CO_TESTS_RANK_THREADS_H
#define CO_TESTS_RANK_THREADS_H

#include "strategy/strategy_test.h"

#include <pthread.h>
#include <stdio.h>

#include "comm/shm/shm.h"
#include "waits.h"

/* First member of a test's own rank. */
typedef struct rank_thread {
    int index;
    co_status status;  /* the result */
    char message[512]; /* of a failure */
    co_shm *shm;
    pthread_t thread;
    co_status (*run)(struct rank_thread *r, strategy_test *t, co_comm *comm); /* leaves t open */
} rank_thread;

static inline void *rank_thread_main(void *arg)
{
    rank_thread *r = arg;
    strategy_test t = {NULL, NULL, NULL};
    co_comm *comm = NULL;

    r->status = co_shm_attach(&comm, r->shm, r->index);
    if (r->status == CO_OK)
        r->status = r->run(r, &t, comm);
    if (r->status != CO_OK)
        (void)snprintf(r->message, sizeof(r->message), "%s", co_error_message());
    strategy_test_close(&t);
    co_comm_destroy(comm);
    return NULL;
}

/* Runs the test's array of `n` ranks of `size` bytes each. */
static inline void rank_threads_run(void *ranks, size_t size, int n,
                                    co_status (*run)(rank_thread *r, strategy_test *t,
                                                     co_comm *comm))
{
    co_shm *shm = NULL;

    assert_int_equal(co_shm_create(&shm, n), CO_OK);
    for (int i = 0; i < n; i++) {
        rank_thread *r = (rank_thread *)(void *)((char *)ranks + (size_t)i * size);

        r->shm = shm;
        r->index = i;
        r->run = run;
        assert_int_equal(pthread_create(&r->thread, NULL, rank_thread_main, r), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(((rank_thread *)(void *)((char *)ranks + (size_t)i * size))->thread, NULL);
    co_shm_destroy(shm);
}

#endif
