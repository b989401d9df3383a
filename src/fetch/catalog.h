/* catalog.h - data sets that can be had by name: their files, where these are, and their checksums.
 */
#ifndef CO_FETCH_CATALOG_H
#define CO_FETCH_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CO_CATALOG_MAX_MIRRORS 3

typedef struct co_catalog_file {
    const char *name;
    const char *md5, *sha256; /* as published; one may be NULL */
    uint64_t max;             /* bytes that it has at most */
} co_catalog_file;

typedef struct co_catalog_set {
    const char *name, *summary, *source;        /* `source`: who publishes the checksums */
    const char *config;                         /* "data: ..." once it is there; %s: its folder */
    const char *mirror[CO_CATALOG_MAX_MIRRORS]; /* addresses of the folder of the files */
    const co_catalog_file *file;                /* (n) */
    size_t n;
    uint64_t unpacked; /* bytes, at most, of the only file, a tar.gz; 0: files as they are */
    const char *there; /* a file or folder that it has when it is complete */
} co_catalog_set;

/* Ended by one without a name. */
extern const co_catalog_set co_catalog[];
/* NULL: there is none of that name. */
const co_catalog_set *co_catalog_find(const char *name);

#endif
