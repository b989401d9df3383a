/*
 * threads.c - ranks as threads of this process.
 *
 * Errors, log lines and cores are per thread; a signal or an exit ends all ranks. Does not know
 * processes; supervise.c runs this in one that it watches.
 */
#include <pthread.h>
#include <string.h>

#include "core/mem.h"
#include "launch/supervise.h"

typedef struct thread_rank {
    const co_launch_options *options;
    co_shm *shm;
    co_rank_fn fn;
    void *arg;
    int rank;
    pthread_t thread;
} thread_rank;

static void *threads_main(void *arg)
{
    const thread_rank *t = arg;

    co_rank_run(t->options, t->shm, t->rank, t->fn, t->arg); /* records failures in the region */
    return NULL;
}

co_status co_rank_threads(const co_launch_options *options, co_shm *shm, co_rank_fn fn, void *arg)
{
    thread_rank *threads = co_calloc((size_t)options->ranks, sizeof(*threads));
    int started;

    if (!threads) {
        co_shm_abort(shm, -1, CO_E_NOMEM, "out of memory");
        return CO_E_NOMEM;
    }
    for (started = 0; started < options->ranks; started++) {
        thread_rank *t = &threads[started];
        int error;

        *t = (thread_rank){options, shm, fn, arg, started, 0};
        error = pthread_create(&t->thread, NULL, threads_main, t);
        if (error) {
            co_fail(CO_E_FAILED, "cannot start a thread for rank %d of %d: %s", started,
                    options->ranks, strerror(error));
            co_shm_abort(shm, -1, CO_E_FAILED, co_error_message());
            break;
        }
    }
    for (int rank = 0; rank < started; rank++)
        pthread_join(threads[rank].thread, NULL);
    co_free(threads);
    return co_shm_cause(shm, NULL, NULL, 0);
}

co_status co_launch_threads(const co_launch_options *options, co_rank_fn fn, void *arg)
{
    char cause[2000];
    int rank = -1;
    co_shm *shm;
    co_status st;

    CO_TRY(co_shm_create(&shm, options->ranks));
    co_rank_threads(options, shm, fn, arg);
    st = co_shm_cause(shm, &rank, cause, sizeof(cause));
    co_shm_destroy(shm);
    if (st == CO_OK)
        return CO_OK;
    return rank < 0 ? co_fail(st, "%s", cause) : co_fail(st, "rank %d: %s", rank, cause);
}
