/*
 * supervise.c - ranks as child processes, one each or all in one: fork, watch, end.
 *
 * The parent computes nothing. It waits for signals with a limit, so no handler and no global
 * state is needed: a child that ended, Ctrl-C, a request to stop. It knows no training.
 */
#include "launch/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "comm/shm.h"
#include "core/clock.h"
#include "core/mem.h"

/* How long ranks may take to notice that the run is over before they are killed. A rank sees it
   in its next collective; one that is stuck or stopped never does. */
#define GRACE_NS UINT64_C(2000000000)

typedef struct supervisor {
    const co_launch_options *options;
    co_rank_fn fn;
    void *arg;
    co_shm *shm;
    pid_t *pids;    /* by process; 0: has ended */
    pid_t *started; /* by process, for messages */
    int ranks, processes, alive;
    uint64_t killing_at; /* when those still alive are killed; 0: not ending */
    sigset_t watched, before;
    struct sigaction chld_before;
} supervisor;

/* _exit leaves out the leak check that a sanitizer makes at exit. */
static _Noreturn void supervise_exit(int code)
{
    fflush(NULL);
#ifdef __SANITIZE_ADDRESS__
    if (code == 0)
        __lsan_do_leak_check();
#endif
    _exit(code);
}

static co_status supervise_run(const supervisor *s, int process)
{
    return s->options->threads ? co_rank_threads(s->options, s->shm, s->fn, s->arg)
                               : co_rank_run(s->options, s->shm, process, s->fn, s->arg);
}

static _Noreturn void supervise_child(const supervisor *s, int process, pid_t parent)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(co_exit_code(CO_E_PEER));
    sigaction(SIGINT, &ignore, NULL); /* Ctrl-C reaches the whole group; the parent decides */
    sigaction(SIGCHLD, &s->chld_before, NULL);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    supervise_exit(co_exit_code(supervise_run(s, process)));
}

static void supervise_end(supervisor *s, int rank, co_status status, const char *cause)
{
    co_shm_abort(s->shm, rank, status, cause);
    if (!s->killing_at)
        s->killing_at = co_clock_ns() + GRACE_NS;
}

static void supervise_kill(const supervisor *s)
{
    for (int process = 0; process < s->processes; process++)
        if (s->pids[process])
            kill(s->pids[process], SIGKILL);
}

static void supervise_fork(supervisor *s)
{
    pid_t parent = getpid();

    fflush(NULL); /* else every child would write the same buffered text again */
    for (int process = 0; process < s->processes; process++) {
        pid_t pid = fork();

        if (pid == 0)
            supervise_child(s, process, parent);
        if (pid < 0) {
            co_fail(CO_E_FAILED, "cannot start process %d of %d: %s", process, s->processes,
                    strerror(errno));
            supervise_end(s, -1, CO_E_FAILED, co_error_message());
            return;
        }
        s->pids[process] = s->started[process] = pid;
        s->alive++;
    }
}

static void supervise_ended(supervisor *s, int process, int how)
{
    const int rank = s->options->threads && s->ranks > 1 ? -1 : process; /* or nobody knows whose */
    char cause[96];

    s->pids[process] = 0;
    s->alive--;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return;
    if (WIFSIGNALED(how))
        snprintf(cause, sizeof(cause), "killed by signal %d (%s)", WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
    else
        snprintf(cause, sizeof(cause), "exited with code %d and gave no reason", WEXITSTATUS(how));
    supervise_end(s, rank, CO_E_PEER, cause); /* keeps an earlier cause, the rank's own */
}

static void supervise_reap(supervisor *s)
{
    for (int process = 0; process < s->processes; process++) {
        int how = 0;
        pid_t pid = s->pids[process] ? waitpid(s->pids[process], &how, WNOHANG) : 0;

        if (pid > 0)
            supervise_ended(s, process, how);
        else if (pid < 0 && errno == ECHILD)
            supervise_ended(s, process, 255 << 8); /* someone else has waited for it */
    }
}

/* Wait for the next signal, at most 100 ms: the net under a lost SIGCHLD. */
static void supervise_wait(supervisor *s)
{
    const struct timespec limit = {.tv_nsec = 100000000};
    int signal = sigtimedwait(&s->watched, NULL, &limit);

    if (signal == SIGINT)
        supervise_end(s, -1, CO_E_INTERRUPTED, "interrupted");
    else if (signal == SIGTERM || signal == SIGHUP)
        supervise_end(s, -1, CO_E_TERMINATED, "terminated");
    /* Of ranks in one process none exits while another hangs. */
    if (!s->killing_at && co_shm_cause(s->shm, NULL, NULL, 0) != CO_OK)
        s->killing_at = co_clock_ns() + GRACE_NS;
    /* A single rank waits for nobody, so it would not notice. */
    if (s->killing_at && (s->ranks == 1 || co_clock_ns() > s->killing_at))
        supervise_kill(s);
}

static void supervise_block(supervisor *s)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};

    sigemptyset(&s->watched);
    sigaddset(&s->watched, SIGCHLD);
    sigaddset(&s->watched, SIGINT);
    sigaddset(&s->watched, SIGTERM);
    sigaddset(&s->watched, SIGHUP);
    sigprocmask(SIG_BLOCK, &s->watched, &s->before);
    sigaction(SIGCHLD, &plain, &s->chld_before); /* an inherited SIG_IGN would hide exit codes */
}

static void supervise_unblock(const supervisor *s)
{
    sigaction(SIGCHLD, &s->chld_before, NULL);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

static co_status supervise_verdict(const supervisor *s)
{
    char cause[2000];
    int rank = -1;
    co_status st = co_shm_cause(s->shm, &rank, cause, sizeof(cause));

    if (st == CO_OK)
        return CO_OK;
    if (rank < 0 && s->options->threads && st == CO_E_PEER)
        return co_fail(st, "the process of all ranks (%d): %s", (int)s->started[0], cause);
    if (rank < 0 || s->ranks == 1)
        return co_fail(st, "%s", cause);
    return co_fail(st, "rank %d (process %d): %s", rank,
                   (int)s->started[s->options->threads ? 0 : rank], cause);
}

co_status co_supervise(const co_launch_options *options, co_rank_fn fn, void *arg)
{
    supervisor s = {.options = options, .fn = fn, .arg = arg, .ranks = options->ranks};
    co_status st = co_shm_create(&s.shm, s.ranks);

    if (st != CO_OK)
        return st;
    s.processes = options->threads ? 1 : s.ranks;
    s.pids = co_calloc(2 * (size_t)s.processes, sizeof(*s.pids));
    if (!s.pids) {
        co_shm_destroy(s.shm);
        return co_fail(CO_E_NOMEM, "out of memory");
    }
    s.started = s.pids + s.processes;
    supervise_block(&s);
    supervise_fork(&s);
    while (s.alive > 0) {
        supervise_wait(&s);
        supervise_reap(&s);
    }
    st = supervise_verdict(&s);
    supervise_unblock(&s);
    co_free(s.pids);
    co_shm_destroy(s.shm);
    return st;
}
