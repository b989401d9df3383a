/*
 * signal_thread.c - a thread that receives the signals of an MPI rank, without handlers or global
 * state. All other threads block them.
 */
#include "launch/signal_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "core/mem.h"
#include "core/process.h"
#include "launch/rank_notes.h"

struct co_signal_thread {
    const char *notes; /* borrowed; NULL: none */
    pthread_t thread;
    sigset_t watched, before;
    _Atomic int heard; /* co_status */
    _Atomic int rank;  /* -1: not known yet */
    _Atomic uint64_t step;
    _Atomic bool closing, ended;
};

static void signal_say(const co_signal_thread *l, co_note_kind kind, co_status status,
                       const char *message)
{
    const int rank = atomic_load(&l->rank);

    if (l->notes && rank >= 0)
        co_notes_say(l->notes, rank, kind, status, atomic_load(&l->step), message);
}

/* Die by the signal, so that the parent sees it in the exit status. */
static void signal_die(const co_signal_thread *l, int number)
{
    pthread_sigmask(SIG_UNBLOCK, &l->watched, NULL);
    raise(number);
}

static void *signal_loop(void *arg)
{
    co_signal_thread *l = arg;
    int number;

    while (sigwait(&l->watched, &number) == 0 && !atomic_load(&l->closing)) {
        if (atomic_load(&l->heard) != CO_OK)
            signal_die(l, number);
        atomic_store(&l->heard, number == SIGINT ? CO_E_INTERRUPTED : CO_E_TERMINATED);
        if (!atomic_load(&l->ended))
            signal_say(l, CO_NOTE_TOLD, CO_OK, "");
    }
    return NULL;
}

/* Ignored signals stay ignored, except SIGUSR1, which only this program uses. */
static void signal_choose(sigset_t *out)
{
    co_process_requests(out);
    sigaddset(out, SIGUSR1);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(out, number) == 1)
            signal(number, SIG_DFL);
}

co_status co_signal_thread_open(co_signal_thread **out, const char *notes)
{
    co_signal_thread *l = co_calloc(1, sizeof(*l));
    int error;

    *out = NULL;
    if (!l)
        return CO_E_NOMEM;
    l->notes = notes;
    atomic_store(&l->rank, -1);
    signal_choose(&l->watched);
    if (notes) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* with mpiexec, if that is killed and cannot end it */
        co_notes_starting(notes);
    }
    pthread_sigmask(SIG_BLOCK, &l->watched, &l->before);
    error = pthread_create(&l->thread, NULL, signal_loop, l);
    if (error) {
        pthread_sigmask(SIG_SETMASK, &l->before, NULL);
        co_free(l);
        return co_fail(CO_E_FAILED, "cannot start a thread for signals: %s", strerror(error));
    }
    *out = l;
    return CO_OK;
}

void co_signal_thread_begin(co_signal_thread *listener, const co_comm *comm)
{
    if (listener->notes)
        co_notes_begin(listener->notes, co_comm_rank(comm));
    atomic_store(&listener->rank, co_comm_rank(comm));
}

co_status co_signal_thread_heard(const co_signal_thread *listener)
{
    return (co_status)atomic_load(&listener->heard);
}

void co_signal_thread_step(co_signal_thread *listener, uint64_t step)
{
    atomic_store_explicit(&listener->step, step, memory_order_relaxed);
}

void co_signal_thread_end(co_signal_thread *listener, co_status status, const char *message)
{
    const bool left = status == CO_OK || status == CO_E_INTERRUPTED || status == CO_E_TERMINATED;

    atomic_store(&listener->ended, true);
    signal_say(listener, left ? CO_NOTE_LEFT : CO_NOTE_FAILED, status, message);
}

void co_signal_thread_close(co_signal_thread *listener)
{
    if (!listener)
        return;
    atomic_store(&listener->closing, true);
    pthread_kill(listener->thread, SIGUSR1);
    pthread_join(listener->thread, NULL);
    if (atomic_load(&listener->heard) == CO_OK)
        pthread_sigmask(SIG_SETMASK, &listener->before, NULL);
    co_free(listener);
}
