/*
 * mpi_requests.c - a thread of rank 0 that answers the owner of a run over MPI. What is asked for
 * it writes down; ranks agree on it when they next ask each other (agree_stop.c). Must not call
 * MPI.
 */
#include "control/mpi_requests.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "comm/mpi/mpi.h"
#include "core/log.h"
#include "core/mem.h"
#include "launch/control_socket.h"
#include "launch/rank_notes.h"
#include "launch/signal_thread.h"
#include "train/trainer_internal.h"

#define ASK_LOOK_MS 200

struct co_ask_mpi {
    const trainer *t;    /* borrowed; what does not change while the thread runs */
    co_control *control; /* owned */
    int end;             /* owned: an event, the thread ends */
    pthread_t thread;
    co_shown shown;
    co_shown_rate rate; /* the thread's alone */
    _Atomic bool stop, save;
};

static co_watch *ask_watch(const void *arg, int i)
{
    return co_mpi_watch(arg, i);
}

static const char *ask_stopping(const co_ask_mpi *ask)
{
    const co_status heard = co_listener_heard(ask->t->job->listener);

    if (heard != CO_OK)
        return heard == CO_E_INTERRUPTED ? "interrupted" : "terminated";
    return atomic_load(&ask->stop) ? CO_ASK_STOPPING : NULL;
}

static void ask_status(char *reply, size_t size, const co_ask_mpi *ask)
{
    const co_job *job = ask->t->job;
    const co_ask_view view = {.shown = &ask->shown,
                              .ranks = co_comm_size(ask->t->comm),
                              .restarts = job->restart ? job->restart->count : 0,
                              .rate = ask->rate.rate,
                              .start_ns = job->start_ns,
                              .stopping = ask_stopping(ask),
                              .watch = ask_watch,
                              .arg = ask->t->comm};

    co_ask_status(reply, size, &view);
}

static void ask_answer(void *arg, char *reply, size_t size, const char *request)
{
    co_ask_mpi *ask = arg;

    if (strcmp(request, "status") == 0) {
        ask_status(reply, size, ask);
    } else if (strcmp(request, "checkpoint") == 0) {
        atomic_store(&ask->save, true);
        co_ask_agree(reply, size, CO_ASK_WILL_SAVE);
    } else if (strcmp(request, "stop") == 0) {
        atomic_store(&ask->stop, true);
        co_ask_agree(reply, size, CO_ASK_WILL_STOP);
    } else if (strncmp(request, "ranks ", 6) == 0) {
        co_fail(CO_E_USAGE, "mpiexec has started these ranks, and their number stays; `stop`, then "
                            "start as many as you want with --resume");
        co_ask_refuse(reply, size);
    } else {
        co_fail(CO_E_USAGE, "'%s' is not a request that a run knows", request);
        co_ask_refuse(reply, size);
    }
}

static void *ask_thread(void *arg)
{
    co_ask_mpi *ask = arg;
    struct pollfd polls[CO_CONTROL_FDS + 1];

    do {
        const int n = co_control_polls(polls, ask->control);

        polls[n] = (struct pollfd){.fd = ask->end, .events = POLLIN};
        poll(polls, (nfds_t)n + 1, ASK_LOOK_MS);
        co_shown_measure(&ask->rate, &ask->shown);
        co_control_serve(ask->control);
        if (polls[n].revents)
            return NULL;
    } while (true);
}

static co_status ask_start(co_ask_mpi *ask)
{
    int error;

    ask->end = eventfd(0, EFD_CLOEXEC);
    if (ask->end < 0)
        return co_fail(CO_E_FAILED, "cannot make an event: %s", strerror(errno));
    error = pthread_create(&ask->thread, NULL, ask_thread, ask);
    if (!error)
        return CO_OK;
    close(ask->end);
    return co_fail(CO_E_FAILED, "cannot start a thread for the socket: %s", strerror(error));
}

co_status co_ask_mpi_open(co_ask_mpi **out, const struct trainer *t)
{
    co_ask_mpi *ask = co_calloc(1, sizeof(*ask));
    co_status st;

    *out = NULL;
    if (!ask)
        return CO_E_NOMEM;
    ask->t = t;
    co_shown_set(&ask->shown, t);
    st = co_control_open(&ask->control, t->job->result->train.run_dir, ask_answer, ask);
    if (st == CO_E_IO) /* not every file system that hosts share knows sockets */
        co_log(CO_LOG_WARN, "no `cohort ctl` for this run: %s", co_error_message());
    if (st == CO_OK)
        st = ask_start(ask);
    if (st == CO_OK) {
        *out = ask;
        return CO_OK;
    }
    co_control_close(ask->control);
    co_free(ask);
    return st == CO_E_IO ? CO_OK : st;
}

void co_ask_mpi_close(co_ask_mpi *ask)
{
    if (!ask)
        return;
    eventfd_write(ask->end, 1);
    pthread_join(ask->thread, NULL);
    close(ask->end);
    co_control_close(ask->control);
    co_free(ask);
}

void co_ask_mpi_show(co_ask_mpi *ask, const struct trainer *t)
{
    if (ask)
        co_shown_set(&ask->shown, t);
}

void co_ask_mpi_saved(co_ask_mpi *ask, uint64_t step)
{
    if (ask)
        atomic_store(&ask->shown.saved, step + 1);
}

bool co_ask_mpi_wants_stop(const co_ask_mpi *ask)
{
    return ask && atomic_load(&ask->stop);
}

bool co_ask_mpi_wants_save(co_ask_mpi *ask)
{
    return ask && atomic_exchange(&ask->save, false);
}
