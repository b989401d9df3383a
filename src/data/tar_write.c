/* tar_write.c - ustar headers and padding. */
#include "data/tar_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/sha256.h"
#include "data/tar_read.h"

#define TAR_RECORD 10240 /* a tar file's size is a multiple of it, by tradition */

struct co_tar_writer {
    co_atomic_file *file; /* owned */
    char *path;           /* owned */
    uint64_t at;
    co_sha256 hash;
};

co_status co_tar_writer_open(co_tar_writer **out, const char *path)
{
    co_tar_writer *w = co_calloc(1, sizeof(*w));
    co_status st;

    if (!w)
        return CO_E_NOMEM;
    w->path = co_strdup(path);
    st = w->path ? co_atomic_open(&w->file, path) : CO_E_NOMEM;
    if (st != CO_OK) {
        co_tar_writer_discard(w);
        return st;
    }
    co_sha256_begin(&w->hash);
    *out = w;
    return CO_OK;
}

static co_status tar_put(co_tar_writer *w, const void *bytes, size_t n)
{
    if (n > 0 && fwrite(bytes, 1, n, co_atomic_stream(w->file)) != n)
        return co_fail(CO_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
    co_sha256_add(&w->hash, bytes, n);
    w->at += n;
    return CO_OK;
}

static co_status tar_pad(co_tar_writer *w, uint64_t to)
{
    static const uint8_t zeros[TAR_RECORD];
    const uint64_t over = w->at % to;

    return over ? tar_put(w, zeros, (size_t)(to - over)) : CO_OK;
}

/* Owner, group and time are zero: they say nothing of the data, and the same data shall give the
   same file. */
static void tar_header(char header[CO_TAR_BLOCK], const char *name, size_t n)
{
    unsigned sum = 0;

    memset(header, 0, CO_TAR_BLOCK);
    snprintf(header, 100, "%s", name);
    snprintf(header + 100, 8, "%07o", 0644U);
    snprintf(header + 108, 8, "%07o", 0U);
    snprintf(header + 116, 8, "%07o", 0U);
    snprintf(header + 124, 12, "%011llo", (unsigned long long)n);
    snprintf(header + 136, 12, "%011o", 0U);
    memset(header + 148, ' ', 8);
    header[156] = '0';
    snprintf(header + 257, 6, "ustar");
    memset(header + 263, '0', 2);
    for (size_t i = 0; i < CO_TAR_BLOCK; i++)
        sum += (uint8_t)header[i];
    snprintf(header + 148, 8, "%06o", sum);
}

co_status co_tar_writer_add(uint64_t *offset, co_tar_writer *w, const char *name, const void *bytes,
                            size_t n)
{
    char header[CO_TAR_BLOCK];

    tar_header(header, name, n);
    CO_TRY(tar_put(w, header, sizeof(header)));
    *offset = w->at;
    CO_TRY(tar_put(w, bytes, n));
    return tar_pad(w, CO_TAR_BLOCK);
}

co_status co_tar_writer_commit(uint64_t *size, uint8_t tag[CO_SHARD_TAG], co_tar_writer *w)
{
    static const uint8_t end[2 * CO_TAR_BLOCK];
    co_status st = tar_put(w, end, sizeof(end));

    if (st == CO_OK)
        st = tar_pad(w, TAR_RECORD);
    if (st == CO_OK) {
        st = co_atomic_commit(w->file);
        w->file = NULL;
    }
    *size = w->at;
    co_shard_tag_end(tag, &w->hash);
    co_tar_writer_discard(w);
    return st;
}

void co_tar_writer_discard(co_tar_writer *w)
{
    if (!w)
        return;
    co_atomic_discard(w->file);
    co_free(w->path);
    co_free(w);
}
