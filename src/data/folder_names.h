/* folder_names.h - sorted names of a folder's entries, stored compactly: there may be millions. */
#ifndef CO_DATA_FOLDER_NAMES_H
#define CO_DATA_FOLDER_NAMES_H

#include <stddef.h>

#include <cohort/status.h>

/* Zero is empty. */
typedef struct co_names {
    char *text; /* owned: each name with its NUL */
    size_t used, room;
    size_t *start; /* owned: (n) offsets into text */
    size_t n, n_room;
} co_names;

typedef enum co_names_kind {
    CO_NAMES_FOLDERS,
    CO_NAMES_IMAGES,
    CO_NAMES_ANY_IMAGES,
    CO_NAMES_ARRAYS,
    CO_NAMES_TOKENS,
    CO_NAMES_TARS,
    CO_NAMES_PACKS
} co_names_kind;

/* Append the folder's entries of one kind, sorted by their bytes; symbolic links count as what they
   point to. Images are files whose names end in .jpg, .jpeg or .png, in any case; a folder among
   them is an error, unless any images are wanted. Arrays are files whose names end in .npy or
   .npy.gz. Tokens are files whose names end in .bin, but for a tokenizer's bytes.bin, tars those
   that end in .tar, packs those that end in .pack. Names that begin with a dot are skipped.
   CO_E_DATA naming the folder. */
co_status co_names_add(co_names *names, const char *folder, co_names_kind kind);
const char *co_names_get(const co_names *names, size_t i);
/* Index of a name among sorted names; names->n if it is not there. */
size_t co_names_find(const co_names *names, const char *name);
void co_names_free(co_names *names);

#endif
