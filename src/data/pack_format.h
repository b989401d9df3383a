/*
 * pack_format.h - a packed data set: one file with the records of both splits, mapped into memory.
 *
 * docs/data.md has the layout, byte by byte.
 */
#ifndef CO_DATA_PACK_FORMAT_H
#define CO_DATA_PACK_FORMAT_H

#include <stdatomic.h>

#include <cohort/ext/dataset.h>

#define CO_PACK_VERSION 1
#define CO_PACK_SPLITS  2

/* What the header says. */
typedef struct co_pack_head {
    bool encoded;                     /* records are JPEG or PNG files; else C * H * W bytes */
    uint32_t channels, height, width; /* encoded: height and width are 0 */
    uint32_t classes;
    uint64_t count[CO_PACK_SPLITS]; /* records, by co_split */
} co_pack_head;

/* One record in the index. */
typedef struct co_pack_entry {
    uint64_t offset; /* in the file */
    uint32_t size;   /* bytes */
    uint32_t label;
    uint32_t checksum; /* CRC-32 as of gzip */
} co_pack_entry;

/* An open file; zero is closed. */
typedef struct co_pack {
    co_pack_head head;
    const uint8_t *bytes;         /* the whole file, borrowed from the map */
    const uint8_t *index;         /* entries of the training split, then those of the test split */
    const char **class_name;      /* (classes), owned; NULL: they have no names */
    atomic_uint_least32_t *known; /* a bit per record: its checksum was right; owned */
    const char *name;             /* of the file, borrowed */
    void *map;                    /* owned; NULL: parsed from memory */
    size_t map_size;
} co_pack;

/* `path` must outlive out. Header and index are checked here, records when they are read. CO_E_DATA
   naming the file. */
co_status co_pack_open(co_pack *out, const char *path);
/* The same from memory, which must outlive out; messages call it `name`. */
co_status co_pack_parse(co_pack *out, const uint8_t *bytes, size_t size, const char *name);
void co_pack_close(co_pack *pack);

co_pack_entry co_pack_entry_at(const co_pack *pack, co_split split, uint64_t i);
/* The bytes of a record, in place in the file. Its checksum is held against them the first
   time; CO_E_DATA. Thread-safe. */
co_status co_pack_record(co_bytes *out, const co_pack *pack, co_split split, uint64_t i);

/* Writes a file: records of the training split first. It appears under its name when it is complete
   and on the disk. */
typedef struct co_pack_writer co_pack_writer;
/* Of `head`, the counts are not looked at. `class_name` (classes) may be NULL; both are copied. */
co_status co_pack_writer_open(co_pack_writer **out, const char *path, const co_pack_head *head,
                              const char *const *class_name);
co_status co_pack_writer_add(co_pack_writer *writer, co_split split, uint32_t label,
                             const co_bytes *record);
/* Size of the file; frees `writer` whatever happens. */
co_status co_pack_writer_commit(uint64_t *size, co_pack_writer *writer);
/* Leaves no file; takes NULL. */
void co_pack_writer_discard(co_pack_writer *writer);

#endif
