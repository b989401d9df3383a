/*
 * init.c - MPI is initialised and finalized once per process, by the first communicator.
 *
 * MPI_Finalize waits for the other ranks, and does not always return: in MPICH before 4.2 over UCX
 * a rank waits in a barrier of its launcher without answering those that still close their
 * connections to it (pmodels/mpich, pull request 6596). By then a rank has done all its work, so it
 * ends without.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "comm/mpi/internal.h"
#include "comm/mpi/mpi.h"
#include "core/log.h"

#define INIT_FINALIZE_SECONDS 10

typedef struct init_watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool returned;
    int exit_code;
} init_watch;

static bool init_is_ours; /* then finalizing is, too */

co_status co_mpi_init(void)
{
    bool initialized = false, finalized = false;

    CO_TRY(co_mpi_load());
    co_mpi->initialized(&initialized);
    co_mpi->finalized(&finalized);
    if (finalized)
        return co_fail(CO_E_USAGE, "MPI has been finalized; it cannot start twice");
    if (initialized)
        return CO_OK;
    CO_TRY(co_mpi_check(co_mpi->init(), "init"));
    init_is_ours = true;
    return CO_OK;
}

static void *init_watch_finalize(void *arg)
{
    init_watch *watch = arg;
    struct timespec end;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += INIT_FINALIZE_SECONDS;
    pthread_mutex_lock(&watch->lock);
    while (!watch->returned && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&watch->changed, &watch->lock, &end);
    if (!watch->returned) {
        co_log(CO_LOG_WARN, "MPI_Finalize has not returned for %d s; this rank ends without it",
               INIT_FINALIZE_SECONDS);
        fflush(NULL);
        _exit(watch->exit_code);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

void co_mpi_finalize(int exit_code)
{
    init_watch watch = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .exit_code = exit_code};
    bool finalized = false, watched;
    sigset_t all, before;
    pthread_t thread;

    if (!init_is_ours)
        return;
    co_mpi->finalized(&finalized);
    if (finalized)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watched = pthread_create(&thread, NULL, init_watch_finalize, &watch) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    co_mpi->finalize();
    pthread_mutex_lock(&watch.lock);
    watch.returned = true;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.lock);
    if (watched)
        pthread_join(thread, NULL);
}
