/*
 * mpi_requests.c - a thread of rank 0 that answers `cohort ctl` in a run over MPI.
 *
 * It records requests; ranks agree on them at their next all-reduce (agree_stop.c). Must not call
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
#include "launch/signal_thread.h"

#define REQUESTS_LOOK_MS 200

struct co_mpi_requests {
    co_mpi_requests_options options;
    co_control *control; /* owned */
    int end;             /* owned: an event that ends the thread */
    pthread_t thread;
    co_shown shown;
    co_shown_rate rate; /* used by the thread alone */
    _Atomic bool stop, save;
};

static co_watch *requests_watch(const void *arg, int i)
{
    return co_mpi_watch(arg, i);
}

static const char *requests_stopping(const co_mpi_requests *requests)
{
    const co_status heard = co_signal_thread_heard(requests->options.listener);

    if (heard != CO_OK)
        return heard == CO_E_INTERRUPTED ? "interrupted" : "terminated";
    return atomic_load(&requests->stop) ? CO_ANSWER_STOPPING : NULL;
}

static void requests_status(char *reply, size_t size, const co_mpi_requests *requests)
{
    const co_answer_view view = {.shown = &requests->shown,
                                 .ranks = co_comm_size(requests->options.comm),
                                 .restarts = requests->options.restarts,
                                 .rate = requests->rate.rate,
                                 .start_ns = requests->options.start_ns,
                                 .stopping = requests_stopping(requests),
                                 .watch = requests_watch,
                                 .arg = requests->options.comm};

    co_answer_status(reply, size, &view);
}

static void requests_answer(void *arg, char *reply, size_t size, const char *request)
{
    co_mpi_requests *requests = arg;

    if (strcmp(request, "status") == 0) {
        requests_status(reply, size, requests);
    } else if (strcmp(request, "checkpoint") == 0) {
        atomic_store(&requests->save, true);
        co_answer_agree(reply, size, CO_ANSWER_WILL_SAVE);
    } else if (strcmp(request, "stop") == 0) {
        atomic_store(&requests->stop, true);
        co_answer_agree(reply, size, CO_ANSWER_WILL_STOP);
    } else if (strncmp(request, "ranks ", 6) == 0) {
        co_fail(CO_E_USAGE, "mpiexec has started these ranks, and their number stays; `stop`, then "
                            "start as many as you want with --resume");
        co_answer_refuse(reply, size);
    } else {
        co_answer_unknown(reply, size, request);
    }
}

static void *requests_thread(void *arg)
{
    co_mpi_requests *requests = arg;
    struct pollfd polls[CO_CONTROL_FDS + 1];

    do {
        const int n = co_control_polls(polls, requests->control);

        polls[n] = (struct pollfd){.fd = requests->end, .events = POLLIN};
        poll(polls, (nfds_t)n + 1, REQUESTS_LOOK_MS);
        co_shown_measure(&requests->rate, &requests->shown);
        co_control_serve(requests->control);
        if (polls[n].revents)
            return NULL;
    } while (true);
}

static co_status requests_start(co_mpi_requests *requests)
{
    int error;

    requests->end = eventfd(0, EFD_CLOEXEC);
    if (requests->end < 0)
        return co_fail(CO_E_FAILED, "cannot make an event: %s", strerror(errno));
    error = pthread_create(&requests->thread, NULL, requests_thread, requests);
    if (!error)
        return CO_OK;
    close(requests->end);
    return co_fail(CO_E_FAILED, "cannot start a thread for the socket: %s", strerror(error));
}

co_status co_mpi_requests_open(co_mpi_requests **out, const co_mpi_requests_options *options,
                               const co_where *where)
{
    co_mpi_requests *requests = co_calloc(1, sizeof(*requests));
    co_status st;

    *out = NULL;
    if (!requests)
        return CO_E_NOMEM;
    requests->options = *options;
    co_shown_set(&requests->shown, where);
    st = co_control_open(&requests->control, options->run_dir, requests_answer, requests);
    if (st == CO_E_IO) /* not every network file system supports sockets */
        co_log(CO_LOG_WARN, "no `cohort ctl` for this run: %s", co_error_message());
    if (st == CO_OK)
        st = requests_start(requests);
    if (st == CO_OK) {
        *out = requests;
        return CO_OK;
    }
    co_control_close(requests->control);
    co_free(requests);
    return st == CO_E_IO ? CO_OK : st;
}

void co_mpi_requests_close(co_mpi_requests *requests)
{
    if (!requests)
        return;
    eventfd_write(requests->end, 1);
    pthread_join(requests->thread, NULL);
    close(requests->end);
    co_control_close(requests->control);
    co_free(requests);
}

void co_mpi_requests_show(co_mpi_requests *requests, const co_where *where)
{
    if (requests)
        co_shown_set(&requests->shown, where);
}

void co_mpi_requests_saved(co_mpi_requests *requests, uint64_t step)
{
    if (requests)
        atomic_store(&requests->shown.saved, step + 1);
}

bool co_mpi_requests_wants_stop(const co_mpi_requests *requests)
{
    return requests && atomic_load(&requests->stop);
}

bool co_mpi_requests_wants_save(co_mpi_requests *requests)
{
    return requests && atomic_exchange(&requests->save, false);
}
