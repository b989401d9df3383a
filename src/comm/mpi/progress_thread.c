/*
 * progress_thread.c - a thread that advances large operations over several hosts while the rank
 * computes.
 *
 * MPI moves data when it is called, and a rank in a long kernel does not call it: little of a
 * network's time would overlap with the backward pass. The thread sleeps between two short polls,
 * so it takes some hundredths of a core while data moves, and none otherwise. It adds up in the
 * order that the rank itself would, in the rank's floating-point mode.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "comm/mpi/internal.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/thread.h"

#define HELPER_POLL_US 200
#define HELPER_IDLE    50 /* empty polls until it has to be woken, which takes microseconds */
#define HELPER_BYTES   ((size_t)64 << 10) /* shorter ones do not wake it: they are waited for */

struct mpi_progress_thread {
    pthread_t thread;
    pthread_cond_t wake;
    bool closing;
    int awake;           /* polls until it sleeps */
    uint64_t float_mode; /* of the rank's thread */
};

/* MPI is initialised once per process, and so is its lock. */
static pthread_mutex_t progress_turn = PTHREAD_MUTEX_INITIALIZER;

void co_mpi_lock(void)
{
    pthread_mutex_lock(&progress_turn);
}

void co_mpi_unlock(void)
{
    pthread_mutex_unlock(&progress_turn);
}

/* The rank finds failures when it polls itself. */
static void progress_look(mpi_comm *c)
{
    struct mpi_progress_thread *h = c->progress_thread;

    if (!c->collectives.head && c->pending == 0)
        return;
    co_thread_set_float_mode(h->float_mode);
    if (co_mpi_advance(c) != CO_OK) {
        if (c->cause.status == CO_OK)
            co_comm_cause_set(&c->cause, c->world_rank, co_error_status(), co_error_message());
        h->awake = 0;
    } else if (c->collectives.head || c->pending) {
        h->awake = HELPER_IDLE;
    }
}

static void *progress_loop(void *arg)
{
    mpi_comm *c = arg;
    struct mpi_progress_thread *h = c->progress_thread;

    co_mpi_lock();
    while (!h->closing) {
        if (h->awake == 0) {
            pthread_cond_wait(&h->wake, &progress_turn);
            continue;
        }
        co_mpi_unlock(); /* first: perhaps the rank waits for what it has begun */
        co_clock_sleep_us(HELPER_POLL_US);
        co_mpi_lock();
        h->awake--;
        progress_look(c);
    }
    co_mpi_unlock();
    return NULL;
}

/* Signals are the rank's. */
static int progress_start(mpi_comm *c)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&c->progress_thread->thread, NULL, progress_loop, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

co_status co_mpi_progress_thread_open(mpi_comm *c)
{
    bool take_turns = false;
    int error;

    co_mpi->threads_take_turns(&take_turns);
    if (c->host.whole || c->base.size == 1 || !take_turns)
        return CO_OK;
    c->progress_thread = co_calloc(1, sizeof(*c->progress_thread));
    if (!c->progress_thread)
        return CO_E_NOMEM;
    pthread_cond_init(&c->progress_thread->wake, NULL);
    error = progress_start(c);
    if (!error)
        return CO_OK;
    co_free(c->progress_thread);
    c->progress_thread = NULL;
    return co_fail(CO_E_FAILED, "cannot start a thread for MPI: %s", strerror(error));
}

void co_mpi_progress_thread_close(mpi_comm *c)
{
    struct mpi_progress_thread *h = c->progress_thread;

    if (!h)
        return;
    co_mpi_lock();
    h->closing = true;
    pthread_cond_signal(&h->wake);
    co_mpi_unlock();
    pthread_join(h->thread, NULL);
    pthread_cond_destroy(&h->wake);
    co_free(h);
    c->progress_thread = NULL;
}

void co_mpi_progress_thread_wake(mpi_comm *c, const co_coll_args *args)
{
    struct mpi_progress_thread *h = c->progress_thread;

    if (!h || args->count < HELPER_BYTES / co_dtype_size(args->dtype))
        return;
    h->float_mode = co_thread_float_mode();
    if (h->awake == 0)
        pthread_cond_signal(&h->wake);
    h->awake = HELPER_IDLE;
}
