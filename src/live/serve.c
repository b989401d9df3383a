/* serve.c - reads the runs once a second, and answers browsers in between, until it is asked to
 * end. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/process.h"
#include "core/text.h"
#include "live/live.h"
#include "live/server.h"

#define SERVE_READ_NS UINT64_C(1000000000)
#define SERVE_ASK_NS  UINT64_C(200000000)
#define SERVE_BEAT_NS UINT64_C(2000000000)
#define SERVE_NICE    10

static co_status serve_read(co_server *server)
{
    json_t *message;
    bool all;
    co_status st;

    CO_TRY(co_live_runs_update(server->runs, &message, &all));
    st = all                       ? co_server_send(server, NULL)
         : json_is_object(message) ? co_server_send(server, message)
                                   : CO_OK;
    json_decref(message);
    return st;
}

/* Runs are asked what their ranks do, and weights measured, only while somebody looks. */
static co_status serve_loop(co_server *server, const sigset_t *watched,
                            const co_live_measure *measure)
{
    const struct timespec none = {0};
    uint64_t read = 0, ask = 0, beat = co_clock_ns() + SERVE_BEAT_NS;
    int signal;

    while ((signal = sigtimedwait(watched, NULL, &none)) < 0) {
        const uint64_t now = co_clock_ns();

        if (now >= ask && server->n_stream) {
            co_live_runs_ask(server->runs);
            ask = now + SERVE_ASK_NS;
        }
        if (now >= read) {
            if (server->n_stream)
                CO_TRY(co_live_runs_measure(server->runs, measure));
            CO_TRY(serve_read(server));
            read = now + SERVE_READ_NS;
        }
        if (now >= beat) {
            co_server_beat(server);
            beat = now + SERVE_BEAT_NS;
        }
        co_server_run(server, (int)(SERVE_ASK_NS / 1000000));
    }
    return signal == SIGINT ? CO_OK : co_fail(CO_E_TERMINATED, "terminated");
}

static void serve_print(FILE *out, const co_server *server)
{
    char host[256] = "";

    if (gethostname(host, sizeof(host) - 1) != 0 || !*host)
        strcpy(host, "HOST");
    fprintf(out, "%s: http://127.0.0.1:%d/#%s\n", CO_SHOW(server->folder), server->port,
            server->access.token);
    fprintf(out, "from another machine: ssh -L %d:127.0.0.1:%d %s, then the same address there\n",
            server->port, server->port, CO_SHOW(host));
    for (size_t i = 0; i < server->runs->n; i++)
        if (*server->runs->run[i]->damage)
            fprintf(out, "damaged: %s\n", server->runs->run[i]->damage);
    fprintf(out, "Ctrl-C ends the page; runs continue\n");
    fflush(out);
}

co_status co_live_serve(const co_live_options *options)
{
    sigset_t watched, before;
    co_live_runs runs;
    co_server server;
    co_status st;

    CO_TRY(co_live_runs_open(&runs, options->folder, options->n));
    st = co_server_open(&server, options->port, &runs,
                        options->n == 1 ? options->folder[0] : "runs");
    if (st == CO_OK) {
        co_process_requests(&watched);
        sigprocmask(SIG_BLOCK, &watched, &before);
        /* The runs come first. */
        (void)!setpriority(PRIO_PROCESS, 0, SERVE_NICE);
        serve_print(options->out, &server);
        st = serve_loop(&server, &watched, &options->measure);
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    co_server_close(&server);
    co_live_runs_close(&runs);
    return st;
}
