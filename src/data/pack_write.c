/*
 * pack_write.c - writer for packed files: space for the header, records, index, names, and finally
 * the header itself.
 */
#include <errno.h>
#include <libdeflate.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/pack_format.h"
#include "data/pack_layout.h"

#define PACK_FIRST_ROOM 1024

struct co_pack_writer {
    co_atomic_file *file; /* owned */
    char *path;           /* owned */
    co_pack_head head;
    char *names; /* owned: each with its NUL; NULL: none */
    size_t names_size;
    co_pack_entry *entry; /* owned */
    size_t n, room;
    uint64_t at; /* bytes written */
};

static void pack_put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void pack_put64(uint8_t *at, uint64_t value)
{
    pack_put32(at, (uint32_t)value);
    pack_put32(at + 4, (uint32_t)(value >> 32));
}

static co_status pack_write(co_pack_writer *w, const void *bytes, size_t n)
{
    if (n > 0 && fwrite(bytes, 1, n, co_atomic_stream(w->file)) != n)
        return co_fail(CO_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
    w->at += n;
    return CO_OK;
}

static co_status pack_copy_names(co_pack_writer *w, const char *const *class_name)
{
    size_t at = 0;

    for (uint32_t c = 0; c < w->head.classes; c++)
        w->names_size += strlen(class_name[c]) + 1;
    w->names = co_calloc(w->names_size, 1);
    if (!w->names)
        return CO_E_NOMEM;
    for (uint32_t c = 0; c < w->head.classes; c++) {
        const size_t n = strlen(class_name[c]) + 1;

        memcpy(w->names + at, class_name[c], n);
        at += n;
    }
    return CO_OK;
}

static co_status pack_start(co_pack_writer *w, const char *path, const char *const *class_name)
{
    static const uint8_t room[PACK_HEAD];

    w->path = co_strdup(path);
    if (!w->path)
        return CO_E_NOMEM;
    if (w->head.classes < 1 || w->head.classes > PACK_MAX_CLASSES)
        return co_fail(CO_E_USAGE, "%s: cannot pack %u classes; 1 to %d are possible", path,
                       w->head.classes, PACK_MAX_CLASSES);
    if (class_name)
        CO_TRY(pack_copy_names(w, class_name));
    CO_TRY(co_atomic_open(&w->file, path));
    return pack_write(w, room, sizeof(room));
}

co_status co_pack_writer_open(co_pack_writer **out, const char *path, const co_pack_head *head,
                              const char *const *class_name)
{
    co_pack_writer *w = co_calloc(1, sizeof(*w));
    co_status st;

    if (!w)
        return CO_E_NOMEM;
    w->head = *head;
    for (size_t s = 0; s < CO_PACK_SPLITS; s++)
        w->head.count[s] = 0;
    st = pack_start(w, path, class_name);
    if (st != CO_OK) {
        co_pack_writer_discard(w);
        return st;
    }
    *out = w;
    return CO_OK;
}

co_status co_pack_writer_add(co_pack_writer *w, co_split split, uint32_t label,
                             const co_bytes *record)
{
    if (record->n == 0 || record->n > UINT32_MAX)
        return co_fail(CO_E_DATA, "%s: cannot pack a record of %zu bytes", w->path, record->n);
    if (w->n == w->room) {
        const size_t room = 2 * w->room + PACK_FIRST_ROOM;
        co_pack_entry *entry = co_realloc(w->entry, room, sizeof(*entry));

        if (!entry)
            return CO_E_NOMEM;
        w->entry = entry;
        w->room = room;
    }
    w->entry[w->n++] = (co_pack_entry){w->at, (uint32_t)record->n, label,
                                       libdeflate_crc32(0, record->at, record->n)};
    w->head.count[split]++;
    return pack_write(w, record->at, record->n);
}

uint64_t co_pack_writer_at(const co_pack_writer *w)
{
    return w->at;
}

/* Write index and names; *checksum is that of both. */
static co_status pack_write_index(co_pack_writer *w, uint32_t *checksum)
{
    *checksum = 0;
    for (size_t i = 0; i < w->n; i++) {
        uint8_t bytes[PACK_ENTRY] = {0};

        pack_put64(bytes, w->entry[i].offset);
        pack_put32(bytes + PACK_ENTRY_SIZE, w->entry[i].size);
        pack_put32(bytes + PACK_ENTRY_LABEL, w->entry[i].label);
        pack_put32(bytes + PACK_ENTRY_CHECK, w->entry[i].checksum);
        *checksum = libdeflate_crc32(*checksum, bytes, sizeof(bytes));
        CO_TRY(pack_write(w, bytes, sizeof(bytes)));
    }
    if (w->names)
        *checksum = libdeflate_crc32(*checksum, w->names, w->names_size);
    return pack_write(w, w->names, w->names_size);
}

static co_status pack_write_head(co_pack_writer *w, uint64_t index, uint32_t checksum)
{
    uint8_t head[PACK_HEAD] = {0};
    const uint64_t size = w->at;

    memcpy(head, PACK_MAGIC, 8);
    pack_put32(head + PACK_VERSION, CO_PACK_VERSION);
    pack_put32(head + PACK_ENCODED, w->head.encoded);
    pack_put32(head + PACK_CHANNELS, w->head.channels);
    pack_put32(head + PACK_HEIGHT, w->head.height);
    pack_put32(head + PACK_WIDTH, w->head.width);
    pack_put32(head + PACK_CLASSES, w->head.classes);
    for (size_t s = 0; s < CO_PACK_SPLITS; s++)
        pack_put64(head + PACK_COUNT + 8 * s, w->head.count[s]);
    pack_put64(head + PACK_INDEX, index);
    pack_put64(head + PACK_NAMES, w->names_size);
    pack_put64(head + PACK_SIZE, size);
    pack_put32(head + PACK_INDEX_CHECK, checksum);
    pack_put32(head + PACK_HEAD_CHECK, libdeflate_crc32(0, head, PACK_HEAD_CHECK));
    if (fseek(co_atomic_stream(w->file), 0, SEEK_SET) != 0)
        return co_fail(CO_E_IO, "%s: cannot write: %s", w->path, strerror(errno));
    CO_TRY(pack_write(w, head, sizeof(head)));
    w->at = size;
    return CO_OK;
}

co_status co_pack_writer_commit(uint64_t *size, co_pack_writer *w)
{
    const uint64_t index = w->at;
    uint32_t checksum;
    co_status st = pack_write_index(w, &checksum);

    if (st == CO_OK)
        st = pack_write_head(w, index, checksum);
    if (st == CO_OK) {
        st = co_atomic_commit(w->file);
        w->file = NULL;
    }
    *size = w->at;
    co_pack_writer_discard(w);
    return st;
}

void co_pack_writer_discard(co_pack_writer *w)
{
    if (!w)
        return;
    co_atomic_discard(w->file);
    co_free(w->names);
    co_free(w->entry);
    co_free(w->path);
    co_free(w);
}
