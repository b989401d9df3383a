/*
 * cache_folder.c - folders of fetched sets: who may use them, and which go.
 *
 * A process holds a shared lock on the set that it uses. Who opens one or makes room holds that of
 * the whole folder, so no set goes while it is being opened.
 */
#include "data/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"

#define CACHE_USED_SIZE 4096 /* of the file with the count */
#define CACHE_BLOCK     512  /* unit of st_blocks */

static co_status cache_root(char out[PATH_MAX], const char *root)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;

    if (root)
        n = snprintf(out, PATH_MAX, "%s", root);
    else if (cache && cache[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/cohort/shards", cache);
    else if (home && home[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/.cache/cohort/shards", home);
    else
        return co_fail(CO_E_USAGE,
                       "neither XDG_CACHE_HOME nor HOME is set to a path; set data.cache "
                       "to a folder for what is fetched");
    if (n < 1 || n >= PATH_MAX)
        return co_fail(CO_E_USAGE, "data.cache: the path is empty or too long");
    return CO_OK;
}

static co_status cache_make_private(const char *path)
{
    struct stat info;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return co_fail(CO_E_IO, "%s: cannot make the folder: %s; set data.cache to another", path,
                       strerror(errno));
    if (lstat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return co_fail(CO_E_USAGE, "%s: is not a folder; set data.cache to one", path);
    if (info.st_uid != geteuid() || (info.st_mode & 077))
        return co_fail(CO_E_USAGE,
                       "%s: belongs to another user, or others may use it: chmod 700, or set "
                       "data.cache to another folder",
                       path);
    return CO_OK;
}

/* Folders above that are missing are made private, too: others keep things there that ask for it.
 */
static co_status cache_make_root(const char *root)
{
    const mode_t mask = umask(077);
    const co_status st = co_fs_mkdirs(root);

    umask(mask);
    CO_TRY(st);
    return cache_make_private(root);
}

/* The lock of the whole folder; closing *fd ends it. */
static co_status cache_lock(int *fd, const char *root)
{
    char path[PATH_MAX];

    CO_TRY(co_fs_join(path, sizeof(path), root, "lock"));
    CO_TRY(co_open_private(fd, path));
    while (flock(*fd, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(*fd);
            return co_fail(CO_E_IO, "%s: cannot lock: %s", path, strerror(errno));
        }
    return CO_OK;
}

static co_status cache_map_used(co_cache_folder *f)
{
    char path[PATH_MAX];
    co_status st = CO_OK;
    int fd;

    CO_TRY(co_fs_join(path, sizeof(path), f->root, "used"));
    CO_TRY(co_open_private(&fd, path));
    if (ftruncate(fd, CACHE_USED_SIZE) == 0)
        f->used = co_map(CACHE_USED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (!f->used)
        st = co_fail(CO_E_IO, "%s: %s", path, strerror(errno));
    close(fd);
    return st;
}

/* Under the lock of the whole folder. */
static co_status cache_enter(co_cache_folder *f)
{
    char path[PATH_MAX];

    CO_TRY(cache_make_private(f->path));
    CO_TRY(co_fs_join(path, sizeof(path), f->path, "lock"));
    CO_TRY(co_open_private(&f->lock, path));
    if (flock(f->lock, LOCK_SH | LOCK_NB) != 0)
        return co_fail(CO_E_IO, "%s: cannot lock: %s", path, strerror(errno));
    (void)futimens(f->lock, NULL); /* when it was last used */
    return cache_map_used(f);
}

co_status co_cache_folder_open(co_cache_folder *out, const char *root, const char id[CO_CACHE_ID],
                               uint64_t limit)
{
    co_status st;
    int lock;

    *out = (co_cache_folder){.lock = -1, .limit = limit};
    CO_TRY(cache_root(out->root, root));
    CO_TRY(co_fs_join(out->path, sizeof(out->path), out->root, id));
    CO_TRY(cache_make_root(out->root));
    CO_TRY(cache_lock(&lock, out->root));
    st = cache_enter(out);
    close(lock);
    if (st != CO_OK)
        co_cache_folder_close(out);
    return st;
}

/* Bytes on the disk of the files in a folder. */
static uint64_t cache_size(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    uint64_t size = 0;

    while (dir && (entry = readdir(dir)) != NULL) {
        struct stat info;

        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode))
            size += (uint64_t)info.st_blocks * CACHE_BLOCK;
    }
    if (dir)
        closedir(dir);
    return size;
}

/* A set that may go. */
typedef struct cache_set {
    char path[PATH_MAX];
    int lock; /* held: nobody uses it */
    struct timespec last;
    uint64_t size;
} cache_set;

/* Whether no process uses the set; its lock is held then. */
static bool cache_is_idle(cache_set *set)
{
    char path[PATH_MAX];
    struct stat info;

    if (co_fs_join(path, sizeof(path), set->path, "lock") != CO_OK ||
        co_open_private(&set->lock, path) != CO_OK)
        return false;
    if (flock(set->lock, LOCK_EX | LOCK_NB) == 0 && fstat(set->lock, &info) == 0) {
        set->last = info.st_mtim;
        return true;
    }
    close(set->lock);
    return false;
}

static bool cache_is_older(const cache_set *a, const cache_set *b)
{
    return a->last.tv_sec != b->last.tv_sec ? a->last.tv_sec < b->last.tv_sec
                                            : a->last.tv_nsec < b->last.tv_nsec;
}

/* The idle set that was last used longest ago, its lock held; false: there is none. `total`: bytes
   of all sets. */
static bool cache_find_oldest(cache_set *oldest, uint64_t *total, const co_cache_folder *f)
{
    static const char digits[] = "0123456789abcdef";
    DIR *dir = opendir(f->root);
    const struct dirent *entry;
    bool found = false;

    *total = 0;
    while (dir && (entry = readdir(dir)) != NULL) {
        cache_set set;

        if (strlen(entry->d_name) != CO_CACHE_ID - 1 ||
            strspn(entry->d_name, digits) != CO_CACHE_ID - 1 ||
            co_fs_join(set.path, sizeof(set.path), f->root, entry->d_name) != CO_OK)
            continue;
        set.size = cache_size(set.path);
        *total += set.size;
        if (strcmp(set.path, f->path) == 0 || !cache_is_idle(&set))
            continue;
        if (found && !cache_is_older(&set, oldest)) {
            close(set.lock);
            continue;
        }
        if (found)
            close(oldest->lock);
        *oldest = set;
        found = true;
    }
    if (dir)
        closedir(dir);
    return found;
}

co_status co_cache_folder_make_room(co_cache_folder *f, uint64_t wanted)
{
    const uint64_t own = cache_size(f->path), more = wanted > own ? wanted - own : 0;
    uint64_t total = 0;
    cache_set set;
    int lock;

    CO_TRY(cache_lock(&lock, f->root));
    while (cache_find_oldest(&set, &total, f)) {
        const bool goes = total > f->limit || more > f->limit - total;

        if (goes)
            co_fs_remove_folder(set.path);
        close(set.lock);
        if (!goes || co_fs_exists(set.path))
            break;
    }
    /* What others reserve right now and have not written is not counted: a few blocks. */
    atomic_store(f->used, total);
    close(lock);
    return CO_OK;
}

bool co_cache_folder_reserve(const co_cache_folder *f, uint64_t n)
{
    if (atomic_fetch_add(f->used, n) + n <= f->limit)
        return true;
    co_cache_folder_release(f, n);
    return false;
}

void co_cache_folder_release(const co_cache_folder *f, uint64_t n)
{
    (void)atomic_fetch_sub(f->used, n);
}

void co_cache_folder_close(co_cache_folder *f)
{
    if (f->used)
        munmap(f->used, CACHE_USED_SIZE);
    if (f->lock >= 0)
        close(f->lock);
    *f = (co_cache_folder){.lock = -1};
}
