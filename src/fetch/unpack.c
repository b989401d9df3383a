/*
 * unpack.c - a tar.gz to a folder, by libarchive, which is opened when it is needed. Untrusted
 * input.
 *
 * libarchive reads; what is written is decided here: plain files and folders below one folder.
 */
#include "fetch/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "core/text.h"
#include "fetch/put.h"

#define UNPACK_MAX_PATH    4096
#define UNPACK_MAX_ENTRIES 1000000
#define UNPACK_BLOCK       ((size_t)1 << 17)

typedef struct unpack_library {
    struct archive *(*open)(void);
    int (*gzip)(struct archive *);
    int (*tar)(struct archive *);
    int (*file)(struct archive *, const char *name, size_t block);
    int (*next)(struct archive *, struct archive_entry **entry);
    const char *(*name)(struct archive_entry *);
    __LA_MODE_T (*type)(struct archive_entry *);
    const char *(*link)(struct archive_entry *);
    __LA_SSIZE_T (*read)(struct archive *, void *out, size_t n);
    const char *(*why)(struct archive *);
    int (*free)(struct archive *);
} unpack_library;

typedef struct unpack {
    unpack_library library;
    struct archive *in;
    const char *archive, *folder;
    uint64_t done, max, entries;
    const co_get_progress *progress;
    char *block; /* owned: (UNPACK_BLOCK) */
} unpack;

static co_status unpack_open_library(unpack_library *out)
{
    void *library = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL);
    const struct {
        void *function;
        const char *name;
    } names[] = {{&out->open, "archive_read_new"},
                 {&out->gzip, "archive_read_support_filter_gzip"},
                 {&out->tar, "archive_read_support_format_tar"},
                 {&out->file, "archive_read_open_filename"},
                 {&out->next, "archive_read_next_header"},
                 {&out->name, "archive_entry_pathname"},
                 {&out->type, "archive_entry_filetype"},
                 {&out->link, "archive_entry_hardlink"},
                 {&out->read, "archive_read_data"},
                 {&out->why, "archive_error_string"},
                 {&out->free, "archive_read_free"}};

    if (!library)
        return co_fail(CO_E_UNSUPPORTED, "libarchive is not on this machine (libarchive.so.13); "
                                         "install it (Debian: libarchive13)");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *function = dlsym(library, names[i].name);

        if (!function)
            return co_fail(CO_E_UNSUPPORTED, "libarchive.so.13 is without %s", names[i].name);
        memcpy(names[i].function, &function, sizeof(function));
    }
    return CO_OK;
}

static co_status unpack_fail(const unpack *u, const char *name, const char *what)
{
    return co_fail(CO_E_DATA, "%s: entry '%s' %s", u->archive, CO_SHOW(name), what);
}

/* Whether every part of the name leads down. */
static bool unpack_is_below(const char *name)
{
    if (name[0] == '/')
        return false;
    while (*name) {
        const size_t n = strcspn(name, "/");

        if (n == 2 && name[0] == '.' && name[1] == '.')
            return false;
        name += n + (name[n] == '/');
    }
    return true;
}

static co_status unpack_copy(unpack *u, int fd, const char *path)
{
    for (;;) {
        const __LA_SSIZE_T n = u->library.read(u->in, u->block, UNPACK_BLOCK);

        if (n == 0)
            return CO_OK;
        if (n < 0)
            return co_fail(CO_E_DATA, "%s: %s", u->archive, u->library.why(u->in));
        u->done += (uint64_t)n;
        if (u->done > u->max)
            return co_fail(CO_E_DATA, "%s: unpacks to more than the %llu bytes that it may have",
                           u->archive, (unsigned long long)u->max);
        CO_TRY(u->progress->tick(u->progress->arg, "unpacking", u->done, 0));
        CO_TRY(co_fetch_put(fd, u->block, (size_t)n, path));
    }
}

static co_status unpack_file(unpack *u, char *path)
{
    char *slash = strrchr(path, '/');
    co_status st;
    int fd;

    *slash = '\0';
    CO_TRY(co_fs_mkdirs(path));
    *slash = '/';
    CO_TRY(co_open_fresh(&fd, path));
    st = unpack_copy(u, fd, path);
    if (close(fd) != 0 && st == CO_OK)
        st = co_fail(CO_E_IO, "%s: %s", path, strerror(errno));
    return st;
}

static co_status unpack_entry(unpack *u, struct archive_entry *entry)
{
    const char *name = u->library.name(entry);
    char path[UNPACK_MAX_PATH];

    if (!name || !name[0])
        return unpack_fail(u, "", "has no name");
    if (++u->entries > UNPACK_MAX_ENTRIES)
        return unpack_fail(u, name, "is one too many");
    if (!unpack_is_below(name))
        return unpack_fail(u, name, "leads out of the folder");
    if (snprintf(path, sizeof(path), "%s/%s", u->folder, name) >= (int)sizeof(path))
        return unpack_fail(u, name, "has too long a name");
    if (u->library.link(entry))
        return unpack_fail(u, name, "is a link");
    if (u->library.type(entry) == AE_IFDIR)
        return co_fs_mkdirs(path);
    if (u->library.type(entry) != AE_IFREG)
        return unpack_fail(u, name, "is neither a file nor a folder");
    if (co_fs_exists(path))
        return unpack_fail(u, name, "is there twice");
    return unpack_file(u, path);
}

static co_status unpack_all(unpack *u)
{
    const unpack_library *l = &u->library;

    if (l->gzip(u->in) != ARCHIVE_OK || l->tar(u->in) != ARCHIVE_OK ||
        l->file(u->in, u->archive, UNPACK_BLOCK) != ARCHIVE_OK)
        return co_fail(CO_E_DATA, "%s: %s", u->archive, l->why(u->in));
    for (;;) {
        struct archive_entry *entry;
        const int result = l->next(u->in, &entry);

        if (result == ARCHIVE_EOF)
            return CO_OK;
        if (result != ARCHIVE_OK)
            return co_fail(CO_E_DATA, "%s: %s", u->archive, l->why(u->in));
        CO_TRY(unpack_entry(u, entry));
    }
}

co_status co_unpack(const char *archive, const char *folder, uint64_t max,
                    const co_get_progress *progress)
{
    unpack u = {.archive = archive, .folder = folder, .max = max, .progress = progress};
    co_status st;

    CO_TRY(unpack_open_library(&u.library));
    u.in = u.library.open();
    u.block = co_calloc(UNPACK_BLOCK, 1);
    st = u.in && u.block ? unpack_all(&u) : co_fail(CO_E_NOMEM, "out of memory");
    if (u.in)
        u.library.free(u.in);
    co_free(u.block);
    return st;
}
