/*
 * append.c - append whole records to a file.
 */
#include "telemetry/append.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"

co_status co_append_open(co_append *out, const char *dir, const char *name, bool fresh)
{
    out->fd = -1;
    out->path = co_fs_join_new(dir, name);
    if (!out->path)
        return CO_E_NOMEM;
    return fresh ? co_open_fresh(&out->fd, out->path) : co_open_append(&out->fd, out->path);
}

co_status co_append_record(const co_append *file, const void *bytes, size_t size)
{
    const off_t start = lseek(file->fd, 0, SEEK_END);
    const char *at = bytes;
    size_t done = 0;

    while (done < size) {
        const ssize_t n = write(file->fd, at + done, size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int cause = errno;

            if (start >= 0 && ftruncate(file->fd, start) != 0)
                cause = errno;
            return co_fail(CO_E_IO, "%s: cannot write: %s", file->path, strerror(cause));
        }
        done += (size_t)n;
    }
    return CO_OK;
}

void co_append_close(co_append *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    co_free(file->path);
    file->path = NULL;
}
