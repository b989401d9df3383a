/* folder.h - a temporary folder for the files of a test program. */
#ifndef CO_TESTS_FOLDER_H
#define CO_TESTS_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell.h"

static char folder[32];

/* Setup of a test or a group. */
static inline int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/cohort-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* Teardown: removes the folder with its contents. */
static inline int folder_remove(void **state)
{
    (void)state;
    return shell_run("rm -rf %s", folder);
}

/* Path of `name` in the folder; valid until the fourth call from now. */
static inline char *folder_path(const char *name)
{
    static char path[4][288];
    static int next;
    char *out = path[next++ % 4];

    snprintf(out, sizeof(path[0]), "%s/%s", folder, name);
    return out;
}

/* Run a command of the shell in the folder; it must succeed. */
static inline void folder_run(const char *command)
{
    assert_int_equal(shell_run("cd %s && %s", folder, command), 0);
}

/* Number of entries. */
static inline int folder_count(void)
{
    DIR *open = opendir(folder);
    int n = -2; /* . and .. */

    assert_non_null(open);
    while (readdir(open))
        n++;
    closedir(open);
    return n;
}

/* Removes the folder and the file `name` if it exists; fails if anything else was left behind. */
static inline int folder_remove_with(const char *name)
{
    unlink(folder_path(name));
    return rmdir(folder);
}

#endif
