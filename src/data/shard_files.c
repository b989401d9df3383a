/* shard_files.c - reads parts of local files that must not change. */
#include "data/shard_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/open.h"

#define FILES_MAX_OPEN 128 /* of a set; a process may have 1024 */

co_status co_shard_files_create(co_shard_files *out, size_t n)
{
    *out = (co_shard_files){.file = co_calloc(n, sizeof(*out->file)), .n = n};
    if (!out->file)
        return CO_E_NOMEM;
    for (size_t k = 0; k < n; k++)
        out->file[k].fd = -1;
    return CO_OK;
}

static int64_t files_changed(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

co_status co_shard_files_open(co_shard_files *files, size_t k, const char *path)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .expected = "a tar file"};
    co_shard_file *file = &files->file[k];
    struct stat info;

    file->path = co_strdup(path);
    if (!file->path)
        return CO_E_NOMEM;
    CO_TRY(co_open_read(&file->fd, &file->size, path, &rule));
    if (fstat(file->fd, &info) != 0)
        return co_fail(CO_E_DATA, "%s: %s", path, strerror(errno));
    file->changed_ns = files_changed(&info);
    if (k < FILES_MAX_OPEN)
        return CO_OK;
    close(file->fd);
    file->fd = -1;
    return CO_OK;
}

static co_status files_check(const co_shard_file *file, int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return co_fail(CO_E_IO, "%s: %s", file->path, strerror(errno));
    if ((uint64_t)info.st_size < file->size)
        return co_fail(CO_E_IO, "%s: cut short while in use: %lld bytes, it had %llu", file->path,
                       (long long)info.st_size, (unsigned long long)file->size);
    if ((uint64_t)info.st_size > file->size || files_changed(&info) != file->changed_ns)
        return co_fail(CO_E_IO, "%s: was changed while in use", file->path);
    return CO_OK;
}

static co_status files_read(uint8_t *out, const co_shard_file *file, int fd, uint64_t offset,
                            size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = pread(fd, out + at, n - at, (off_t)(offset + at));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return co_fail(CO_E_IO, "%s: at byte %llu: %s", file->path,
                           (unsigned long long)(offset + at),
                           got < 0 ? strerror(errno) : "cut short while in use");
        at += (size_t)got;
    }
    return CO_OK;
}

co_status co_shard_files_read(uint8_t *out, const co_shard_files *files, size_t k, uint64_t offset,
                              size_t n)
{
    static const co_open_rule rule = {.status = CO_E_IO, .expected = "a tar file"};
    const co_shard_file *file = &files->file[k];
    int fd = file->fd;
    uint64_t size;
    co_status st;

    if (fd < 0)
        CO_TRY(co_open_read(&fd, &size, file->path, &rule));
    st = files_check(file, fd);
    if (st == CO_OK)
        st = files_read(out, file, fd, offset, n);
    if (file->fd < 0)
        close(fd);
    return st;
}

void co_shard_files_close(co_shard_files *files)
{
    for (size_t k = 0; k < files->n; k++) {
        if (files->file[k].fd >= 0)
            close(files->file[k].fd);
        co_free(files->file[k].path);
    }
    co_free(files->file);
    *files = (co_shard_files){0};
}
