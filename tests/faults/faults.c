/*
 * faults.c - `faults FAULTY RUNS SEED`: random faults in random runs, each at a random step in a
 * random rank. Every run must end or recover as its config says, name the rank and the cause,
 * be gone in time, leave nothing behind, and come to the bits of a run to which nothing happened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include "faults/faulty.h"
#include "waits.h"

#define MAX_RANKS 4
#define TEXT      65536
/* `timeout` of the run, where that is what ends it, and where nothing may wait for it: a run has
   WAITS_S. */
#define HANG_TIMEOUT_S 5
#define TIMEOUT_S      (2 * WAITS_S)
/* Far behind the last step in which a fault happens, as it comes late on a busy machine. */
#define LAST_FAULT 300
#define STEPS      2000

/* What happens to a rank, and what the report must say. */
typedef struct fault_kind {
    const char *name;
    int signal, value; /* sent to the rank; 0: a limit on its files instead */
    bool accident;     /* a run may go on after it */
    bool root;         /* only rank 0 meets it */
    int exit_code;     /* with on_failure: stop */
    const char *says;
    bool hangs;
} fault_kind;

static const fault_kind kinds[] = {
    {"SIGKILL", SIGKILL, 0, true, false, 4, "killed by signal 9", false},
    {"SIGABRT", SIGABRT, 0, true, false, 4, "killed by signal 6", false},
    {"SIGSTOP", SIGSTOP, 0, true, false, 4, "is stopped by a signal", true},
    {"exit(1)", SIGUSR1, FAULTY_EXIT, true, false, 4, "exited with code 1", false},
    {"no memory", SIGUSR1, FAULTY_NO_MEMORY, true, true, 1, "out of memory", false},
    {"mismatch", SIGUSR1, FAULTY_MISMATCH, false, false, 4, " calls ", false},
    {"reader", SIGUSR1, FAULTY_READER, true, false, 4, "reading data for", true},
    {"straggler", SIGUSR1, FAULTY_SLOW, true, false, 0, "", false},
    {"disk full", 0, 0, false, true, 1, "cannot write: File too large", false},
    {"read-only", SIGUSR1, FAULTY_READ_ONLY, false, true, 1, "Read-only file system", false},
};

#define KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))

static const char *const modes[] = {"stop", "shrink", "respawn"};
enum { MODE_STOP, MODE_SHRINK, MODE_RESPAWN, MODES };

typedef struct fault_run {
    const fault_kind *kind;
    int mode, ranks, victim;
    uint64_t step; /* when it happens */
    char dir[64], config[96], out[96], text[TEXT];
    pid_t launcher;
    uint64_t start_ns, fault_ns, next_ns, end_ns;
    uint64_t step_at_fault;
    int status;
} fault_run;

static double worst_recovery, worst_end;
static char weights[65]; /* of a run to which nothing happens: those of all that recover */

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
        dup2(fd, 1);
        dup2(fd, 2);
        execl(program, program, r->config, ranks, run, (char *)NULL);
        _exit(127);
    }
    return r->launcher > 0;
}

/* The launcher's children in the order in which it has started them: by process number. */
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

/* The step of the last whole line of metrics.jsonl. */
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
    r->fault_ns = co_clock_ns();
    if (r->kind->signal)
        return sigqueue(pids[r->victim], r->kind->signal, value) == 0;
    const struct rlimit limit = {(rlim_t)metrics_size(r) + 100, (rlim_t)metrics_size(r) + 100};
    return prlimit(pids[r->victim], RLIMIT_FSIZE, &limit, NULL) == 0;
}

static void finish(fault_run *r)
{
    off_t before = metrics_size(r);

    /* After a restart metrics.jsonl begins with another start; the step behind it counts. */
    while (!has_ended(r) && in_time(r)) {
        const uint64_t step = last_step(r);

        if (!r->next_ns && metrics_size(r) > before && step > r->step_at_fault + 2)
            r->next_ns = co_clock_ns();
        co_clock_sleep_us(1000);
    }
    if (!r->end_ns)
        kill(r->launcher, SIGKILL);
}

static void read_text(fault_run *r)
{
    FILE *file = fopen(r->out, "r");
    size_t n = file ? fread(r->text, 1, TEXT - 1, file) : 0;

    r->text[n] = '\0';
    if (file)
        fclose(file);
}

/* ---- what must hold ---- */

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
    static const char *const known[] = {
        "config.yaml", "metrics.jsonl", "summary.json", "final.safetensors",
        "checkpoints", "lock",          ".lock",        ".",
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

static bool names_the_rank(const fault_run *r)
{
    char name[32];

    snprintf(name, sizeof(name), "rank %d", r->victim);
    return strstr(r->text, name) && strstr(r->text, r->kind->says);
}

static bool summary_has(const fault_run *r, const char *words)
{
    char path[96], text[8192];
    FILE *file;

    snprintf(path, sizeof(path), "%s/run/summary.json", r->dir);
    file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
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
    if (!goes_on) {
        seconds = co_clock_seconds(r->fault_ns, r->end_ns);
        worst_end = seconds > worst_end && !r->kind->hangs ? seconds : worst_end;
        return true;
    }
    if (!summary_has(r, weights))
        return complain(r, "its weights are not those of an undisturbed run");
    if (!r->next_ns)
        r->next_ns = r->end_ns;
    seconds = co_clock_seconds(r->fault_ns, r->next_ns);
    if (!r->kind->hangs && seconds > worst_recovery)
        worst_recovery = seconds;
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
    char command[96];

    snprintf(command, sizeof(command), "rm -rf %s", r->dir);
    return system(command) == 0;
}

/* What all runs come to, on any number of ranks. */
static bool run_undisturbed(const char *program)
{
    static const fault_kind none = {.name = "nothing"};
    static fault_run r = {.kind = &none, .ranks = 2};
    char path[96], text[8192];
    const char *at;
    FILE *file;

    if (!make_folder(&r) || !start(&r, program))
        return false;
    finish(&r);
    snprintf(path, sizeof(path), "%s/run/summary.json", r.dir);
    file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
    at = strstr(text, "\"weights_sha256\": \"");
    if (!at)
        return complain(&r, "no weights");
    snprintf(weights, sizeof(weights), "%.64s", at + 19);
    return remove_folder(&r);
}

static bool run_one(const char *program, uint64_t *seed, int index)
{
    static fault_run r;
    bool good;

    memset(&r, 0, sizeof(r));
    r.kind = &kinds[index % KINDS];
    r.mode = (int)draw(seed, MODES);
    r.ranks = 2 + (int)draw(seed, MAX_RANKS - 1);
    r.victim = r.kind->root ? 0 : (int)draw(seed, (uint64_t)r.ranks);
    r.step = 1 + draw(seed, LAST_FAULT);
    if (!make_folder(&r))
        return false;
    good = start(&r, program);
    good = good && strike(&r);
    finish(&r);
    read_text(&r);
    if (!r.end_ns)
        complain(&r, "it did not end");
    good = good && r.end_ns && ended_well(&r);
    if (!nobody_left())
        good = complain(&r, "processes are left behind");
    if (good && !folder_is_clean(&r))
        good = complain(&r, "it left files behind");
    return good && remove_folder(&r);
}

int main(int argc, char **argv)
{
    const int runs = argc > 2 ? atoi(argv[2]) : 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) * 2654435761U + 88172645463325252U : 0;
    int failed = 0;

    if (runs < 1 || seed == 0) {
        fprintf(stderr, "usage: faults FAULTY RUNS SEED\n");
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans come to us */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!run_undisturbed(argv[1]))
        return 1;
    for (int i = 0; i < runs; i++)
        failed += !run_one(argv[1], &seed, i);
    printf("%d runs, %d failed; after a death the slowest end took %.2f s, the slowest recovery "
           "%.2f s\n",
           runs, failed, worst_end, worst_recovery);
    return failed ? 1 : 0;
}
