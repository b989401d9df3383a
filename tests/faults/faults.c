/*
 * faults.c - `faults FAULTY RUNS SEED`: random faults in random runs, each at a random step in a
 * random rank. Every run must end or recover as its config says, name the rank and the cause, end
 * in time, leave nothing behind, and reach the bits of an undisturbed run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "emulated.h"
#include "faults/dump.h"
#include "faults/kinds.h"
#include "shell.h"
#include "waits.h"

#define MAX_RANKS 4
#define TEXT      65536
/* `timeout` of a run that ends by it, and of others, which must not reach it: runs have WAITS_S. */
#define HANG_TIMEOUT_S 5
#define TIMEOUT_S      (2 * WAITS_S)
/* Limits of a core dump: its size, and what it adds to the shared memory, most of which is
   untouched. */
#define CORE_MOST   ((uint64_t)256 << 20)
#define GROWTH_MOST ((uint64_t)64 << 20)
#define GROWTH_NS   1500000000 /* how long shared memory is watched after the fault */
/* Well before STEPS, as faults come late on a busy machine. */
#define LAST_FAULT 300
#define STEPS      2000

static const char *const modes[] = {"stop", "shrink", "respawn"};
enum { MODE_STOP, MODE_SHRINK, MODE_RESPAWN, MODES };

typedef struct fault_run {
    const fault_kind *kind;
    int mode, ranks, victim;
    uint64_t step; /* of the fault */
    char dir[64], config[96], out[96], text[TEXT];
    pid_t launcher;
    uint64_t start_ns, fault_ns, next_ns, end_ns;
    uint64_t noticed_ns;           /* first output after the fault, or the end */
    uint64_t memory, memory_grown; /* shared bytes at the fault, and growth after it */
    uint64_t core;                 /* bytes of the largest dump */
    int cores;
    uint64_t step_at_fault;
    int status;
} fault_run;

/* Over all runs. */
static struct {
    int runs, failed, ended, went_on, cores;
    double end, recovery, notice; /* slowest after a death, in seconds */
    uint64_t grown, core;         /* largest, in bytes */
} total;
static char weights[65]; /* of an undisturbed run; recovered runs must have the same */

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed % n;
}

static bool complain(const fault_run *r, const char *what)
{
    printf(
        "FAILED: %s in rank %d of %d at step %llu, on_failure %s: %s\n  kept: %s\n  it said: %s\n",
        r->kind->name, r->victim, r->ranks, (unsigned long long)r->step, modes[r->mode], what,
        r->dir, r->text);
    return false;
}

/* ---- the run ---- */

static bool write_config(const fault_run *r)
{
    FILE *file = fopen(r->config, "w");

    if (!file)
        return false;
    fprintf(file,
            "model: {name: mlp, hidden: [64]}\n"
            "data: {name: synthetic, shape: [1, 12, 12], classes: 10, samples: 2048}\n"
            "batch: 32\nepochs: 1000\nmax_steps: %d\nlog_every: 1\ntimeout: %d\n"
            "on_failure: %s\nthreads: 1\nshards: 4\ncheckpoint: off\noptimizer: {name: sgd, lr: "
            "0.01, momentum: 0.9}\n",
            STEPS, r->kind->hangs ? HANG_TIMEOUT_S : TIMEOUT_S, modes[r->mode]);
    return fclose(file) == 0;
}

static bool start(fault_run *r, const char *program)
{
    char ranks[16], run[80];

    snprintf(ranks, sizeof(ranks), "%d", r->ranks);
    snprintf(run, sizeof(run), "%s/run", r->dir);
    r->start_ns = co_clock_ns();
    r->launcher = fork();
    if (r->launcher == 0) {
        const int fd = open(r->out, O_WRONLY | O_CREAT | O_TRUNC, 0644);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dump_allow(r->dir);
        dup2(fd, 1);
        dup2(fd, 2);
        execl(program, program, r->config, ranks, run, (char *)NULL);
        _exit(127);
    }
    return r->launcher > 0;
}

/* The launcher's children in the order of their start, by process number. */
static int children(pid_t out[MAX_RANKS], pid_t parent)
{
    char path[64], text[256] = "";
    int n = 0, fd;
    char *at = text, *end;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    close(fd);
    for (; n < MAX_RANKS; n++, at = end) {
        out[n] = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
    }
    return n;
}

static off_t metrics_size(const fault_run *r)
{
    char path[96];
    struct stat about;

    snprintf(path, sizeof(path), "%s/run/metrics.jsonl", r->dir);
    return stat(path, &about) == 0 ? about.st_size : 0;
}

/* The step of the last complete line of metrics.jsonl. */
static uint64_t last_step(const fault_run *r)
{
    char path[96], tail[1025];
    const char *at = NULL;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/run/metrics.jsonl", r->dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = pread(fd, tail, sizeof(tail) - 1, metrics_size(r) > 1024 ? metrics_size(r) - 1024 : 0);
    close(fd);
    tail[n > 0 ? n : 0] = '\0';
    for (const char *next = tail; (next = strstr(next, "\"step\":")) != NULL; next++)
        at = next;
    return at ? strtoull(at + 7, NULL, 10) : 0;
}

static bool has_ended(fault_run *r)
{
    if (r->end_ns)
        return true;
    if (waitpid(r->launcher, &r->status, WNOHANG) == r->launcher)
        r->end_ns = co_clock_ns();
    return r->end_ns != 0;
}

static bool in_time(const fault_run *r)
{
    return co_clock_seconds(r->start_ns, co_clock_ns()) < WAITS_S;
}

static bool strike(fault_run *r)
{
    pid_t pids[MAX_RANKS];
    union sigval value = {.sival_int = r->kind->value};

    while (!has_ended(r) && in_time(r) && last_step(r) < r->step)
        co_clock_sleep_us(500);
    if (r->end_ns || children(pids, r->launcher) != r->ranks)
        return complain(r, "it was over before the fault");
    r->step_at_fault = last_step(r);
    r->memory = dump_shared_bytes(r->launcher);
    r->fault_ns = co_clock_ns();
    if (r->kind->signal)
        return sigqueue(pids[r->victim], r->kind->signal, value) == 0;
    const struct rlimit limit = {(rlim_t)metrics_size(r) + 100, (rlim_t)metrics_size(r) + 100};
    return prlimit(pids[r->victim], RLIMIT_FSIZE, &limit, NULL) == 0;
}

static bool has_spoken(const fault_run *r)
{
    struct stat about;

    return stat(r->out, &about) == 0 && about.st_size > 0;
}

static void look_after_fault(fault_run *r)
{
    const uint64_t now = co_clock_ns();
    uint64_t bytes;

    if (!r->fault_ns)
        return;
    if (!r->noticed_ns && (r->end_ns || has_spoken(r)))
        r->noticed_ns = now;
    if (now - r->fault_ns > GROWTH_NS)
        return;
    bytes = dump_shared_bytes(r->launcher);
    if (bytes > r->memory && bytes - r->memory > r->memory_grown)
        r->memory_grown = bytes - r->memory;
}

static void finish(fault_run *r)
{
    off_t before = metrics_size(r);

    /* A restart adds a start to metrics.jsonl; the first step after it counts. */
    while (!has_ended(r) && in_time(r)) {
        const uint64_t step = last_step(r);

        if (!r->next_ns && metrics_size(r) > before && step > r->step_at_fault + 2)
            r->next_ns = co_clock_ns();
        look_after_fault(r);
        co_clock_sleep_us(1000);
    }
    look_after_fault(r);
    if (!r->end_ns)
        kill(r->launcher, SIGKILL);
}

static void read_text(char *out, size_t size, const char *path)
{
    FILE *file = fopen(path, "r");

    out[file ? fread(out, 1, size - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
}

static void read_summary(char *out, size_t size, const fault_run *r)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/run/summary.json", r->dir);
    read_text(out, size, path);
}

/* ---- checks ---- */

static bool nobody_left(void)
{
    const uint64_t start = co_clock_ns();

    while (co_clock_seconds(start, co_clock_ns()) < WAITS_S) {
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return true;
        co_clock_sleep_us(1000);
    }
    return false;
}

static bool folder_is_clean(const fault_run *r)
{
    static const char *const known[] = {"config.yaml",
                                        "data.json",
                                        "metrics.jsonl",
                                        "summary.json",
                                        "final.safetensors",
                                        "checkpoints",
                                        "lock",
                                        ".lock",
                                        ".",
                                        ".."};
    char path[80];
    bool clean = true;
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/run", r->dir);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)) != NULL) {
        bool found = false;

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            found = found || strcmp(entry->d_name, known[i]) == 0;
        clean = clean && found;
    }
    if (dir)
        closedir(dir);
    return dir && clean;
}

/* Whether dumps are within their limits. */
static bool was_cheap(fault_run *r)
{
    r->cores = dump_count(&r->core, r->dir);
    total.cores += r->cores;
    total.core = r->core > total.core ? r->core : total.core;
    total.grown = r->memory_grown > total.grown ? r->memory_grown : total.grown;
    if (r->core > CORE_MOST)
        return complain(r, "its core is too large");
    /* qemu writes dumps itself, and reads all memory for them. */
    return is_emulated() || r->memory_grown <= GROWTH_MOST ||
           complain(r, "its shared memory has grown");
}

static bool names_the_rank(const fault_run *r)
{
    char name[32];

    snprintf(name, sizeof(name), "rank %d", r->victim);
    return strstr(r->text, name) && strstr(r->text, r->kind->says);
}

static bool summary_has(const fault_run *r, const char *words)
{
    char text[8192];

    read_summary(text, sizeof(text), r);
    return strstr(text, words) != NULL;
}

static bool names_the_straggler(const fault_run *r)
{
    char want[64];

    snprintf(want, sizeof(want), "\"rank\": %d,", r->victim);
    return summary_has(r, want);
}

static bool ended_well(fault_run *r)
{
    const bool goes_on = (r->kind->accident && r->mode != MODE_STOP) || r->kind->exit_code == 0;
    const int want = goes_on ? 0 : r->kind->exit_code;
    char path[96];
    double seconds;

    if (!WIFEXITED(r->status) || WEXITSTATUS(r->status) != want)
        return complain(r, "another exit code");
    if (r->kind->value == FAULTY_SLOW ? !names_the_straggler(r) : !names_the_rank(r))
        return complain(r, "the report does not name rank and cause");
    snprintf(path, sizeof(path), "%s/run/summary.json", r->dir);
    if ((access(path, F_OK) == 0) != goes_on)
        return complain(r, goes_on ? "no summary" : "a summary of a run that failed");
    if (r->kind->exit_code && !r->kind->hangs && r->noticed_ns) {
        seconds = co_clock_seconds(r->fault_ns, r->noticed_ns);
        total.notice = seconds > total.notice ? seconds : total.notice;
    }
    total.ended += !goes_on;
    total.went_on += goes_on;
    if (!goes_on) {
        seconds = co_clock_seconds(r->fault_ns, r->end_ns);
        total.end = seconds > total.end && !r->kind->hangs ? seconds : total.end;
        return true;
    }
    if (!summary_has(r, weights))
        return complain(r, "its weights are not those of an undisturbed run");
    if (!r->next_ns)
        r->next_ns = r->end_ns;
    seconds = co_clock_seconds(r->fault_ns, r->next_ns);
    if (!r->kind->hangs && seconds > total.recovery)
        total.recovery = seconds;
    return true;
}

static bool make_folder(fault_run *r)
{
    strcpy(r->dir, "/tmp/cohort-faults-XXXXXX");
    if (!mkdtemp(r->dir))
        return complain(r, "no folder for it");
    snprintf(r->config, sizeof(r->config), "%s/config.yaml", r->dir);
    snprintf(r->out, sizeof(r->out), "%s/said", r->dir);
    return write_config(r);
}

static bool remove_folder(const fault_run *r)
{
    return shell_run("rm -rf %s", r->dir) == 0;
}

/* Sets `weights`, which every run must reach on any number of ranks. */
static bool run_undisturbed(const char *program)
{
    static const fault_kind none = {.name = "nothing"};
    static fault_run r = {.kind = &none, .ranks = 2};
    char text[8192];
    const char *at;

    if (!make_folder(&r) || !start(&r, program))
        return false;
    finish(&r);
    read_summary(text, sizeof(text), &r);
    at = strstr(text, "\"weights_sha256\": \"");
    if (!at)
        return complain(&r, "no weights");
    snprintf(weights, sizeof(weights), "%.64s", at + 19);
    return remove_folder(&r);
}

/* Cycles through all kinds. Slow ones take their turn in every fourth cycle only, else a rank dies
   of a signal. */
static const fault_kind *choose(uint64_t *seed, int index)
{
    const fault_kind *kind = &kinds[index % KINDS];
    const bool slow = kind->hangs || kind->value == FAULTY_SLOW;

    return slow && index / KINDS % 4 ? &kinds[draw(seed, DEATHS)] : kind;
}

static bool run_one(const char *program, uint64_t *seed, int index)
{
    static fault_run r;
    bool good;

    memset(&r, 0, sizeof(r));
    r.kind = choose(seed, index);
    r.mode = (int)draw(seed, MODES);
    r.ranks = 2 + (int)draw(seed, MAX_RANKS - 1);
    r.victim = r.kind->root ? 0 : (int)draw(seed, (uint64_t)r.ranks);
    r.step = 1 + draw(seed, LAST_FAULT);
    if (!make_folder(&r))
        return false;
    good = start(&r, program);
    good = good && strike(&r);
    finish(&r);
    read_text(r.text, sizeof(r.text), r.out);
    if (!r.end_ns)
        complain(&r, "it did not end");
    good = good && r.end_ns && ended_well(&r) && was_cheap(&r);
    if (!nobody_left())
        good = complain(&r, "processes are left behind");
    if (good && !folder_is_clean(&r))
        good = complain(&r, "it left files behind");
    return good && remove_folder(&r);
}

static void print_total(void)
{
    printf("%8s %8s %8s %8s %14s %12s %16s %14s %6s %12s\n", "runs", "failed", "ended", "survived",
           "slowest notice", "slowest end", "slowest recovery", "shared memory", "cores",
           "largest");
    printf("%8d %8d %8d %8d %12.2f s %10.2f s %14.2f s %+10.1f MiB %6d %8.1f MiB\n", total.runs,
           total.failed, total.ended, total.went_on, total.notice, total.end, total.recovery,
           (double)total.grown / 1048576, total.cores, (double)total.core / 1048576);
}

int main(int argc, char **argv)
{
    const int runs = argc > 2 ? atoi(argv[2]) : 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) * 2654435761U + 88172645463325252U : 0;
    char program[PATH_MAX];

    if (runs < 1 || seed == 0 || !realpath(argv[1], program)) {
        fprintf(stderr, "usage: faults FAULTY RUNS SEED\n");
        return 2;
    }
    adopt_orphans();
    signal(SIGQUIT, SIG_DFL); /* a shell's background job ignores it, and so would the ranks */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!run_undisturbed(program))
        return 1;
    for (; total.runs < runs; total.runs++)
        total.failed += !run_one(program, &seed, total.runs);
    print_total();
    return total.failed ? 1 : 0;
}
