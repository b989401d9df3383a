/*
 * mpiexec.c - runs a job under mpiexec, and restarts it from its last checkpoint when a rank dies.
 *
 * Under MPI a death ends all ranks, so only what is on disk survives. The ranks' notes
 * (launch/rank_notes.h) tell which rank died, and where, because mpiexec's exit code and messages
 * differ between MPI implementations. Does not train; all ranks are mpiexec's.
 */
#include "launch/mpiexec.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "comm/mpi/mpi.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/plural.h"
#include "launch/hosts.h"
#include "launch/rank_notes.h"

#define JOB_SIGNALLED 128 /* exit codes above this are 128 + signal, */
#define JOB_SIGNALS   64  /* highest signal number */
#define JOB_LOOK_S    2   /* between readings of the notes of running ranks */
#define JOB_GRACE_S   10  /* for the launcher to end after its ranks */

typedef struct job {
    const co_mpiexec *m;
    int ranks;
    co_hosts hosts;
    co_note *note;           /* owned, (ranks of the first start): of the last start */
    co_notes_restart last;   /* number of restarts, and the cause of the last */
    uint64_t failed_at;      /* 1 + step of the last failure; 0: none */
    double start;            /* on co_clock_ns, in seconds */
    double look_at, over_at; /* in seconds since this start: when to read the notes next; when the
                                ranks had ended, 0: not yet */
    double starting_at;      /* likewise, when the first process had started */
    bool overdue;            /* we ended the launcher because it did not end by itself */
    int absent;              /* we ended it because so many ranks had not begun; 0: all had */
    char cause[1400];
} job;

/* LAUNCHER PROGRAM ... */
static co_status mpiexec_command(const char ***out, const job *j, bool again)
{
    const char *const *program = again ? j->m->again : j->m->program;
    size_t words = 0;
    const char **argv;
    int n = 0;

    while (program[words])
        words++;
    argv = co_arena_alloc(j->m->arena, CO_HOSTS_WORDS + words + 1, sizeof(*argv));
    if (!argv)
        return CO_E_NOMEM;
    CO_TRY(co_hosts_launcher(argv, &n, &j->hosts, j->ranks));
    memcpy(argv + n, program, (words + 1) * sizeof(*argv));
    *out = argv;
    return CO_OK;
}

/* ---- the result of a job ---- */

/* Whether the rank has no final note. Where a rank timed out, those that said they wait for others
   were alive: MPICH's launcher kills them before they can say more. */
static bool mpiexec_is_silent(const job *j, const co_note *note)
{
    bool timed_out = false;

    for (int r = 0; r < j->ranks && note->where[0]; r++)
        timed_out =
            timed_out || (j->note[r].kind == CO_NOTE_FAILED && j->note[r].status == CO_E_TIMEOUT);
    return note->kind <= CO_NOTE_BEGUN && !timed_out;
}

/* The rank that ended first, according to the notes; -1: none. A rank without a final note died;
   one that failed has recorded why. */
static int mpiexec_find_dead(const job *j)
{
    int failed = -1;
    bool any = false;

    for (int r = 0; r < j->ranks; r++)
        any = any || j->note[r].kind != CO_NOTE_NONE;
    for (int r = 0; r < j->ranks && any; r++) {
        if (mpiexec_is_silent(j, &j->note[r]))
            return r;
        if (failed < 0 && j->note[r].kind == CO_NOTE_FAILED)
            failed = r;
    }
    return failed;
}

/* The latest step in the ranks' notes, else that of the last checkpoint. */
static uint64_t mpiexec_step(const job *j)
{
    uint64_t step = 0;

    for (int r = 0; r < j->ranks; r++)
        step = j->note[r].step > step ? j->note[r].step : step;
    return step == 0 && j->m->reached ? j->m->reached(j->m->arg) : step;
}

/* Number of silent ranks. If the launcher kills the other ranks by SIGKILL, as MPICH's does, those
   may be silent, too. *one_host: all of them were on one host. */
static int mpiexec_count_silent(bool *one_host, const job *j)
{
    const char *host = NULL;
    int n = 0;

    *one_host = true;
    for (int r = 0; r < j->ranks; r++) {
        if (!mpiexec_is_silent(j, &j->note[r]))
            continue;
        *one_host = *one_host && (!host || strcmp(host, j->note[r].host) == 0);
        host = j->note[r].host;
        n++;
    }
    return n;
}

/* "rank 1 (process 5 on n2) has", "one or more of 3 ranks have". */
static const char *mpiexec_silent(char *out, size_t size, const job *j, int dead)
{
    const co_note *note = &j->note[dead];
    bool one_host;
    const int n = mpiexec_count_silent(&one_host, j);

    if (n == 1)
        snprintf(out, size, "rank %d (process %ld on %s) has", dead, note->pid, note->host);
    else
        snprintf(out, size, "one or more of %d ranks%s%s have", n, one_host ? " on " : "",
                 one_host ? note->host : "");
    return out;
}

/* Seconds from the first process's start until all ranks must have begun. */
static int64_t mpiexec_start_limit(const job *j)
{
    const int64_t least = CO_MPI_START_MS / 1000;

    return (j->m->timeout_s > least ? j->m->timeout_s : least) + JOB_GRACE_S;
}

/* "2 of 4 ranks have not begun ...", and which have. */
static void mpiexec_explain_absent(job *j)
{
    int n = snprintf(j->cause, sizeof(j->cause),
                     "%d of %d rank%s had not begun %lld s after the first process: a host or its "
                     "network does not answer; begun ha%s",
                     j->absent, j->ranks, co_plural((uint64_t)j->ranks),
                     (long long)mpiexec_start_limit(j), j->ranks - j->absent == 1 ? "s" : "ve");

    if (j->absent == j->ranks)
        n += snprintf(j->cause + n, sizeof(j->cause) - (size_t)n, " none");
    for (int r = 0; r < j->ranks && n < (int)sizeof(j->cause) - 320; r++)
        if (j->note[r].kind != CO_NOTE_NONE)
            n += snprintf(j->cause + n, sizeof(j->cause) - (size_t)n, " rank %d on %s;", r,
                          j->note[r].host);
}

static const char *mpiexec_ending(char *out, size_t size, const job *j, int code)
{
    if (j->overdue)
        snprintf(out, size, "had not noticed %d s after the others", JOB_GRACE_S);
    else if (code > JOB_SIGNALLED && code <= JOB_SIGNALLED + JOB_SIGNALS)
        snprintf(out, size, "says signal %d", code - JOB_SIGNALLED);
    else
        snprintf(out, size, "says exit code %d", code);
    return out;
}

/* Write the cause as one line to j->cause. Returns whether a restart may help. */
static bool mpiexec_explain(co_status *status, job *j, int dead, int code)
{
    const co_note *note = dead < 0 ? NULL : &j->note[dead];
    char ending[64], who[320];

    *status = CO_E_PEER;
    if (j->absent) {
        mpiexec_explain_absent(j);
        return true;
    }
    if (note && note->kind == CO_NOTE_FAILED) {
        snprintf(j->cause, sizeof(j->cause), "rank %d (process %ld on %s): %s", dead, note->pid,
                 note->host, note->message);
        *status = note->status;
        return note->status == CO_E_PEER || note->status == CO_E_TIMEOUT ||
               note->status == CO_E_NOMEM;
    }
    if (note && note->kind == CO_NOTE_BEGUN) {
        snprintf(j->cause, sizeof(j->cause), "%s died in or after step %llu; its launcher %s",
                 mpiexec_silent(who, sizeof(who), j, dead), (unsigned long long)mpiexec_step(j),
                 mpiexec_ending(ending, sizeof(ending), j, code));
        return true;
    }
    if (note || code > JOB_SIGNALLED) {
        snprintf(j->cause, sizeof(j->cause),
                 "a rank has died before it had begun; its launcher says exit code %d", code);
        return true;
    }
    *status = CO_E_FAILED;
    if (code == 127) {
        snprintf(j->cause, sizeof(j->cause),
                 "--mpiexec: '%s' cannot be started; is it installed, and "
                 "in PATH?",
                 j->m->launcher);
        return false;
    }
    /* Failed before ranks began, e.g. by a config error or the launcher itself, which was
       reported. */
    *status = code == 2 ? CO_E_USAGE : code == 3 ? CO_E_DATA : code == 4 ? CO_E_PEER : CO_E_FAILED;
    snprintf(j->cause, sizeof(j->cause), "the job has ended with exit code %d; see above", code);
    return code == 4;
}

/* ---- restart ---- */

/* Remove lost hosts and their ranks: the dead rank's host, or those that cannot be reached. If no
   host is lost, use one rank fewer. */
static co_status mpiexec_shrink(job *j, int dead, bool one_host, const co_child_guard *guard)
{
    const int before = j->hosts.n;
    int ranks = 0;

    if (one_host && dead >= 0 && j->note[dead].kind == CO_NOTE_BEGUN)
        co_hosts_drop(&j->hosts, j->note[dead].host);
    else
        CO_TRY(co_hosts_drop_lost(&j->hosts, guard, j->m->program[0]));
    for (int r = 0; r < j->ranks; r++)
        ranks += !*j->note[r].host || co_hosts_has(&j->hosts, j->note[r].host);
    j->ranks = j->hosts.n < before ? ranks : j->ranks - 1;
    return CO_OK;
}

static bool mpiexec_give_up(job *j, const char *why)
{
    const size_t n = strlen(j->cause);

    snprintf(j->cause + n, sizeof(j->cause) - n, "; given up: %s", why);
    return false;
}

/* Whether to restart; sets the ranks and hosts of the restart. */
static bool mpiexec_again(job *j, int dead, const co_child_guard *guard)
{
    const uint64_t failed_at = mpiexec_step(j) + 1;
    const int before = j->ranks;
    bool one_host;
    const int lost = mpiexec_count_silent(&one_host, j) > 1 ? -1 : dead;

    if (j->m->on_failure == CO_ON_FAILURE_STOP)
        return false;
    if (j->failed_at == failed_at)
        return mpiexec_give_up(j, "the same step has failed twice");
    j->failed_at = failed_at;
    if (j->last.count == j->m->max_restarts)
        return mpiexec_give_up(j, "max_restarts is reached");
    if (j->m->on_failure == CO_ON_FAILURE_SHRINK &&
        mpiexec_shrink(j, dead, one_host, guard) != CO_OK)
        return mpiexec_give_up(j, co_error_message());
    if (j->ranks < 1)
        return mpiexec_give_up(j, "no rank is left to continue with");
    j->last = (co_notes_restart){.count = j->last.count + 1, .lost_rank = lost};
    snprintf(j->last.cause, sizeof(j->last.cause), "%s", j->cause);
    co_log(CO_LOG_WARN,
           "%s; %d of %d rank%s start again from the last checkpoint (restart %d of "
           "%lld)",
           j->cause, j->ranks, before, co_plural((uint64_t)before), j->last.count,
           (long long)j->m->max_restarts);
    return true;
}

/* ---- one job ---- */

static double mpiexec_seconds(const job *j)
{
    return (double)co_clock_ns() * 1e-9 - j->start;
}

/* Whether a rank has failed, which ends all, or all have left. */
static bool mpiexec_is_over(const job *j)
{
    bool left = true;

    for (int r = 0; r < j->ranks; r++) {
        if (j->note[r].kind == CO_NOTE_FAILED)
            return true;
        left = left && j->note[r].kind == CO_NOTE_LEFT;
    }
    return left;
}

/* How many ranks are missing although the first process started long ago. */
static int mpiexec_absent(job *j, double seconds)
{
    int absent = 0;

    if (j->starting_at == 0 && co_notes_any_starting(j->m->notes))
        j->starting_at = seconds;
    if (j->starting_at == 0 || seconds - j->starting_at < (double)mpiexec_start_limit(j))
        return 0;
    for (int r = 0; r < j->ranks; r++)
        absent += j->note[r].kind == CO_NOTE_NONE;
    return absent;
}

/* Ends a launcher that has not noticed that its ranks ended, or that some do not come; it may wait
   for ever for a lost host. */
static bool mpiexec_tick(void *arg, double seconds)
{
    job *j = arg;

    if (seconds < j->look_at)
        return false;
    j->look_at = seconds + JOB_LOOK_S;
    co_notes_read(j->note, j->m->notes, j->ranks);
    if (j->over_at == 0 && mpiexec_is_over(j))
        j->over_at = seconds;
    j->overdue = j->over_at > 0 && seconds - j->over_at > JOB_GRACE_S;
    if (j->over_at == 0 && j->absent == 0)
        j->absent = mpiexec_absent(j, seconds);
    return j->overdue || j->absent;
}

static co_status mpiexec_run_once(int *code, co_status *asked, job *j, const co_child_guard *guard,
                                  bool again)
{
    co_child_ending ending = {0};
    co_child child = {.log = -1, .ask = SIGUSR1, .tick = mpiexec_tick, .arg = j};
    const char **argv;

    CO_TRY(mpiexec_command(&argv, j, again));
    CO_TRY(co_notes_create(j->m->notes, &j->last));
    child.file = argv[0];
    child.argv = argv;
    j->look_at = j->over_at = j->starting_at = 0;
    j->overdue = false;
    j->absent = 0;
    if (j->m->max_seconds) {
        child.limit_seconds = (double)j->m->max_seconds - mpiexec_seconds(j);
        child.limit_seconds = child.limit_seconds > 0.1 ? child.limit_seconds : 0.1;
    }
    *asked = co_child_run(&ending, guard, &child);
    if (*asked == CO_E_FAILED)
        return *asked;
    *code =
        WIFSIGNALED(ending.wait) ? JOB_SIGNALLED + WTERMSIG(ending.wait) : WEXITSTATUS(ending.wait);
    co_notes_read(j->note, j->m->notes, j->ranks);
    return CO_OK;
}

/* All ranks left together, at the end or as requested; rank 0's note has the status. */
static co_status mpiexec_left(const job *j, co_status asked)
{
    const co_note *note = &j->note[0];
    const char *after = strstr(note->message, " after step ");

    if (note->status == CO_OK)
        return CO_OK;
    if (asked == CO_OK && j->m->max_seconds && mpiexec_seconds(j) >= (double)j->m->max_seconds) {
        co_log(CO_LOG_WARN, "stopped%.*s: the time limit (max_seconds) is reached",
               after ? (int)strcspn(after, ",") : 0, after ? after : "");
        return CO_OK;
    }
    asked = asked == CO_OK ? note->status : asked;
    return co_fail(asked, "%s%s", asked == CO_E_INTERRUPTED ? "interrupted" : "terminated",
                   after ? after : "");
}

static co_status mpiexec_run(job *j, const co_child_guard *guard)
{
    for (bool again = false;; again = true) {
        co_status asked = CO_OK, status;
        int code = 0, dead;
        bool accident;

        CO_TRY(mpiexec_run_once(&code, &asked, j, guard, again));
        if (j->note[0].kind == CO_NOTE_LEFT || code == 0)
            return mpiexec_left(j, asked);
        if (asked != CO_OK) /* they were asked to end, but did not leave in order */
            return co_fail(asked, asked == CO_E_INTERRUPTED ? "interrupted" : "terminated");
        dead = j->absent ? -1 : mpiexec_find_dead(j);
        accident = mpiexec_explain(&status, j, dead, code);
        co_notes_report_where(j->note, j->ranks);
        if (!accident || !mpiexec_again(j, dead, guard))
            return co_fail(status, "%s", j->cause);
    }
}

co_status co_mpiexec_run(const co_mpiexec *m, const co_child_guard *guard)
{
    job j = {.m = m, .ranks = m->ranks, .start = (double)co_clock_ns() * 1e-9};
    co_status st = co_hosts_read(&j.hosts, m->arena, m->launcher, m->hosts);

    if (st != CO_OK)
        return st;
    j.note = co_calloc((size_t)m->ranks, sizeof(*j.note));
    st = j.note ? mpiexec_run(&j, guard) : CO_E_NOMEM;
    co_notes_remove(m->notes);
    co_free(j.note);
    return st;
}
