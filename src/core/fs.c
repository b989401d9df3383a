/*
 * fs.c - files read whole, and files written whole or not at all.
 */
#include "core/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"

#define FS_MAX_DATED  10000             /* folders of one second */
#define FS_MAX_WALKED 16                /* folders that removing one keeps open */
#define FS_MAX_LEVELS 3                 /* folders that co_fs_find_above looks into */
#define FS_SUFFIX     sizeof(".123456") /* of a temporary file */
#define FS_TRIES      1000
#define FS_STRIDE     7919 /* from the number of one to that of the next */

static co_status fs_fill(uint8_t *out, int fd, size_t size, const char *path, co_status status)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = read(fd, out + done, size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return co_fail(status, "%s: %s", path, strerror(errno));
        if (n == 0)
            return co_fail(status, "%s: became shorter while it was read", path);
        done += (size_t)n;
    }
    return CO_OK;
}

co_status co_fs_read_as(uint8_t **out, size_t *size, const char *path, const co_open_rule *rule)
{
    uint64_t found;
    uint8_t *bytes;
    co_status st;
    int fd;

    CO_TRY(co_open_read(&fd, &found, path, rule));
    *size = (size_t)found;
    bytes = co_calloc(*size + 1, 1);
    st = bytes ? fs_fill(bytes, fd, *size, path, rule->status) : CO_E_NOMEM;
    close(fd);
    if (st != CO_OK) {
        co_free(bytes);
        return st;
    }
    *out = bytes;
    return CO_OK;
}

co_status co_fs_read(uint8_t **out, size_t *size, const char *path, size_t max, co_status status)
{
    const co_open_rule rule = {.status = status, .max = max};

    return co_fs_read_as(out, size, path, &rule);
}

struct co_atomic_file {
    char *path;      /* owned */
    char *temporary; /* owned; NULL: written in place; empty: gone */
    FILE *stream;
};

static co_status fs_write_failure(const char *path)
{
    return co_fail(CO_E_IO, "%s: cannot write: %s", path, strerror(errno));
}

/* A device or a pipe, into which one writes: a rename would put a file in its place. */
static bool fs_is_stream(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* A temporary file beside `path` with the mode of any new file; -1 with errno. Not by mkstemp,
   after which the mode would have to be set by the process's umask, and that cannot be read without
   setting it under other threads. */
static int fs_open_temporary(co_atomic_file *file)
{
    const size_t size = strlen(file->path) + FS_SUFFIX;
    uint64_t number = co_clock_ns() ^ (uint64_t)getpid() << 12;
    int fd = -1;

    file->temporary = co_calloc(size, 1);
    if (!file->temporary) {
        errno = ENOMEM;
        return -1;
    }
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < FS_TRIES; i++, number += FS_STRIDE) {
        snprintf(file->temporary, size, "%s.%06x", file->path, (unsigned)(number & 0xffffff));
        fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (fd < 0)
        file->temporary[0] = '\0';
    return fd;
}

co_status co_atomic_open(co_atomic_file **out, const char *path)
{
    co_atomic_file *file;
    int fd;

    if (!path)
        return co_fail(CO_E_USAGE, "the path of a file is missing (NULL)");
    file = co_calloc(1, sizeof(*file));
    if (!file)
        return CO_E_NOMEM;
    file->path = co_strdup(path);
    if (!file->path) {
        co_atomic_discard(file);
        return CO_E_NOMEM;
    }
    fd = fs_is_stream(path) ? open(path, O_WRONLY | O_CLOEXEC) : fs_open_temporary(file);
    if (fd < 0) {
        co_status st = errno == ENOMEM ? CO_E_NOMEM : fs_write_failure(path);

        co_atomic_discard(file);
        return st;
    }
    file->stream = fdopen(fd, "w");
    if (!file->stream) {
        close(fd);
        co_atomic_discard(file);
        return co_fail(CO_E_NOMEM, "out of memory");
    }
    *out = file;
    return CO_OK;
}

FILE *co_atomic_stream(co_atomic_file *file)
{
    return file->stream;
}

static int fs_sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = co_strdup(path);
    int fd, bad = -1;

    if (!folder) {
        errno = ENOMEM;
        return -1;
    }
    if (slash)
        folder[slash == path ? 1 : slash - path] = '\0';
    fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        /* Some file systems cannot sync a folder; the rename itself has happened. */
        bad = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP ? -1 : 0;
        close(fd);
    }
    co_free(folder);
    return bad;
}

/* Bytes to the disk, where there is one: a pipe cannot be synced. */
static int fs_flush(const co_atomic_file *file)
{
    if (ferror(file->stream) || fflush(file->stream) != 0)
        return -1;
    return file->temporary ? fsync(fileno(file->stream)) : 0;
}

co_status co_atomic_commit(co_atomic_file *file)
{
    co_status st = CO_OK;

    if (fs_flush(file) != 0)
        st = fs_write_failure(file->path);
    if (fclose(file->stream) != 0 && st == CO_OK)
        st = fs_write_failure(file->path);
    file->stream = NULL;
    if (st == CO_OK && file->temporary && rename(file->temporary, file->path) != 0)
        st = fs_write_failure(file->path);
    if (st == CO_OK && file->temporary) {
        file->temporary[0] = '\0';
        if (fs_sync_folder(file->path) != 0)
            st = fs_write_failure(file->path);
    }
    co_atomic_discard(file);
    return st;
}

void co_atomic_discard(co_atomic_file *file)
{
    if (!file)
        return;
    if (file->stream)
        fclose(file->stream);
    if (file->temporary && file->temporary[0])
        unlink(file->temporary);
    co_free(file->temporary);
    co_free(file->path);
    co_free(file);
}

co_status co_fs_check_folder(const char *path, const char *option)
{
    struct stat info;

    if (stat(path, &info) == 0 ? S_ISDIR(info.st_mode) : errno != ENOTDIR)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "%s cannot be a folder: it, or what is above it, is a file; give another %s",
                   path, option);
}

co_status co_fs_mkdirs(const char *path)
{
    co_status st = CO_OK;
    struct stat info;
    char *copy;

    if (!path[0])
        return co_fail(CO_E_IO, "a folder's name is empty");
    copy = co_strdup(path);
    if (!copy)
        return CO_E_NOMEM;
    for (char *at = copy + 1; st == CO_OK; at++) {
        char c = *at;

        if (c != '/' && c != '\0')
            continue;
        *at = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            st = co_fail(CO_E_IO, "%s: cannot make the folder: %s", copy, strerror(errno));
        if (c == '\0')
            break;
        *at = c;
    }
    if (st == CO_OK && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)))
        st = co_fail(CO_E_IO, "%s: is not a folder", path);
    co_free(copy);
    return st;
}

static co_status fs_make_above(const char *path)
{
    char *above = co_strdup(path), *slash = above ? strrchr(above, '/') : NULL;
    co_status st = above ? CO_OK : CO_E_NOMEM;

    if (slash && slash != above) {
        *slash = '\0';
        st = co_fs_mkdirs(above);
    }
    co_free(above);
    return st;
}

co_status co_fs_make_dated(char *path, size_t size, const char *prefix)
{
    time_t now = time(NULL);
    struct tm parts;
    char stamp[32];

    if (!localtime_r(&now, &parts) || !strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts))
        return co_fail(CO_E_FAILED, "cannot find out the local time; name the folder");
    CO_TRY(fs_make_above(prefix));
    for (int i = 1; i <= FS_MAX_DATED; i++) {
        char number[16] = "";
        int n;

        if (i > 1)
            snprintf(number, sizeof(number), "-%d", i);
        n = snprintf(path, size, "%s-%s%s", prefix, stamp, number);
        if (n < 0 || (size_t)n >= size)
            return co_fail(CO_E_USAGE, "%s: the path is too long", prefix);
        if (mkdir(path, 0777) == 0)
            return CO_OK;
        if (errno != EEXIST)
            break;
    }
    return co_fail(CO_E_IO, "%s: cannot make the folder: %s", path, strerror(errno));
}

static int fs_remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void co_fs_remove_folder(const char *path)
{
    (void)nftw(path, fs_remove_one, FS_MAX_WALKED, FTW_DEPTH | FTW_PHYS);
}

int co_fs_same(const char *a, const char *b)
{
    struct stat one, other;

    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static const char *fs_slash(const char *folder, const char *name)
{
    const size_t n = strlen(folder);

    return n && *name && folder[n - 1] != '/' ? "/" : "";
}

co_status co_fs_join(char *out, size_t size, const char *folder, const char *name)
{
    const int n = snprintf(out, size, "%s%s%s", folder, fs_slash(folder, name), name);

    if (n < 0 || (size_t)n >= size)
        return co_fail(CO_E_USAGE, "%s: the path is too long", folder);
    return CO_OK;
}

const char *co_fs_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *co_fs_join_new(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = co_calloc(size, 1);

    if (path)
        snprintf(path, size, "%s%s%s", folder, fs_slash(folder, name), name);
    return path;
}

int co_fs_find_above(char *out, size_t size, const char *file, const char *name)
{
    size_t n = strlen(file);

    for (int level = 0; level < FS_MAX_LEVELS; level++) {
        int length;

        while (n > 0 && file[n - 1] != '/')
            n--;
        length = snprintf(out, size, "%.*s%s", (int)n, file, name);
        if (length < 0 || (size_t)length >= size)
            return 0;
        if (co_fs_exists(out))
            return 1;
        while (n > 0 && file[n - 1] == '/')
            n--;
        if (n == 0)
            return 0;
    }
    return 0;
}

int co_fs_exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}

int co_reader_bytes(const uint8_t **out, co_reader *r, size_t n)
{
    if (r->left < n)
        return -1;
    *out = r->at;
    r->at += n;
    r->left -= n;
    return 0;
}

int co_reader_u8(uint8_t *out, co_reader *r)
{
    const uint8_t *at;

    if (co_reader_bytes(&at, r, 1) != 0)
        return -1;
    *out = *at;
    return 0;
}

int co_reader_u32be(uint32_t *out, co_reader *r)
{
    const uint8_t *at;

    if (co_reader_bytes(&at, r, 4) != 0)
        return -1;
    *out = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    return 0;
}

int co_reader_u64le(uint64_t *out, co_reader *r)
{
    const uint8_t *at;

    if (co_reader_bytes(&at, r, 8) != 0)
        return -1;
    *out = 0;
    for (int i = 7; i >= 0; i--)
        *out = *out << 8 | at[i];
    return 0;
}

int co_mul_size(size_t *out, size_t a, size_t b)
{
    return __builtin_mul_overflow(a, b, out) ? -1 : 0;
}
