/*
 * supervise.c - runs generations of ranks, and serves the launcher's events meanwhile.
 *
 * The parent does no computing. Signals (a child's end, Ctrl-C, a request to stop) arrive through a
 * descriptor, so no handler and no global state is needed. The policy decides whether another
 * generation follows; without a policy there is only one.
 */
#include "launch/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/process.h"
#include "launch/generation.h"

#define SUPERVISE_POLL_MS 50 /* interval of the policy's tick; also covers a lost SIGCHLD */

typedef struct supervisor {
    const co_launch_policy *policy; /* NULL: none */
    int signals;                    /* owned descriptor */
    sigset_t watched, before;
    struct sigaction chld_before;
    bool stopping; /* the policy lets ranks end by themselves after a signal */
    int heard;     /* the last signal that asked to end; 0: none */
} supervisor;

static co_status supervise_block(supervisor *s)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};

    co_process_requests(&s->watched);
    sigaddset(&s->watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &s->watched, &s->before);
    sigaction(SIGCHLD, &plain, &s->chld_before); /* an inherited SIG_IGN would discard exit codes */
    s->signals = signalfd(-1, &s->watched, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals >= 0 ? CO_OK
                           : co_fail(CO_E_FAILED, "cannot wait for signals: %s", strerror(errno));
}

static void supervise_unblock(const supervisor *s)
{
    if (s->signals >= 0)
        close(s->signals);
    sigaction(SIGCHLD, &s->chld_before, NULL);
    /* It may have come too late for the ranks: a caller that holds it back finds it. */
    if (s->heard && sigismember(&s->before, s->heard) == 1)
        raise(s->heard);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

static void supervise_stop(supervisor *s, generation *g, co_status status)
{
    const bool again = s->stopping;

    if (!again && s->policy && s->policy->signalled &&
        s->policy->signalled(s->policy->arg, status)) {
        s->stopping = true;
        return;
    }
    co_generation_end(g, -1, status, status == CO_E_INTERRUPTED ? "interrupted" : "terminated");
    if (again)
        co_generation_kill(g);
}

static void supervise_wait(supervisor *s, generation *g)
{
    struct pollfd polls[1 + CO_CONTROL_FDS] = {{.fd = s->signals, .events = POLLIN}};
    co_control *control = s->policy ? s->policy->control : NULL;
    const int n = 1 + co_control_polls(polls + 1, control);
    struct signalfd_siginfo info;

    poll(polls, (nfds_t)n, SUPERVISE_POLL_MS);
    while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        s->heard = (int)info.ssi_signo;
        supervise_stop(s, g, s->heard == SIGINT ? CO_E_INTERRUPTED : CO_E_TERMINATED);
    }
    co_control_serve(control);
    if (s->policy && s->policy->tick)
        s->policy->tick(s->policy->arg);
}

/* Run one generation until all its ranks have ended. */
static co_status supervise_generation(supervisor *s, generation *g, int *rank)
{
    co_status st = co_generation_open(g);

    *rank = -1;
    if (st != CO_OK)
        return st;
    if (s->policy && s->policy->started)
        s->policy->started(s->policy->arg, g->shm, g->ranks);
    co_generation_start(g);
    while (g->alive > 0) {
        supervise_wait(s, g);
        co_generation_look(g);
    }
    return co_generation_status(g, rank);
}

static bool supervise_again(const supervisor *s, int *ranks, co_status st, int rank)
{
    const co_launch_end end = {.status = st,
                               .rank = rank,
                               .ranks = *ranks,
                               .cause = st == CO_OK ? "" : co_error_message()};

    return s->policy && s->policy->again && s->policy->again(s->policy->arg, ranks, &end);
}

co_status co_supervise(const co_launch_options *options, const co_launch_policy *policy,
                       co_rank_fn fn, void *arg)
{
    supervisor s = {.policy = policy, .signals = -1};
    co_launch_options now = *options;
    co_status st = supervise_block(&s);
    bool again = st == CO_OK;

    while (again) {
        generation g = {.options = &now,
                        .fn = fn,
                        .arg = arg,
                        .control = policy ? policy->control : NULL,
                        .signals = s.signals,
                        .mask = &s.before,
                        .chld = &s.chld_before};
        int rank;

        st = supervise_generation(&s, &g, &rank);
        again = supervise_again(&s, &now.ranks, st, rank);
        co_generation_close(&g);
    }
    supervise_unblock(&s);
    return st;
}
