/*
 * folder_names.c - list the entries of a folder.
 */
#include "data/folder_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/mem.h"
#include "text/tokenizer.h"

#define NAMES_FIRST 64

static co_status names_put(co_names *names, const char *name)
{
    const size_t length = strlen(name) + 1;

    if (names->room - names->used < length) {
        const size_t room = 2 * names->room + NAMES_FIRST * length;
        char *text = co_realloc(names->text, room, 1);

        if (!text)
            return CO_E_NOMEM;
        names->text = text;
        names->room = room;
    }
    if (names->n == names->n_room) {
        const size_t room = 2 * names->n_room + NAMES_FIRST;
        size_t *start = co_realloc(names->start, room, sizeof(*start));

        if (!start)
            return CO_E_NOMEM;
        names->start = start;
        names->n_room = room;
    }
    memcpy(names->text + names->used, name, length);
    names->start[names->n++] = names->used;
    names->used += length;
    return CO_OK;
}

static bool names_is_image(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static bool names_is_array(const char *name)
{
    const char *end = strstr(name, ".npy");

    return end && (!end[4] || strcmp(end + 4, ".gz") == 0);
}

static bool names_is_of(const char *name, co_names_kind kind)
{
    static const char *const endings[] = {
        [CO_NAMES_TOKENS] = ".bin", [CO_NAMES_TARS] = ".tar", [CO_NAMES_PACKS] = ".pack"};
    const char *dot = strrchr(name, '.');

    if (kind == CO_NAMES_ARRAYS)
        return names_is_array(name);
    if (kind == CO_NAMES_TOKENS && strcmp(name, CO_TOKENIZER_BYTES_FILE) == 0)
        return false; /* beside the tokens that it has made */
    return dot && strcmp(dot, endings[kind]) == 0;
}

/* Needs a stat for links, and on file systems that do not report the type of an entry. */
static bool names_is_folder(DIR *dir, const struct dirent *entry)
{
    struct stat info;

    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    return fstatat(dirfd(dir), entry->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

static co_status names_take(co_names *names, DIR *dir, const struct dirent *entry,
                            const char *folder, co_names_kind kind)
{
    bool is_folder;

    if (entry->d_name[0] == '.')
        return CO_OK;
    is_folder = names_is_folder(dir, entry);
    if (kind == CO_NAMES_FOLDERS)
        return is_folder ? names_put(names, entry->d_name) : CO_OK;
    if (kind == CO_NAMES_ARRAYS || kind == CO_NAMES_TOKENS || kind == CO_NAMES_TARS ||
        kind == CO_NAMES_PACKS)
        return !is_folder && names_is_of(entry->d_name, kind) ? names_put(names, entry->d_name)
                                                              : CO_OK;
    if (is_folder && kind == CO_NAMES_ANY_IMAGES)
        return CO_OK;
    if (is_folder)
        return co_fail(
            CO_E_DATA,
            "%s/%s: a folder within a class's folder; images belong directly into the latter",
            folder, entry->d_name);
    return names_is_image(entry->d_name) ? names_put(names, entry->d_name) : CO_OK;
}

static co_status names_read(co_names *names, DIR *dir, const char *folder, co_names_kind kind)
{
    for (;;) {
        const struct dirent *entry;

        errno = 0;
        entry = readdir(dir);
        if (!entry && errno)
            return co_fail(CO_E_DATA, "%s: %s", folder, strerror(errno));
        if (!entry)
            return CO_OK;
        CO_TRY(names_take(names, dir, entry, folder, kind));
    }
}

static int names_compare(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + *(const size_t *)a, (const char *)text + *(const size_t *)b);
}

co_status co_names_add(co_names *names, const char *folder, co_names_kind kind)
{
    const size_t before = names->n;
    DIR *dir = opendir(folder);
    co_status st;

    if (!dir)
        return co_fail(CO_E_DATA, "%s: %s", folder, strerror(errno));
    st = names_read(names, dir, folder, kind);
    closedir(dir);
    if (st == CO_OK && names->n > before)
        qsort_r(names->start + before, names->n - before, sizeof(*names->start), names_compare,
                names->text);
    return st;
}

const char *co_names_get(const co_names *names, size_t i)
{
    return names->text + names->start[i];
}

size_t co_names_find(const co_names *names, const char *name)
{
    size_t low = 0, end = names->n;

    while (low < end) {
        const size_t middle = low + (end - low) / 2;
        const int order = strcmp(co_names_get(names, middle), name);

        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            end = middle;
    }
    return names->n;
}

void co_names_free(co_names *names)
{
    co_free(names->text);
    co_free(names->start);
    *names = (co_names){0};
}
