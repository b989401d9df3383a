/*
 * process.c - facts about a process, from the kernel.
 */
#include "core/process.h"

#include <stdio.h>
#include <string.h>

#include "core/open.h"

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
