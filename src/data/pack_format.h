/*
 * pack_format.h - a packed data set: one file with the records of both splits, mapped into memory.
 *
 * The layout, byte by byte, is in docs/data.md.
 */
#ifndef CO_DATA_PACK_FORMAT_H
#define CO_DATA_PACK_FORMAT_H

#include <stdatomic.h>

#include <cohort/ext/dataset.h>

#define CO_PACK_VERSION 1
#define CO_PACK_SPLITS  2

/* Contents of the header. */
typedef struct co_pack_head {
    bool encoded;                     /* records are JPEG or PNG files; else C * H * W bytes */
    uint32_t channels, height, width; /* encoded: height and width are 0 */
    uint32_t classes;
    uint64_t count[CO_PACK_SPLITS]; /* records, by co_split */
} co_pack_head;

/* Index entry of a record. */
typedef struct co_pack_entry {
    uint64_t offset; /* in the file */
    uint32_t size;   /* bytes */
    uint32_t label;
    uint32_t checksum; /* CRC-32 as of gzip */
} co_pack_entry;

/* An open file; zero is closed. */
typedef struct co_pack {
    co_pack_head head;
    const uint8_t *bytes;    /* the whole file, borrowed from the map */
    const uint8_t *index;    /* entries of the training split, then those of the test split */
    const char **class_name; /* owned: (classes); NULL if they have no names */
    atomic_uint_least32_t *verified; /* owned: a bit per record whose checksum was right */
    const char *name;                /* of the file, borrowed */
    void *map;                       /* owned; NULL if parsed from memory */
    size_t map_size;
} co_pack;

/* `path` must outlive out. Header and index are checked here, records when they are read. CO_E_DATA
   naming the file. */
co_status co_pack_open(co_pack *out, const char *path);
/* The same from memory, which must outlive out; messages call it `name`. */
co_status co_pack_parse(co_pack *out, const uint8_t *bytes, size_t size, const char *name);
void co_pack_close(co_pack *pack);

co_pack_entry co_pack_entry_at(const co_pack *pack, co_split split, uint64_t i);
/* The bytes of a record, in place in the file. The first read of a record verifies its checksum:
   CO_E_DATA. Thread-safe. */
co_status co_pack_record(co_bytes *out, const co_pack *pack, co_split split, uint64_t i);

/* Writes a file, training split first. It appears under its name when it is complete and synced. */
typedef struct co_pack_writer co_pack_writer;
/* `head`, whose counts are ignored, and `class_name` (classes; may be NULL) are copied. */
co_status co_pack_writer_open(co_pack_writer **out, const char *path, const co_pack_head *head,
                              const char *const *class_name);
co_status co_pack_writer_add(co_pack_writer *writer, co_split split, uint32_t label,
                             const co_bytes *record);
/* Bytes written, where the next record will begin. */
uint64_t co_pack_writer_at(const co_pack_writer *writer);
/* Complete the file; `size` is that of the file in bytes. Frees `writer` on failure, too. */
co_status co_pack_writer_commit(uint64_t *size, co_pack_writer *writer);
/* Discard the file and free `writer`; takes NULL. */
void co_pack_writer_discard(co_pack_writer *writer);

#endif
