/* dump.c - finds core dumps where core_pattern makes them files here; elsewhere there are none to
   check. */
#include "faults/dump.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DUMP_LIMIT ((rlim_t)1 << 30) /* bounds the damage of a broken dump */

void dump_allow(const char *dir)
{
    struct rlimit limit;

    if (chdir(dir) != 0 || getrlimit(RLIMIT_CORE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max < DUMP_LIMIT ? limit.rlim_max : DUMP_LIMIT;
    setrlimit(RLIMIT_CORE, &limit);
}

int dump_count(uint64_t *largest, const char *dir)
{
    DIR *folder = opendir(dir);
    struct dirent *e;
    int n = 0;

    *largest = 0;
    while (folder && (e = readdir(folder)) != NULL) {
        struct stat about;

        if (strncmp(e->d_name, "core", 4) != 0 || fstatat(dirfd(folder), e->d_name, &about, 0) != 0)
            continue;
        n++;
        *largest = (uint64_t)about.st_size > *largest ? (uint64_t)about.st_size : *largest;
    }
    if (folder)
        closedir(folder);
    return n;
}

uint64_t dump_shared_bytes(pid_t launcher)
{
    char path[64], name[64];
    uint64_t bytes = 0;
    struct dirent *e;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)launcher);
    folder = opendir(path);
    while (folder && (e = readdir(folder)) != NULL) {
        struct stat about;
        const ssize_t n = readlinkat(dirfd(folder), e->d_name, name, sizeof(name) - 1);

        name[n > 0 ? n : 0] = '\0';
        if (strstr(name, "memfd:cohort") && fstatat(dirfd(folder), e->d_name, &about, 0) == 0)
            bytes += (uint64_t)about.st_blocks * 512;
    }
    if (folder)
        closedir(folder);
    return bytes;
}
