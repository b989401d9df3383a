/*
 * cache.c - compiled kernels, kept in the user's cache directory from run to run.
 *
 * A file's name has the hash of all that its code depends on, and its content begins with that and
 * the hash of the code: a damaged file is compiled again. Without a directory, or where another
 * user could write to it, kernels are compiled each time.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/mem.h"
#include "device/cuda/compile.h"

#define CACHE_PATH   1024
#define CACHE_ENDING ".cubin"
#define CACHE_FILES  64 /* more are not kept: the oldest goes */
#define CACHE_MAX    ((size_t)64 << 20)

typedef struct cache_head {
    uint64_t depends, code; /* hashes */
    uint64_t size;          /* of the code, which follows */
} cache_head;

/* The directory, made where it is missing; false: there is none to use. */
static bool cache_folder(char *out, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char above[CACHE_PATH - 64];
    struct stat st;
    int n = 0;

    if (cache && *cache == '/')
        n = snprintf(above, sizeof(above), "%s", cache);
    else if (home && *home == '/')
        n = snprintf(above, sizeof(above), "%s/.cache", home);
    if (n < 1 || (size_t)n >= sizeof(above) || co_fs_mkdirs(above) != CO_OK)
        return false;
    snprintf(out, size, "%s/cohort", above);
    if (mkdir(out, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(out, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

static bool cache_read(char **out, size_t *size, const char *path, uint64_t depends)
{
    const co_open_rule rule = {.status = CO_E_IO, .own = true, .max = CACHE_MAX};
    cache_head head;
    uint8_t *file = NULL;
    size_t bytes = 0;
    char *code;

    if (!co_fs_exists(path) || co_fs_read_as(&file, &bytes, path, &rule) != CO_OK)
        return false;
    code = bytes > sizeof(head) ? co_calloc(bytes - sizeof(head), 1) : NULL;
    if (code) {
        memcpy(&head, file, sizeof(head));
        *size = bytes - sizeof(head);
        memcpy(code, file + sizeof(head), *size);
        if (head.depends != depends || head.size != *size ||
            head.code != co_hash(CO_HASH, code, *size)) {
            co_free(code);
            code = NULL;
        }
    }
    co_free(file);
    *out = code;
    return code != NULL;
}

/* A file that cannot be written costs time in the next run, and nothing else. */
static void cache_write(const char *path, const char *code, size_t size, uint64_t depends)
{
    const cache_head head = {depends, co_hash(CO_HASH, code, size), size};
    co_atomic_file *file = NULL;
    FILE *stream;

    if (co_atomic_open(&file, path) != CO_OK)
        return;
    stream = co_atomic_stream(file);
    if (fwrite(&head, sizeof(head), 1, stream) == 1 && fwrite(code, 1, size, stream) == size)
        (void)co_atomic_commit(file);
    else
        co_atomic_discard(file);
}

/* Removes the oldest file while there are too many. */
static void cache_shrink(const char *folder)
{
    char path[CACHE_PATH + 300], oldest[sizeof(path)];
    const struct dirent *entry;
    struct stat st;
    time_t when = 0;
    int n = 0;
    DIR *dir = opendir(folder);

    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL) {
        const char *end = strrchr(entry->d_name, '.');

        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (!end || strcmp(end, CACHE_ENDING) != 0 || lstat(path, &st) != 0)
            continue;
        if (n++ == 0 || st.st_mtime < when) {
            when = st.st_mtime;
            memcpy(oldest, path, sizeof(oldest));
        }
    }
    closedir(dir);
    if (n > CACHE_FILES)
        (void)unlink(oldest);
}

co_status cuda_compile_once(char **out, size_t *size, const cuda_compiler *rtc, const char *name,
                            int arch)
{
    char folder[CACHE_PATH], path[CACHE_PATH + 64];
    int version[2] = {0, 0};
    uint64_t depends = cuda_sources_hash();

    if (!cache_folder(folder, sizeof(folder)) ||
        rtc->nvrtcVersion(&version[0], &version[1]) != NVRTC_SUCCESS)
        return cuda_compile(out, size, rtc, name, arch);
    depends = co_hash(depends, name, strlen(name));
    depends = co_hash(depends, version, sizeof(version));
    depends = co_hash(depends, &arch, sizeof(arch));
    snprintf(path, sizeof(path), "%s/%016llx" CACHE_ENDING, folder, (unsigned long long)depends);
    if (cache_read(out, size, path, depends))
        return CO_OK;
    CO_TRY(cuda_compile(out, size, rtc, name, arch));
    cache_write(path, *out, *size, depends);
    cache_shrink(folder);
    return CO_OK;
}
