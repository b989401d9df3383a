/*
 * open.h - the one place where files are opened. scripts/check_opens.sh keeps it so.
 *
 * A name says nothing about the file: a pipe would make a reader wait for ever, a device has no
 * end, a link leads elsewhere. So only regular files are opened, of a size that the caller has
 * named, and a file is never created through a link. What a user names, a data set or weights, may
 * be a link; what a program finds in a run directory may not.
 */
#ifndef CO_CORE_OPEN_H
#define CO_CORE_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cohort/status.h>

/* What the caller accepts. */
typedef struct co_open_rule {
    co_status status;     /* code for a missing, unreadable, too large or non-regular file */
    bool own;             /* of a run directory: a symbolic link is refused */
    uint64_t max;         /* bytes; 0: any number */
    const char *expected; /* "an IDX file", where there is a folder instead; NULL: "a file" */
} co_open_rule;

/* A regular file for reading; *fd is the caller's. The message begins with the path. */
co_status co_open_read(int *fd, uint64_t *size, const char *path, const co_open_rule *rule);
/* The same as a stream, which is the caller's; `size` may be NULL. */
co_status co_open_stream(FILE **out, uint64_t *size, const char *path, const co_open_rule *rule);
/* Whether co_open_read would take it, with its message where not. */
co_status co_open_check(const char *path, const co_open_rule *rule);
/* The same of a file that is to be executed: it and its folder have to belong to this user or to
   root, and be writable by their owner alone. What *fd reads is what was checked, whatever `path`
   has become since. */
co_status co_open_trusted(int *fd, const char *path, const co_open_rule *rule);

/* Files to write: CO_E_IO where that fails. A link, or a file that is not regular, is refused. */

/* A file that must not exist. */
co_status co_open_fresh(int *fd, const char *path);
/* A file to append to, created where it does not exist. */
co_status co_open_append(int *fd, const char *path);
/* A file that is locked to lock a folder, created where it does not exist: it must belong to this
   user, or to the folder's owner, have one name only, and hold no more than a number. */
co_status co_open_lock(int *fd, const char *path, const char *folder);

/* A file to read and write that nobody else may touch, created where it does not exist: it must
   belong to this user, have one name only, and no rights for others. */
co_status co_open_private(int *fd, const char *path);

/* A file of /proc or /sys; NULL: it does not exist. */
FILE *co_open_system(const char *path);

#endif
