/*
 * progress_thread.c - a thread that advances large operations over several hosts while the rank
 * computes.
 *
 * MPI moves data only when it is called, and a rank in a long kernel does not call it, so that
 * little communication would overlap with the backward pass. The thread sleeps between short polls:
 * it takes some hundredths of a core while data is in flight, and none otherwise. It sums in the
 * same order and floating-point mode as the rank would. While the rank saves it tells the others.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "comm/mpi/internal.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/thread.h"

#define PROGRESS_POLL_US 200
#define PROGRESS_IDLE    1 /* idle polls before it sleeps until woken, which takes microseconds */
#define PROGRESS_BYTES                                                                             \
    ((size_t)64 << 10) /* smaller operations do not wake it: the rank waits for                    \
                        them itself */

struct mpi_progress_thread {
    pthread_t thread;
    pthread_cond_t wake;
    bool closing;
    int awake;           /* polls left before it sleeps */
    uint64_t float_mode; /* of the rank's thread */
};

/* MPI is initialised once per process, so its lock is per process, too. */
static pthread_mutex_t progress_turn = PTHREAD_MUTEX_INITIALIZER;

void co_mpi_lock(void)
{
    pthread_mutex_lock(&progress_turn);
}

void co_mpi_unlock(void)
{
    pthread_mutex_unlock(&progress_turn);
}

/* A failure is recorded, and the rank finds it when it polls. */
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
        h->awake = PROGRESS_IDLE;
    }
}

/* Until there is something to do. */
static void progress_wait(mpi_comm *c)
{
    const struct timespec due = {(time_t)(c->saving_due_ns / 1000000000),
                                 (long)(c->saving_due_ns % 1000000000)};

    if (c->saving_due_ns)
        pthread_cond_timedwait(&c->progress_thread->wake, &progress_turn, &due);
    else
        pthread_cond_wait(&c->progress_thread->wake, &progress_turn);
}

static void *progress_loop(void *arg)
{
    mpi_comm *c = arg;
    struct mpi_progress_thread *h = c->progress_thread;

    co_mpi_lock();
    while (!h->closing) {
        co_mpi_repeat_saving(c);
        if (h->awake == 0) {
            progress_wait(c);
            continue;
        }
        co_mpi_unlock(); /* unlock first: the rank may be waiting to poll what it started */
        co_clock_sleep_us(PROGRESS_POLL_US);
        co_mpi_lock();
        h->awake--;
        progress_look(c);
    }
    co_mpi_unlock();
    return NULL;
}

/* With all signals blocked: they are for the rank's thread. */
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
    pthread_condattr_t monotonic;
    bool take_turns = false;
    int error;

    co_mpi->threads_take_turns(&take_turns);
    if (c->host.whole || c->base.size == 1 || !take_turns)
        return CO_OK;
    c->progress_thread = co_calloc(1, sizeof(*c->progress_thread));
    if (!c->progress_thread)
        return CO_E_NOMEM;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->progress_thread->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
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

void co_mpi_progress_thread_wake(mpi_comm *c)
{
    if (c->progress_thread)
        pthread_cond_signal(&c->progress_thread->wake);
}

void co_mpi_progress_thread_post(mpi_comm *c, const co_coll_args *args)
{
    struct mpi_progress_thread *h = c->progress_thread;

    if (!h || args->count < PROGRESS_BYTES / co_dtype_size(args->dtype))
        return;
    h->float_mode = co_thread_float_mode();
    if (h->awake == 0)
        co_mpi_progress_thread_wake(c);
    h->awake = PROGRESS_IDLE;
}
