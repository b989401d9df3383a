/*
 * generation.c - ranks as child processes, one each or all in one: fork, watch, end.
 *
 * Each generation consists of new processes, so no state of an earlier one survives. Does not know
 * training, or whether another generation follows.
 */
#include "launch/generation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "core/clock.h"
#include "core/mem.h"
#include "launch/crash_handler.h"

/* Time for ranks to notice that the run is over before they are killed. A rank notices in its next
   collective; one that is stuck or stopped never does. */
#define GRACE_NS UINT64_C(2000000000)
/* Ranks that wait for a hung one time out first and report more, so the watchdog waits longer. */
#define WATCHDOG_MARGIN_NS UINT64_C(1000000000)
#define WATCHDOG_POLL_NS   UINT64_C(500000000)

co_status co_generation_open(generation *g)
{
    const size_t ranks = (size_t)g->options->ranks;

    g->ranks = g->options->ranks;
    g->processes = g->options->threads ? 1 : g->ranks;
    CO_TRY(co_shm_create(&g->shm, g->ranks));
    g->pids = co_calloc(2 * ranks, sizeof(*g->pids));
    g->watchdogs = co_calloc(ranks, sizeof(*g->watchdogs));
    if (!g->pids || !g->watchdogs)
        return CO_E_NOMEM;
    g->started = g->pids + ranks;
    g->kills = co_death_memory_kills();
    return CO_OK;
}

void co_generation_close(generation *g)
{
    co_free(g->watchdogs);
    co_free(g->pids);
    co_shm_destroy(g->shm);
}

/* _exit skips a sanitizer's leak check at exit. */
static _Noreturn void generation_exit(int code)
{
    fflush(NULL);
#ifdef __SANITIZE_ADDRESS__
    if (code == 0)
        __lsan_do_leak_check();
#endif
    _exit(code);
}

/* Watches of the process's ranks, which are consecutive. */
static co_watch *generation_watch(const generation *g, int process)
{
    return co_shm_watch(g->shm, g->options->threads ? 0 : process);
}

static co_status generation_run(const generation *g, int process)
{
    const int rank = g->options->threads ? 0 : process;
    const co_status st =
        co_crash_handler_install(generation_watch(g, process), g->options->threads ? g->ranks : 1);

    if (st != CO_OK) {
        co_shm_abort(g->shm, rank, st, co_error_message());
        return st;
    }
    return g->options->threads ? co_rank_threads(g->options, g->shm, g->fn, g->arg)
                               : co_rank_run(g->options, g->shm, process, g->fn, g->arg);
}

static _Noreturn void generation_child(const generation *g, int process, pid_t parent)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl */
        _exit(co_exit_code(CO_E_PEER));
    /* The parent handles Ctrl-C and signals that a scheduler sends to the whole group. */
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGTERM, &ignore, NULL);
    sigaction(SIGHUP, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a limit on the size of files is an error of write() */
    sigaction(SIGCHLD, g->chld, NULL);
    close(g->signals);
    co_control_forget(g->control);
    sigprocmask(SIG_SETMASK, g->mask, NULL);
    generation_exit(co_exit_code(generation_run(g, process)));
}

void co_generation_end(generation *g, int rank, co_status status, const char *cause)
{
    co_shm_abort(g->shm, rank, status, cause);
    if (!g->killing_at)
        g->killing_at = co_clock_ns() + GRACE_NS;
}

void co_generation_kill(const generation *g)
{
    for (int process = 0; process < g->processes; process++)
        if (g->pids[process])
            kill(g->pids[process], SIGKILL);
}

void co_generation_start(generation *g)
{
    pid_t parent = getpid();

    fflush(NULL); /* every child would otherwise write the same buffered text again */
    for (int process = 0; process < g->processes; process++) {
        pid_t pid = fork();

        if (pid == 0)
            generation_child(g, process, parent);
        if (pid < 0) {
            co_fail(CO_E_FAILED, "cannot start process %d of %d: %s", process, g->processes,
                    strerror(errno));
            co_generation_end(g, -1, CO_E_FAILED, co_error_message());
            return;
        }
        g->pids[process] = g->started[process] = pid;
        g->alive++;
    }
}

static bool generation_is_shared(const generation *g)
{
    return g->options->threads && g->ranks > 1;
}

/* `how`: waitpid's status. The first cause, usually the rank's own, is kept. */
static void generation_blame(generation *g, int process, int how)
{
    const int rank = generation_is_shared(g) ? -1 : process; /* unknown which rank it was */
    char cause[384];

    co_death_describe(cause, sizeof(cause), how, g->kills,
                      rank < 0 ? NULL : co_shm_watch(g->shm, rank));
    co_generation_end(g, rank, CO_E_PEER, cause);
}

/* After exit(0). Normal unless other ranks of the process had not finished. Ranks of other
   processes notice only if they wait for it. */
static void generation_left(generation *g, int process)
{
    co_watch *watch = generation_watch(g, process);
    int at_work = 0;

    for (int rank = 0; generation_is_shared(g) && rank < g->ranks; rank++)
        at_work += co_watch_gone(&watch[rank]) == 0;
    if (at_work)
        generation_blame(g, process, 0);
    else
        co_watch_go(watch, CO_WATCH_LEFT);
}

static void generation_ended(generation *g, int process, int how)
{
    g->pids[process] = 0;
    g->alive--;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        generation_left(g, process);
    else
        generation_blame(g, process, how);
}

static void generation_reap(generation *g)
{
    for (int process = 0; process < g->processes; process++) {
        int how = 0;
        pid_t pid = g->pids[process] ? waitpid(g->pids[process], &how, WNOHANG) : 0;

        if (pid > 0)
            generation_ended(g, process, how);
        else if (pid < 0 && errno == ECHILD)
            generation_ended(g, process, 255 << 8); /* someone else waited for it */
    }
}

static void generation_look_for_hung(generation *g)
{
    const uint64_t now = co_clock_ns();
    const uint64_t limit_ms = g->options->timeout_ms ? g->options->timeout_ms : 300000;

    if (g->killing_at || now < g->looked_ns + WATCHDOG_POLL_NS)
        return;
    g->looked_ns = now;
    for (int rank = 0; rank < g->ranks; rank++) {
        co_watch *watch = co_shm_watch(g->shm, rank);
        char what[1024], cause[1200];

        if (!g->pids[g->processes == 1 ? 0 : rank] ||
            !co_watchdog_look(&g->watchdogs[rank], watch, limit_ms * 1000000 + WATCHDOG_MARGIN_NS))
            continue;
        snprintf(cause, sizeof(cause), "it has not got on for %llu s; %s",
                 (unsigned long long)(limit_ms / 1000),
                 co_watch_describe(what, sizeof(what), watch));
        co_generation_end(g, rank, CO_E_TIMEOUT, cause);
        return;
    }
}

/* A rank records a fatal signal before its core is written. */
static void generation_look_for_dying(generation *g)
{
    for (int process = 0; process < g->processes && !g->killing_at; process++) {
        const int gone = g->pids[process] ? co_watch_gone(generation_watch(g, process)) : 0;

        if (gone > 0)
            generation_blame(g, process, gone);
    }
}

void co_generation_look(generation *g)
{
    generation_reap(g);
    generation_look_for_dying(g);
    if (!g->killing_at && co_shm_cause(g->shm, NULL, NULL, 0) != CO_OK)
        g->killing_at = co_clock_ns() + GRACE_NS; /* ranks that share a process do not exit one by
                                                     one */
    /* A single rank waits for nobody, so it would not notice. */
    if (g->killing_at && (g->ranks == 1 || co_clock_ns() > g->killing_at))
        co_generation_kill(g);
    generation_look_for_hung(g);
}

co_status co_generation_status(const generation *g, int *rank)
{
    char cause[2000];
    co_status st;

    *rank = -1;
    st = co_shm_cause(g->shm, rank, cause, sizeof(cause));
    if (st == CO_OK)
        return CO_OK;
    if (*rank < 0 && g->options->threads && st == CO_E_PEER)
        return co_fail(st, "the process of all ranks (%d): %s", (int)g->started[0], cause);
    if (*rank < 0 || g->ranks == 1)
        return co_fail(st, "%s", cause);
    return co_fail(st, "rank %d (process %d): %s", *rank,
                   (int)g->started[g->options->threads ? 0 : *rank], cause);
}
