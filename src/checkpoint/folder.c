/*
 * folder.c - folders of checkpoints that appear and vanish atomically.
 *
 * A checkpoint is written to DIR/.new-step-<n> and renamed when all of it is on the disk; one that
 * is removed is renamed to DIR/.old-step-<n> before its files are deleted. So a folder step-<n> is
 * complete at any time, even if a process is killed.
 */
#include "checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"

static const char folder_name[] = "step-", folder_new[] = ".new-step-", folder_old[] = ".old-step-";

static co_status folder_path(char out[CO_CHECKPOINT_MAX_PATH], const char *dir, const char *prefix,
                             uint64_t step)
{
    int n = snprintf(out, CO_CHECKPOINT_MAX_PATH, "%s/%s%" PRIu64, dir, prefix, step);

    if (n < 0 || n >= CO_CHECKPOINT_MAX_PATH)
        return co_fail(CO_E_USAGE, "%s: the path is too long", dir);
    return CO_OK;
}

co_status co_checkpoint_path(char out[CO_CHECKPOINT_MAX_PATH], const char *dir, uint64_t step)
{
    return folder_path(out, dir, folder_name, step);
}

/* "step-<n>" and nothing else: no sign, no leading zero. */
static bool folder_step(uint64_t *step, const char *name)
{
    const char *digits = name + sizeof(folder_name) - 1;
    char *end;

    if (strncmp(name, folder_name, sizeof(folder_name) - 1) != 0 || *digits < '0' ||
        *digits > '9' || (digits[0] == '0' && digits[1] != '\0') || strlen(digits) > 18)
        return false;
    *step = strtoull(digits, &end, 10);
    return *end == '\0';
}

static int folder_compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a < b) - (a > b);
}

static co_status folder_append(uint64_t **steps, size_t *n, size_t *room, uint64_t step)
{
    if (*n == *room) {
        uint64_t *more = co_realloc(*steps, *room * 2 + 8, sizeof(**steps));

        if (!more)
            return CO_E_NOMEM;
        *steps = more;
        *room = *room * 2 + 8;
    }
    (*steps)[(*n)++] = step;
    return CO_OK;
}

co_status co_checkpoint_list(uint64_t **steps, size_t *n, const char *dir)
{
    DIR *folder = opendir(dir);
    co_status st = CO_OK;
    struct dirent *entry;
    size_t room = 0;

    *steps = NULL;
    *n = 0;
    if (!folder && errno == ENOENT)
        return CO_OK;
    if (!folder)
        return co_fail(CO_E_IO, "%s: %s", dir, strerror(errno));
    while (st == CO_OK && (entry = readdir(folder)) != NULL) {
        uint64_t step;

        if (folder_step(&step, entry->d_name))
            st = folder_append(steps, n, &room, step);
    }
    closedir(folder);
    if (st != CO_OK) {
        co_free(*steps);
        *steps = NULL;
        *n = 0;
        return st;
    }
    if (*n)
        qsort(*steps, *n, sizeof(**steps), folder_compare);
    return CO_OK;
}

/* Open a folder, without following a link to one. */
static DIR *folder_open(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !folder)
        close(fd);
    return folder;
}

/* Delete a folder and its files; fails if it contains folders, which no checkpoint does. Anything
   else, such as a link, is unlinked. */
static int folder_delete(const char *path)
{
    DIR *folder = folder_open(path);
    struct dirent *entry;

    if (!folder && (errno == ENOTDIR || errno == ELOOP))
        return unlink(path);
    if (!folder)
        return errno == ENOENT ? 0 : -1;
    while ((entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    return rmdir(path);
}

static int folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), bad;

    if (fd < 0)
        return -1;
    /* Some file systems cannot sync a folder. */
    bad = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP;
    close(fd);
    return bad ? -1 : 0;
}

static co_status folder_failure(const char *path)
{
    return co_fail(CO_E_IO, "%s: cannot write: %s", path, strerror(errno));
}

co_status co_checkpoint_begin(char out[CO_CHECKPOINT_MAX_PATH], const char *dir, uint64_t step)
{
    CO_TRY(folder_path(out, dir, folder_new, step));
    CO_TRY(co_fs_mkdirs(dir));
    if (folder_delete(out) != 0 || mkdir(out, 0777) != 0)
        return folder_failure(out);
    return CO_OK;
}

co_status co_checkpoint_commit(const char *dir, uint64_t step)
{
    char made[CO_CHECKPOINT_MAX_PATH], path[CO_CHECKPOINT_MAX_PATH], old[CO_CHECKPOINT_MAX_PATH];

    CO_TRY(folder_path(made, dir, folder_new, step));
    CO_TRY(folder_path(path, dir, folder_name, step));
    CO_TRY(folder_path(old, dir, folder_old, step));
    if (folder_sync(made) != 0)
        return folder_failure(made);
    if (co_fs_exists(path) && (folder_delete(old) != 0 || rename(path, old) != 0))
        return folder_failure(path);
    if (rename(made, path) != 0 || folder_sync(dir) != 0)
        return folder_failure(path);
    (void)folder_delete(old);
    return CO_OK;
}

co_status co_checkpoint_remove(const char *dir, uint64_t step)
{
    char path[CO_CHECKPOINT_MAX_PATH], old[CO_CHECKPOINT_MAX_PATH];

    CO_TRY(folder_path(path, dir, folder_name, step));
    CO_TRY(folder_path(old, dir, folder_old, step));
    if (folder_delete(old) != 0 || rename(path, old) != 0 || folder_delete(old) != 0)
        return co_fail(CO_E_IO, "%s: cannot remove it: %s", path, strerror(errno));
    return CO_OK;
}

void co_checkpoint_clean(const char *dir)
{
    DIR *folder = opendir(dir);
    struct dirent *entry;

    if (!folder)
        return;
    while ((entry = readdir(folder)) != NULL) {
        char path[CO_CHECKPOINT_MAX_PATH];

        if (strncmp(entry->d_name, folder_new, sizeof(folder_new) - 1) != 0 &&
            strncmp(entry->d_name, folder_old, sizeof(folder_old) - 1) != 0)
            continue;
        if (co_fs_join(path, sizeof(path), dir, entry->d_name) == CO_OK)
            (void)folder_delete(path);
    }
    closedir(folder);
}
