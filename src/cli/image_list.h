/* image_list.h - the images that a command line means: files, folders, a list on standard input. */
#ifndef CO_CLI_IMAGE_LIST_H
#define CO_CLI_IMAGE_LIST_H

#include <stddef.h>

#include <cohort/status.h>

typedef struct cli_images {
    char **path; /* owned: (n) */
    size_t n, room;
} cli_images;

/* `argument` is a file; a folder: the images in it and in the folders below it, sorted; or "-": a
   file or folder on each line of standard input. CO_E_DATA for what does not exist, and for a
   folder without images. */
co_status cli_images_add(cli_images *list, const char *argument);
void cli_images_free(cli_images *list);

#endif
