/*
 * process.c - facts about a process, from the kernel.
 */
#include "core/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/open.h"
#include "core/status.h"

const char *co_process_stat(char *text, size_t size, const char *path)
{
    FILE *file = co_open_system(path);
    const char *at;
    size_t n;

    if (!file)
        return NULL;
    n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = '\0';
    at = strrchr(text, ')'); /* the name may hold blanks and parentheses */
    return at ? at + 1 : NULL;
}

/* schedstat: nanoseconds on a core, and waiting for one (sched-stats.rst of the kernel). */
static bool process_add_times(double *core, double *delayed, const char *tid)
{
    char path[64], text[96];
    FILE *file;
    size_t n;
    char *end;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", tid);
    file = co_open_system(path);
    if (!file)
        return false;
    n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    *core += (double)strtoull(text, &end, 10) * 1e-9;
    *delayed += (double)strtoull(end, NULL, 10) * 1e-9;
    return n > 0;
}

bool co_process_times(double *core, double *delayed, int tid)
{
    const struct dirent *entry;
    bool known = false;
    char name[16];
    DIR *tasks;

    *core = *delayed = 0;
    snprintf(name, sizeof(name), "%d", tid);
    if (tid)
        return process_add_times(core, delayed, name);
    tasks = opendir("/proc/self/task");
    while (tasks && (entry = readdir(tasks)))
        if (entry->d_name[0] != '.')
            known |= process_add_times(core, delayed, entry->d_name);
    if (tasks)
        closedir(tasks);
    return known;
}

bool co_process_ignores(int signal)
{
    struct sigaction action;

    return sigaction(signal, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
           action.sa_handler == SIG_IGN;
}

void co_process_requests(sigset_t *out)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    sigemptyset(out);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!co_process_ignores(numbers[i]))
            sigaddset(out, numbers[i]);
}

void co_process_hold_requests(void)
{
    sigset_t requests;

    co_process_requests(&requests);
    pthread_sigmask(SIG_BLOCK, &requests, NULL);
}

co_status co_process_asked(void)
{
    const struct timespec none = {0};
    sigset_t requests;
    int number;

    co_process_requests(&requests);
    number = sigtimedwait(&requests, NULL, &none);
    if (number < 0)
        return CO_OK;
    return number == SIGINT ? co_fail(CO_E_INTERRUPTED, "interrupted")
                            : co_fail(CO_E_TERMINATED, "terminated");
}
