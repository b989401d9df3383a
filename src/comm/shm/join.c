/*
 * join.c - a region for processes that were started separately: a memfd of one of them, which the
 * others open through /proc.
 *
 * It has no name, so nobody else finds it, nothing is left behind, and /dev/shm limits do not
 * apply. A process that may not access the creator, or sees a different process under its pid (in
 * another container), gets an error. Does not know how the address is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/shm/internal.h"

co_status co_shm_create_open(co_shm **out, co_shm_address *address, int ranks)
{
    struct stat about;
    const int file = co_shm_file();

    *out = NULL;
    if (file < 0 && errno == EFBIG)
        return co_fail(CO_E_UNSUPPORTED, "the length of files is limited (ulimit -f)");
    if (file < 0 || fstat(file, &about) != 0) {
        co_fail(CO_E_UNSUPPORTED, "no file in memory: %s", strerror(errno));
        if (file >= 0)
            close(file);
        return CO_E_UNSUPPORTED;
    }
    if (co_shm_map(out, ranks, file) != CO_OK) {
        close(file);
        return co_error_status();
    }
    *address = (co_shm_address){.process = getpid(),
                                .region = file,
                                .windows = (*out)->window_base ? (*out)->windows : -1,
                                .device = about.st_dev,
                                .inode = about.st_ino};
    return CO_OK;
}

static int join_open(int64_t process, int64_t number)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)process, (long long)number);
    return open(path, O_RDWR | O_CLOEXEC);
}

co_status co_shm_join(co_shm **out, const co_shm_address *address, int ranks)
{
    const int file = join_open(address->process, address->region);
    struct stat about = {0};

    *out = NULL;
    if (file < 0)
        return co_fail(CO_E_UNSUPPORTED, "cannot reach the memory of process %lld: %s",
                       (long long)address->process, strerror(errno));
    if (fstat(file, &about) != 0 || about.st_dev != address->device ||
        about.st_ino != address->inode) {
        close(file);
        return co_fail(CO_E_UNSUPPORTED, "process %lld is another one here",
                       (long long)address->process);
    }
    if (co_shm_map(out, ranks, file) != CO_OK) {
        close(file);
        return co_error_status();
    }
    co_shm_window_join(*out,
                       address->windows < 0 ? -1 : join_open(address->process, address->windows));
    if (address->windows < 0 || (*out)->window_base)
        return CO_OK;
    /* Offsets in windows would mean nothing here. */
    co_fail(CO_E_UNSUPPORTED, "cannot reach the windows of process %lld: %s",
            (long long)address->process, strerror(errno));
    co_shm_destroy(*out);
    *out = NULL;
    return CO_E_UNSUPPORTED;
}
