/*
 * mutations.c - `PROGRAM --mutations NAME FILES SEED SECONDS FOLDER CORPUS`: gives a fuzz target so
 * many files, damaged by a seed, and counts what goes wrong instead of ending at it.
 *
 * A child takes a batch, and says in a shared page where it is: one that dies is replaced behind
 * the file at which it died. What shows only when a child ends, a leak or too much memory, is
 * looked for in halves of its batch. Prints one line: name, files, crashes, hangs, leaks, files
 * that took too much memory, slowest in seconds of processor time, most memory in MiB. Files that
 * are findings stay in FOLDER. Exit code 1: there is one.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "mutate.h"

#define BATCH 50
/* A file may take SECONDS of processor time, whatever else the machine does; one that waits for
   something has this long. */
#define WAIT_S 300
/* As in `make fuzz`: no file of a corpus is larger than some KiB. */
#define MEMORY_MAX_KIB (2L << 20)

typedef enum { FINE, CRASH, HANG, LEAK, MEMORY, VERDICTS } verdict;
static const char *const verdict_name[VERDICTS] = {"fine", "crash", "hang", "leak", "memory"};

/* What a child says. */
typedef struct mutations_page {
    volatile uint32_t at; /* the file it is at; behind the last one when it is done */
    volatile double slowest;
} mutations_page;

typedef struct mutations {
    const char *name, *folder;
    uint64_t seed;
    time_t seconds;
    mutate_file *file;
    size_t n;
    mutations_page *page;
    unsigned found[VERDICTS];
    long memory_kib;
    int failed; /* of our own */
} mutations;

static int mutations_keep(void *context, uint8_t *data, size_t size)
{
    mutations *m = context;
    mutate_file *file = realloc(m->file, (m->n + 1) * sizeof(*file));

    if (file == NULL) {
        free(data);
        return -1;
    }
    m->file = file;
    m->file[m->n++] = (mutate_file){data, size};
    return 0;
}

static void mutations_child(const mutations *m, uint32_t begin, uint32_t end)
{
    const struct itimerval limit = {.it_value.tv_sec = m->seconds};

    for (m->page->at = begin; m->page->at < end; m->page->at++) {
        mutate_file made = mutate(m->file, m->n, m->seed, m->page->at);
        const clock_t start = clock();
        double seconds;

        if (made.data == NULL)
            abort();
        (void)setitimer(ITIMER_PROF, &limit, NULL);
        (void)alarm(WAIT_S);
        (void)LLVMFuzzerTestOneInput(made.data, made.size);
        seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (seconds > m->page->slowest)
            m->page->slowest = seconds;
        free(made.data);
    }
}

/* Files begin .. end-1 in a child. */
static verdict mutations_run(mutations *m, uint32_t begin, uint32_t end)
{
    struct rusage usage;
    int status;
    pid_t child;

    (void)fflush(NULL);
    m->page->at = begin;
    child = fork();
    if (child == 0) {
        mutations_child(m, begin, end);
        exit(0); /* not _exit: here leaks are looked for */
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("mutations: no child");
        m->failed = 1;
        return FINE;
    }
    if (usage.ru_maxrss > m->memory_kib)
        m->memory_kib = usage.ru_maxrss;
    if (m->page->at < end)
        return WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM)
                   ? HANG
                   : CRASH;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return LEAK;
    return usage.ru_maxrss > MEMORY_MAX_KIB ? MEMORY : FINE;
}

static void mutations_record(mutations *m, uint32_t index, verdict what)
{
    mutate_file made = mutate(m->file, m->n, m->seed, index);
    char path[4096];
    FILE *file;

    m->found[what]++;
    (void)snprintf(path, sizeof path, "%s/%s-%s-%llu-%u", m->folder, m->name, verdict_name[what],
                   (unsigned long long)m->seed, index);
    file = made.data == NULL ? NULL : fopen(path, "wb");
    if (file == NULL || fwrite(made.data, 1, made.size, file) != made.size || fclose(file) != 0) {
        fprintf(stderr, "mutations: %s: %s\n", path, strerror(errno));
        m->failed = 1;
    }
    fprintf(stderr, "mutations: %s: %s\n", verdict_name[what], path);
    free(made.data);
}

static unsigned mutations_found(const mutations *m)
{
    return m->found[CRASH] + m->found[HANG] + m->found[LEAK] + m->found[MEMORY];
}

static void mutations_judge(mutations *m, uint32_t begin, uint32_t end)
{
    const unsigned before = mutations_found(m);
    verdict what;

    if (begin >= end || (what = mutations_run(m, begin, end)) == FINE)
        return;
    if (what == CRASH || what == HANG) {
        const uint32_t at = m->page->at;

        mutations_record(m, at, what);
        mutations_judge(m, begin, at); /* these may have leaked */
        mutations_judge(m, at + 1, end);
        return;
    }
    if (end - begin > 1) {
        mutations_judge(m, begin, begin + (end - begin) / 2);
        mutations_judge(m, begin + (end - begin) / 2, end);
    }
    if (mutations_found(m) == before) /* it is this file, or takes several of the batch */
        mutations_record(m, end - 1, what);
}

int driver_mutations(int argc, char **argv)
{
    mutations m = {0};
    unsigned long files;

    if (argc != 6 || (files = strtoul(argv[1], NULL, 10)) == 0 || files > UINT32_MAX - BATCH ||
        (m.seconds = strtol(argv[3], NULL, 10)) <= 0) {
        fprintf(stderr, "usage: --mutations NAME FILES SEED SECONDS FOLDER CORPUS\n");
        return 2;
    }
    m.name = argv[0];
    m.seed = strtoull(argv[2], NULL, 10);
    m.folder = argv[4];
    m.page = mmap(NULL, sizeof(*m.page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m.page == MAP_FAILED || driver_files(argv[5], mutations_keep, &m) != 0 || m.n == 0) {
        fprintf(stderr, "mutations: no files in %s, or no memory for them\n", argv[5]);
        return 2;
    }
    for (uint32_t i = 0; i < files && !m.failed; i += BATCH)
        mutations_judge(&m, i, i + BATCH < files ? i + BATCH : (uint32_t)files);
    printf("%-14s %7lu %8u %6u %6u %10u %12.3f %12.1f\n", m.name, files, m.found[CRASH],
           m.found[HANG], m.found[LEAK], m.found[MEMORY], m.page->slowest,
           (double)m.memory_kib / 1024);
    for (size_t i = 0; i < m.n; i++)
        free(m.file[i].data);
    free(m.file);
    return m.failed ? 2 : mutations_found(&m) > 0;
}
