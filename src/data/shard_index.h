/*
 * shard_index.h - where each sample of a sharded set is: in which shard, from which byte on, how
 * many bytes, its label and its checksum.
 *
 * The layout of the file, byte by byte, is in docs/data.md.
 */
#ifndef CO_DATA_SHARD_INDEX_H
#define CO_DATA_SHARD_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#define CO_SHARD_INDEX_NAME  "shards.index" /* beside the shards */
#define CO_SHARD_HEAD        128            /* bytes of the header */
#define CO_SHARD_TAG         32
#define CO_SHARD_MAX_SHARDS  100000
#define CO_SHARD_MAX_RECORD  (UINT32_C(256) << 20)
#define CO_SHARD_MAX_SIDE    65535
#define CO_SHARD_MAX_CLASSES 100000

/* What shards are, and what is in them. */
typedef struct co_shard_records {
    bool packed;                      /* packed files; else tar files, which have images as files */
    bool encoded;                     /* of packed files: images are files; else C * H * W bytes */
    uint32_t channels, height, width; /* of packed files; encoded: height and width are 0 */
} co_shard_records;

struct co_sha256;

typedef struct co_shard_entry {
    uint64_t offset; /* of the image's bytes in the shard */
    uint32_t size;   /* of it, in bytes */
    uint32_t label;
    uint32_t checksum; /* CRC-32 as of gzip, if the index has checksums */
    uint32_t shard;
} co_shard_entry;

/* A parsed index; zero is closed. All has been checked: entries are within their shards, labels
   below the classes. */
typedef struct co_shard_index {
    uint64_t samples;
    uint32_t shards, classes;
    bool checksums;
    co_shard_records records;
    const uint8_t *shard, *entry; /* in the bytes that were parsed, borrowed */
    const char **shard_name;      /* owned: (shards) plain names of files */
    const char **class_name;      /* owned: (classes); NULL: they have no names */
    const char *sample_names;
    uint32_t *sample_name; /* owned: (samples) offsets into sample_names; NULL: packed */
} co_shard_index;

/* How long the whole file is, by its first CO_SHARD_HEAD bytes. CO_E_DATA names the file. */
co_status co_shard_index_size(uint64_t *out, const uint8_t *head, const char *name);
/* `bytes` must outlive out. CO_E_DATA names the file. Free it in any case. */
co_status co_shard_index_parse(co_shard_index *out, const uint8_t *bytes, size_t size,
                               const char *name);
void co_shard_index_free(co_shard_index *index);

co_shard_entry co_shard_index_entry(const co_shard_index *index, uint64_t i);
uint64_t co_shard_index_shard_size(const co_shard_index *index, uint32_t shard);
/* CO_SHARD_TAG bytes that differ when the shard does: the SHA-256 of the file, or what a server
   says of its version. */
const uint8_t *co_shard_index_tag(const co_shard_index *index, uint32_t shard);
/* Of its image in the shard; NULL in packed files. */
const char *co_shard_index_name(const co_shard_index *index, uint64_t i);
/* NULL: it has none. */
const char *co_shard_index_class_name(const co_shard_index *index, int32_t label);

/* Makes the bytes of an index. Zero is empty. */
typedef struct co_shard_list {
    uint8_t *at; /* owned */
    size_t used, room;
} co_shard_list;

typedef struct co_shard_builder {
    co_shard_list shard, entry, shard_names, sample_names;
    uint32_t shards;
    uint64_t samples;
    uint32_t labels; /* one more than the highest label */
    co_shard_records records;
} co_shard_builder;

/* Shards are numbered as they are added. Samples of packed files have no name. */
co_status co_shard_builder_shard(co_shard_builder *builder, const char *name, uint64_t size,
                                 const uint8_t tag[CO_SHARD_TAG]);
co_status co_shard_builder_sample(co_shard_builder *builder, const co_shard_entry *entry,
                                  const char *name);
/* The file; `class_name` (classes) may be NULL. Free `out` with co_free. */
co_status co_shard_builder_finish(uint8_t **out, size_t *size, co_shard_builder *builder,
                                  uint32_t classes, const char *const *class_name, bool checksums);
void co_shard_builder_free(co_shard_builder *builder);
/* The SHA-256 of what has been added to `hash`. */
void co_shard_tag_end(uint8_t tag[CO_SHARD_TAG], struct co_sha256 *hash);

#endif
