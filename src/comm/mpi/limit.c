/*
 * limit.c - a time limit for calls of MPI that return only when others have answered: ranks, or the
 * launcher.
 *
 * Such a call cannot be polled or cancelled, and where a host does not answer it never returns. So
 * a thread waits beside it, and ends the process. It does not call MPI_Abort: MPI is busy in the
 * other thread, and the launcher ends the job when a rank exits without MPI_Finalize.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "comm/mpi/internal.h"
#include "core/log.h"

static void limit_expire(const co_mpi_limit *limit)
{
    char host[65] = "";

    (void)gethostname(host, sizeof(host) - 1);
    co_log(limit->exit_code ? CO_LOG_ERROR : CO_LOG_WARN,
           "process %ld on %s has waited %.0f s for MPI to return from %s: another rank, the "
           "launcher, "
           "or the host of one of them does not answer; this rank ends without it",
           (long)getpid(), host, limit->ms / 1000.0, limit->what);
    fflush(NULL);
    if (limit->exit_code)
        co_mpi_end_launcher();
    _exit(limit->exit_code);
}

static void *limit_watch(void *arg)
{
    co_mpi_limit *limit = arg;
    struct timespec end;
    int error = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += limit->ms / 1000;
    end.tv_nsec += (long)(limit->ms % 1000) * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&limit->lock);
    while (!limit->returned && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&limit->changed, &limit->lock, &end);
    if (!limit->returned)
        limit_expire(limit);
    pthread_mutex_unlock(&limit->lock);
    return NULL;
}

void co_mpi_limit_begin(co_mpi_limit *limit, const char *what, uint32_t ms, int exit_code)
{
    pthread_condattr_t monotonic; /* the time of day may be set meanwhile */
    sigset_t all, before;

    *limit = (co_mpi_limit){.what = what, .ms = ms, .exit_code = exit_code};
    pthread_mutex_init(&limit->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&limit->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    limit->watched = pthread_create(&limit->thread, NULL, limit_watch, limit) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void co_mpi_limit_end(co_mpi_limit *limit)
{
    pthread_mutex_lock(&limit->lock);
    limit->returned = true;
    pthread_cond_signal(&limit->changed);
    pthread_mutex_unlock(&limit->lock);
    if (limit->watched)
        pthread_join(limit->thread, NULL);
    pthread_cond_destroy(&limit->changed);
    pthread_mutex_destroy(&limit->lock);
}
