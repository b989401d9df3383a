/*
 * process.c - what the kernel says of a process.
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
