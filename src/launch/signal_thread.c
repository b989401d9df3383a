/*
 * signal_thread.c - a thread that receives the signals of an MPI rank, without handlers or global
 * state, and looks at its progress in between. All other threads block the signals.
 */
#include "launch/signal_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "comm/watch.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/process.h"
#include "launch/rank_notes.h"

#define SIGNAL_LOOK_MS 10000 /* between looks at the rank's progress, at most */
#define SIGNAL_TIMEOUT 300000

struct co_signal_thread {
    const char *notes; /* borrowed; NULL: none */
    pthread_t thread;
    sigset_t watched, before;
    _Atomic int heard; /* co_status */
    _Atomic int rank;  /* -1: not known yet */
    _Atomic uint64_t step;
    _Atomic bool closing, ended;
    uint32_t timeout_ms;
    pthread_mutex_t lock;  /* of `watch` */
    const co_watch *watch; /* borrowed; NULL: the rank has not begun, or has ended */
    uint64_t said_ns;      /* when it last said that it does not get on; 0: it does */
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

static void signal_say_where(const co_signal_thread *l, const char *where)
{
    if (l->notes)
        co_notes_say_where(l->notes, atomic_load(&l->rank), where);
    else if (where[0] && l->said_ns == 0 && atomic_load(&l->watch->waiting) == 0)
        co_log(CO_LOG_WARN, "%s; other ranks wait for it for at most %.0f s (timeout)", where,
               l->timeout_ms / 1000.0);
}

/* Say it again while it lasts, so that "for 5.2 s" is not old when the job ends. */
static void signal_look(co_signal_thread *l)
{
    const uint64_t now = co_clock_ns(), timeout_ns = (uint64_t)l->timeout_ms * 1000000;
    char where[1024];

    pthread_mutex_lock(&l->lock);
    if (l->watch && co_watch_stalled_ns(l->watch, now) < timeout_ns / 2) {
        if (l->said_ns)
            signal_say_where(l, "");
        l->said_ns = 0;
    } else if (l->watch && now - l->said_ns >= timeout_ns / 4) {
        signal_say_where(l, co_watch_describe(where, sizeof(where), l->watch));
        l->said_ns = now;
    }
    pthread_mutex_unlock(&l->lock);
}

/* The next signal; 0: none for some time; < 0: failed. */
static int signal_wait(const co_signal_thread *l)
{
    const uint32_t eighth = l->timeout_ms / 8;
    const uint32_t ms = eighth < SIGNAL_LOOK_MS ? eighth + 1 : SIGNAL_LOOK_MS;
    const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    const int number = sigtimedwait(&l->watched, NULL, &limit);

    return number < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : number;
}

static void *signal_loop(void *arg)
{
    co_signal_thread *l = arg;
    int number;

    while ((number = signal_wait(l)) >= 0 && !atomic_load(&l->closing)) {
        if (number == 0) {
            signal_look(l);
            continue;
        }
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

co_status co_signal_thread_open(co_signal_thread **out, const char *notes, uint32_t timeout_ms)
{
    co_signal_thread *l = co_calloc(1, sizeof(*l));
    int error;

    *out = NULL;
    if (!l)
        return CO_E_NOMEM;
    l->notes = notes;
    l->timeout_ms = timeout_ms ? timeout_ms : SIGNAL_TIMEOUT;
    pthread_mutex_init(&l->lock, NULL);
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
    pthread_mutex_lock(&listener->lock);
    listener->watch = comm->watch;
    pthread_mutex_unlock(&listener->lock);
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

    pthread_mutex_lock(&listener->lock);
    listener->watch = NULL;
    pthread_mutex_unlock(&listener->lock);
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
    pthread_mutex_destroy(&listener->lock);
    if (atomic_load(&listener->heard) == CO_OK)
        pthread_sigmask(SIG_SETMASK, &listener->before, NULL);
    co_free(listener);
}
