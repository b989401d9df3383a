/* image_list.c - files, folders and a list on standard input to the names of images. */
#include "cli/image_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "data/folder_names.h"

#define IMAGES_MAX_DEPTH 32   /* of folders in folders: links may lead round in a circle */
#define IMAGES_MAX_PATH  4096 /* bytes of a line */

static co_status images_push(cli_images *list, char *path)
{
    if (!path)
        return CO_E_NOMEM;
    if (list->n == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        char **grown = co_realloc(list->path, room, sizeof(*grown));

        if (!grown) {
            co_free(path);
            return CO_E_NOMEM;
        }
        list->path = grown;
        list->room = room;
    }
    list->path[list->n++] = path;
    return CO_OK;
}

static co_status images_add_folder(cli_images *list, const char *folder, int depth);

static co_status images_add_below(cli_images *list, const char *folder, int depth)
{
    co_names below = {0};
    co_status st = co_names_add(&below, folder, CO_NAMES_FOLDERS);

    for (size_t i = 0; st == CO_OK && i < below.n; i++) {
        char *path = co_fs_join_new(folder, co_names_get(&below, i));

        st = path ? images_add_folder(list, path, depth + 1) : CO_E_NOMEM;
        co_free(path);
    }
    co_names_free(&below);
    return st;
}

static co_status images_add_folder(cli_images *list, const char *folder, int depth)
{
    co_names files = {0};
    co_status st;

    if (depth > IMAGES_MAX_DEPTH)
        return co_fail(CO_E_DATA, "%s: more than %d folders deep; does a link lead round?",
                       CO_SHOW(folder), IMAGES_MAX_DEPTH);
    st = co_names_add(&files, folder, CO_NAMES_ANY_IMAGES);
    for (size_t i = 0; st == CO_OK && i < files.n; i++)
        st = images_push(list, co_fs_join_new(folder, co_names_get(&files, i)));
    co_names_free(&files);
    return st == CO_OK ? images_add_below(list, folder, depth) : st;
}

static co_status images_add_path(cli_images *list, const char *path)
{
    const size_t before = list->n;
    struct stat info;

    if (stat(path, &info) != 0)
        return co_fail(CO_E_DATA, "%s: %s", CO_SHOW(path), strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return images_push(list, co_strdup(path));
    CO_TRY(images_add_folder(list, path, 0));
    if (list->n == before)
        return co_fail(CO_E_DATA, "%s: holds no images (.jpg, .jpeg, .png)", CO_SHOW(path));
    return CO_OK;
}

static co_status images_add_lines(cli_images *list)
{
    char line[IMAGES_MAX_PATH];

    while (fgets(line, sizeof(line), stdin)) {
        const size_t n = strcspn(line, "\n");

        if (n + 1 == sizeof(line))
            return co_fail(CO_E_DATA, "standard input: a line of more than %d bytes: %s",
                           IMAGES_MAX_PATH - 2, CO_SHOW(line));
        line[n] = '\0';
        if (n > 0)
            CO_TRY(images_add_path(list, line));
    }
    return ferror(stdin) ? co_fail(CO_E_IO, "standard input: %s", strerror(errno)) : CO_OK;
}

co_status cli_images_add(cli_images *list, const char *argument)
{
    return strcmp(argument, "-") == 0 ? images_add_lines(list) : images_add_path(list, argument);
}

void cli_images_free(cli_images *list)
{
    for (size_t i = 0; i < list->n; i++)
        co_free(list->path[i]);
    co_free(list->path);
    *list = (cli_images){0};
}
