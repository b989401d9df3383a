/*
 * open.c - opens regular files alone, for reading and for writing. Their content is not looked at.
 */
#include "core/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A lock holds the number of a process. */
#define OPEN_MAX_LOCK 32

static co_status open_check_kind(const struct stat *info, const char *path,
                                 const co_open_rule *rule)
{
    if (S_ISLNK(info->st_mode))
        return co_fail(rule->status,
                       "%s: is a symbolic link, which a run directory may not have for a file; put "
                       "the file itself there",
                       path);
    if (S_ISDIR(info->st_mode))
        return co_fail(rule->status, "%s: is a folder, expected %s", path,
                       rule->expected ? rule->expected : "a file");
    if (!S_ISREG(info->st_mode))
        return co_fail(rule->status, "%s: is not a regular file", path);
    return CO_OK;
}

static co_status open_check(uint64_t *size, const struct stat *info, const char *path,
                            const co_open_rule *rule)
{
    CO_TRY(open_check_kind(info, path, rule));
    *size = (uint64_t)info->st_size;
    if (rule->max && *size > rule->max)
        return co_fail(rule->status, "%s: %llu bytes are more than the limit of %llu", path,
                       (unsigned long long)*size, (unsigned long long)rule->max);
    return CO_OK;
}

static co_status open_failure(const char *path, const co_open_rule *rule)
{
    return co_fail(rule->status, "%s: %s", path, strerror(errno));
}

/* Close the file unless `st` is CO_OK. */
static co_status open_end(int *fd, co_status st)
{
    if (st != CO_OK && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return st;
}

co_status co_open_read(int *fd, uint64_t *size, const char *path, const co_open_rule *rule)
{
    const int links = rule->own ? AT_SYMLINK_NOFOLLOW : 0;
    struct stat info;
    co_status st;

    *fd = -1;
    if (!path)
        return co_fail(CO_E_USAGE, "the path of a file is missing (NULL)");
    /* Opening a device can have an effect by itself. Another file may take the name in between: it
       is checked again when it is open. */
    if (fstatat(AT_FDCWD, path, &info, links) != 0)
        return open_failure(path, rule);
    CO_TRY(open_check_kind(&info, path, rule));
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (rule->own ? O_NOFOLLOW : 0));
    if (*fd < 0 || fstat(*fd, &info) != 0)
        st = open_failure(path, rule);
    else
        st = open_check(size, &info, path, rule);
    return open_end(fd, st);
}

co_status co_open_stream(FILE **out, uint64_t *size, const char *path, const co_open_rule *rule)
{
    uint64_t any;
    int fd;

    CO_TRY(co_open_read(&fd, size ? size : &any, path, rule));
    *out = fdopen(fd, "r");
    if (*out)
        return CO_OK;
    close(fd);
    return co_fail(CO_E_NOMEM, "out of memory");
}

co_status co_open_check(const char *path, const co_open_rule *rule)
{
    uint64_t size;
    int fd;

    CO_TRY(co_open_read(&fd, &size, path, rule));
    close(fd);
    return CO_OK;
}

/* Nobody but this user and root can have made or changed it. */
static co_status open_check_owner(const struct stat *info, const char *path,
                                  const co_open_rule *rule)
{
    if (info->st_uid != 0 && info->st_uid != geteuid())
        return co_fail(rule->status, "%s: belongs to another user, and has to be yours or root's",
                       path);
    if (info->st_mode & (S_IWGRP | S_IWOTH))
        return co_fail(rule->status, "%s: others may write to it; forbid that: chmod go-w '%s'",
                       path, path);
    return CO_OK;
}

/* `path` is `name` in the folder. */
static co_status open_in_folder(int *fd, int folder, const char *name, const char *path,
                                const co_open_rule *rule)
{
    struct stat info;

    *fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (*fd < 0 || fstat(*fd, &info) != 0)
        return open_failure(path, rule);
    CO_TRY(open_check_kind(&info, path, rule));
    return open_check_owner(&info, path, rule);
}

/* `real` is an absolute path without links. The folder is held while the file is opened in it, so
   that both are what was looked at. */
static co_status open_trusted(int *fd, char *real, const co_open_rule *rule)
{
    char *slash = strrchr(real, '/');
    struct stat info;
    int folder;
    co_status st;

    *slash = '\0';
    folder = open(slash == real ? "/" : real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fstat(folder, &info) != 0)
        st = open_failure(real, rule);
    else
        st = open_check_owner(&info, slash == real ? "/" : real, rule);
    *slash = '/';
    if (st == CO_OK)
        st = open_in_folder(fd, folder, slash + 1, real, rule);
    if (folder >= 0)
        close(folder);
    return st;
}

co_status co_open_trusted(int *fd, const char *path, const co_open_rule *rule)
{
    char *real = realpath(path, NULL);
    co_status st;

    *fd = -1;
    if (!real)
        return open_failure(path, rule);
    st = co_open_check(real, rule); /* to open a device can do something already */
    if (st == CO_OK)
        st = open_trusted(fd, real, rule);
    free(real);
    return open_end(fd, st);
}

static co_status open_cannot_write(const char *path)
{
    return co_fail(CO_E_IO, "%s: cannot open for writing: %s", path, strerror(errno));
}

/* *info is of the file that has been opened. */
static co_status open_write(int *fd, struct stat *info, const char *path, int flags)
{
    static const co_open_rule rule = {.status = CO_E_IO, .own = true};
    co_status st;

    if (lstat(path, info) == 0 && !(flags & O_EXCL))
        CO_TRY(open_check_kind(info, path, &rule));
    *fd = open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
    if (*fd < 0)
        return open_cannot_write(path);
    st = fstat(*fd, info) == 0 ? open_check_kind(info, path, &rule) : open_cannot_write(path);
    return open_end(fd, st);
}

co_status co_open_fresh(int *fd, const char *path)
{
    struct stat info;

    return open_write(fd, &info, path, O_WRONLY | O_APPEND | O_EXCL);
}

co_status co_open_append(int *fd, const char *path)
{
    struct stat info;

    return open_write(fd, &info, path, O_WRONLY | O_APPEND);
}

co_status co_open_lock(int *fd, const char *path, const char *folder)
{
    struct stat info, above;

    CO_TRY(open_write(fd, &info, path, O_RDWR));
    if (stat(folder, &above) == 0 && (info.st_uid == geteuid() || info.st_uid == above.st_uid) &&
        info.st_nlink == 1 && info.st_size <= OPEN_MAX_LOCK)
        return CO_OK;
    close(*fd);
    *fd = -1;
    return co_fail(CO_E_USAGE,
                   "%s: is not the lock of a run, or another user's; remove it, or give another "
                   "folder",
                   path);
}

co_status co_open_private(int *fd, const char *path)
{
    struct stat info;

    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (*fd < 0)
        return open_cannot_write(path);
    if (fstat(*fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        info.st_nlink == 1 && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return CO_OK;
    close(*fd);
    *fd = -1;
    return co_fail(CO_E_USAGE, "%s: belongs to another user, or others may use it; remove it",
                   path);
}

FILE *co_open_system(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 ? fopen(path, "re")
                                                                             : NULL;
}
