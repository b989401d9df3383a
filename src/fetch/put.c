/* put.c - all of some bytes to a file, however many a call takes. */
#include "fetch/put.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

co_status co_fetch_put(int fd, const void *bytes, size_t n, const char *path)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = write(fd, (const char *)bytes + at, n - at);

        if (got < 0 && errno != EINTR)
            return co_fail(CO_E_IO, "%s: %s", path, strerror(errno));
        at += got > 0 ? (size_t)got : 0;
    }
    return CO_OK;
}
