/*
 * get.c - fetches a data set: its files from one mirror after the other, checked, unpacked, and
 * then renamed to what they are called.
 */
#include "fetch/get.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/open.h"
#include "core/sha256.h"
#include "core/text.h"
#include "fetch/md5.h"
#include "fetch/put.h"
#include "fetch/transfer.h"
#include "fetch/unpack.h"

#define GET_MAX_PATH 4096
#define GET_BLOCK    65536
#define GET_TRIES    8 /* of a connection that breaks, each of which brought something */
#define GET_PAUSE_US 500000
#define GET_MAX_WHY  2048
#define GET_UNPACKED "unpacked"

typedef struct get {
    const co_get_options *options;
    char folder[GET_MAX_PATH];  /* without slashes at its end */
    char staging[GET_MAX_PATH]; /* FOLDER.part */
    char why[GET_MAX_WHY];      /* what each mirror has answered */
} get;

static co_status get_hash(char md5[33], char sha256[65], const char *path)
{
    static const co_open_rule rule = {.status = CO_E_IO, .own = true};
    uint8_t block[GET_BLOCK];
    co_sha256 long_hash;
    co_md5 short_hash;
    FILE *file;
    size_t n;
    bool bad;

    CO_TRY(co_open_stream(&file, NULL, path, &rule));
    co_md5_begin(&short_hash);
    co_sha256_begin(&long_hash);
    while ((n = fread(block, 1, sizeof(block), file)) > 0) {
        co_md5_add(&short_hash, block, n);
        co_sha256_add(&long_hash, block, n);
    }
    bad = ferror(file) != 0;
    fclose(file);
    co_md5_end(md5, &short_hash);
    co_sha256_end(sha256, &long_hash);
    return bad ? co_fail(CO_E_IO, "%s: cannot be read", path) : CO_OK;
}

/* CO_E_DATA: the file is another one than was published. */
static co_status get_check(const co_catalog_file *file, const char *path, const char *where)
{
    char md5[33], sha256[65];

    CO_TRY(get_hash(md5, sha256, path));
    if (file->sha256 && strcmp(file->sha256, sha256) != 0)
        return co_fail(CO_E_DATA, "%s: its SHA-256 is %s, not the published %s", CO_SHOW(where),
                       sha256, file->sha256);
    if (file->md5 && strcmp(file->md5, md5) != 0)
        return co_fail(CO_E_DATA, "%s: its MD5 is %s, not the published %s", CO_SHOW(where), md5,
                       file->md5);
    return CO_OK;
}

static co_status get_copy_bytes(int to, FILE *from, const co_get_progress *progress,
                                const char *name, uint64_t size)
{
    uint8_t block[GET_BLOCK];
    uint64_t done = 0;
    size_t n;

    while ((n = fread(block, 1, sizeof(block), from)) > 0) {
        CO_TRY(co_fetch_put(to, block, n, name));
        done += n;
        CO_TRY(progress->tick(progress->arg, name, done, size));
    }
    return ferror(from) ? co_fail(CO_E_DATA, "%s: cannot be read", name) : CO_OK;
}

/* From a folder of this machine. */
static co_status get_copy(const get *g, const co_catalog_file *file, const char *from,
                          const char *path)
{
    const co_open_rule rule = {.status = CO_E_DATA, .max = file->max};
    uint64_t size;
    FILE *in;
    co_status st;
    int out;

    (void)unlink(path);
    CO_TRY(co_open_stream(&in, &size, from, &rule));
    st = co_open_fresh(&out, path);
    if (st == CO_OK) {
        st = get_copy_bytes(out, in, &g->options->progress, file->name, size);
        if (close(out) != 0 && st == CO_OK)
            st = co_fail(CO_E_IO, "%s: %s", path, strerror(errno));
    }
    fclose(in);
    return st == CO_OK ? get_check(file, path, from) : st;
}

static bool get_is_address(const char *from)
{
    return strstr(from, "://") != NULL;
}

/* What another mirror cannot help against. */
static bool get_is_final(co_status st)
{
    return st != CO_OK && st != CO_E_DATA;
}

/* From one address; a connection that breaks is taken up again as long as each try brings
   something, and a file that an earlier call began counts as long as it turns out right. */
static co_status get_transfer(const get *g, const co_catalog_file *file, const char *url,
                              const char *path)
{
    const co_transfer transfer = {url, path, file->max, &g->options->progress};
    bool begun = co_fs_exists(path), again;

    for (int tries = 0;; tries++) {
        co_status st = co_transfer_run(&again, &transfer);

        if (st == CO_OK)
            st = get_check(file, path, url);
        if (st == CO_OK || get_is_final(st))
            return st;
        if (again && tries < GET_TRIES) {
            co_clock_sleep_us(GET_PAUSE_US);
            continue;
        }
        (void)unlink(path);
        if (!begun)
            return st;
        begun = false; /* from its start, once */
    }
}

static co_status get_from(const get *g, const co_catalog_file *file, const char *from,
                          const char *path)
{
    char source[GET_MAX_PATH];

    if (co_fs_join(source, sizeof(source), from, file->name) != CO_OK)
        return co_fail(CO_E_USAGE, "%s: the address is too long", from);
    return get_is_address(from) ? get_transfer(g, file, source, path)
                                : get_copy(g, file, source, path);
}

static co_status get_file(get *g, const co_catalog_file *file)
{
    const co_catalog_set *set = g->options->set;
    const char *const own[CO_CATALOG_MAX_MIRRORS] = {g->options->from};
    const char *const *mirror = g->options->from ? own : set->mirror;
    char path[GET_MAX_PATH];

    CO_TRY(co_fs_join(path, sizeof(path), g->staging, file->name));
    if (co_fs_exists(path) && get_check(file, path, path) == CO_OK)
        return CO_OK; /* of an earlier call */
    g->why[0] = '\0';
    for (int i = 0; i < CO_CATALOG_MAX_MIRRORS && mirror[i]; i++) {
        const co_status st = get_from(g, file, mirror[i], path);
        const size_t n = strlen(g->why);

        if (st == CO_OK || get_is_final(st))
            return st;
        snprintf(g->why + n, sizeof(g->why) - n, "%s%s", n ? "; " : "", co_error_message());
    }
    return co_fail(CO_E_DATA, "data %s: %s", set->name, g->why);
}

/* Bytes are on the disk before the name is. */
static co_status get_publish(const char *from, const char *folder)
{
    const int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)syncfs(fd);
        close(fd);
    }
    if (rename(from, folder) != 0)
        return co_fail(CO_E_IO, "%s: %s", folder, strerror(errno));
    return CO_OK;
}

static co_status get_finish(const get *g)
{
    const co_get_options *o = g->options;
    char archive[GET_MAX_PATH], folder[GET_MAX_PATH], there[GET_MAX_PATH];

    if (!o->set->unpacked)
        return get_publish(g->staging, g->folder);
    CO_TRY(co_fs_join(archive, sizeof(archive), g->staging, o->set->file[0].name));
    CO_TRY(co_fs_join(folder, sizeof(folder), g->staging, GET_UNPACKED));
    CO_TRY(co_fs_join(there, sizeof(there), folder, o->set->there));
    co_fs_remove_folder(folder);
    CO_TRY(co_fs_mkdirs(folder));
    CO_TRY(co_unpack(archive, folder, o->set->unpacked, &o->progress));
    if (!co_fs_exists(there))
        return co_fail(CO_E_DATA, "%s: has no %s in it", o->set->file[0].name, o->set->there);
    return get_publish(folder, g->folder);
}

static co_status get_all(get *g)
{
    CO_TRY(co_fs_mkdirs(g->staging));
    for (size_t i = 0; i < g->options->set->n; i++)
        CO_TRY(get_file(g, &g->options->set->file[i]));
    return get_finish(g);
}

/* Only one process fetches a set. */
static co_status get_lock(int *lock, char path[GET_MAX_PATH], const char *folder)
{
    char parent[GET_MAX_PATH], *slash;

    if (snprintf(path, GET_MAX_PATH, "%s.lock", folder) >= GET_MAX_PATH)
        return co_fail(CO_E_USAGE, "%s: the path is too long", folder);
    snprintf(parent, sizeof(parent), "%s", folder);
    slash = strrchr(parent, '/');
    if (slash && slash > parent) {
        *slash = '\0';
        CO_TRY(co_fs_mkdirs(parent));
    } else {
        snprintf(parent, sizeof(parent), "%s", slash ? "/" : ".");
    }
    CO_TRY(co_open_lock(lock, path, parent));
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return CO_OK;
    close(*lock);
    return co_fail(CO_E_USAGE, "%s: another process is fetching it", folder);
}

static co_status get_name_folders(get *g)
{
    const char *folder = g->options->folder;
    size_t n = strlen(folder);

    while (n > 1 && folder[n - 1] == '/')
        n--;
    if (n == 0 || snprintf(g->folder, sizeof(g->folder), "%.*s", (int)n, folder) >= GET_MAX_PATH ||
        snprintf(g->staging, sizeof(g->staging), "%s.part", g->folder) >= GET_MAX_PATH)
        return co_fail(CO_E_USAGE, "%s: the path is too long, or empty", folder);
    return CO_OK;
}

co_status co_get(const co_get_options *options)
{
    get g = {.options = options};
    char lock_path[GET_MAX_PATH];
    co_status st;
    int lock;

    if (co_fs_exists(options->folder))
        return co_fail(CO_E_USAGE, "%s: is there; remove it to fetch it again", options->folder);
    CO_TRY(get_name_folders(&g));
    CO_TRY(get_lock(&lock, lock_path, g.folder));
    st = get_all(&g);
    if (st != CO_E_INTERRUPTED && st != CO_E_TERMINATED)
        co_fs_remove_folder(g.staging);
    (void)unlink(lock_path);
    close(lock);
    return st;
}
