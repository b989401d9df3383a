/*
 * slow_disk.c - for LD_PRELOAD: reads and syncs of regular files take as long as on a slow disk,
 * SLOW_DISK_READ_US and SLOW_DISK_SYNC_US microseconds longer.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void slow_wait(const char *name, int fd)
{
    const char *text = getenv(name);
    const long us = text ? atol(text) : 0;
    const struct timespec time = {us / 1000000, us % 1000000 * 1000};
    struct stat info;

    if (us > 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        nanosleep(&time, NULL);
}

ssize_t read(int fd, void *buf, size_t nbytes)
{
    ssize_t (*next)(int, void *, size_t);

    *(void **)&next = dlsym(RTLD_NEXT, "read");
    slow_wait("SLOW_DISK_READ_US", fd);
    return next(fd, buf, nbytes);
}

int fsync(int fd)
{
    int (*next)(int);

    *(void **)&next = dlsym(RTLD_NEXT, "fsync");
    slow_wait("SLOW_DISK_SYNC_US", fd);
    return next(fd);
}
