/*
 * manifest.h - manifest.json of a checkpoint: what it is of, where in the run, which files, and
 * their checksums.
 *
 * A reader of untrusted bytes: whatever they are, it ends in a manifest that holds together or in
 * CO_E_DATA with one message. The numbers of the position belong to the caller, who names them in a
 * table; here they are only written and read.
 */
#ifndef CO_CHECKPOINT_MANIFEST_H
#define CO_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#define CO_MANIFEST_VERSION    1
#define CO_MANIFEST_NAME       "manifest.json"
#define CO_MANIFEST_MAX_BYTES  ((size_t)16 << 20)
#define CO_MANIFEST_MAX_FILES  8
#define CO_MANIFEST_MAX_ARRAYS 128
#define CO_MANIFEST_MAX_RANKS  1024
#define CO_MANIFEST_MAX_TEXT   64

/* A number in a struct, by its name in the file. */
typedef enum co_number_kind {
    CO_NUMBER_COUNT, /* uint64_t, below 2^63 */
    CO_NUMBER_REAL,  /* double; not finite: null */
    CO_NUMBER_FLAG,  /* bool */
    CO_NUMBER_REALS  /* an array of doubles; zeros at its end are left out */
} co_number_kind;

typedef struct co_number {
    const char *name; /* NULL ends the list */
    co_number_kind kind;
    size_t offset;
    bool optional; /* files of earlier versions lack it: left as it is */
    size_t n;      /* REALS: elements */
} co_number;

/* Which numbers a position has, and each rank's own part of it. */
typedef struct co_manifest_layout {
    const co_number *point, *rank;
    size_t point_size, rank_size; /* of the structs */
} co_manifest_layout;

typedef struct co_manifest_file {
    char name[CO_MANIFEST_MAX_TEXT]; /* beside the manifest; no '/' in it, no leading '.' */
    uint64_t bytes;
    char sha256[65];
} co_manifest_file;

typedef struct co_manifest_array {
    char name[CO_MANIFEST_MAX_TEXT];
    uint64_t copies; /* 1, or one per rank */
} co_manifest_array;

typedef struct co_manifest {
    char cohort[CO_MANIFEST_MAX_TEXT]; /* version that wrote it */
    char model[CO_MANIFEST_MAX_TEXT], dataset[CO_MANIFEST_MAX_TEXT], strategy[CO_MANIFEST_MAX_TEXT],
        precision[CO_MANIFEST_MAX_TEXT];
    uint64_t seed, ranks, train_samples, parameter_count;
    double test_accuracy; /* of these weights; NaN: not measured here, or not defined */
    char best_by[CO_MANIFEST_MAX_TEXT]; /* the metric by which the run finds its best checkpoint;
                                           "": accuracy, by a version that knew no other */
    double best_value;                  /* of these weights, likewise */
    int n_file, n_array;
    co_manifest_file file[CO_MANIFEST_MAX_FILES];
    co_manifest_array array[CO_MANIFEST_MAX_ARRAYS];
    char *config; /* owned; YAML, as resolved */
    void *point;  /* owned; a struct of the layout */
    void *rank;   /* owned; (ranks) */
} co_manifest;

/* FOLDER/manifest.json, checked in itself; the files are not looked at. */
co_status co_manifest_read(co_manifest *out, const char *folder, const co_manifest_layout *layout);
/* Whether FOLDER is of a later format version, which is no damage. */
bool co_manifest_is_newer(const char *folder);
/* The same from memory, the manifest's own checksum left aside; messages call the
   file `name`. */
co_status co_manifest_parse(co_manifest *out, const char *text, size_t size, const char *name,
                            const co_manifest_layout *layout);
co_status co_manifest_write(const co_manifest *manifest, const char *folder,
                            const co_manifest_layout *layout);
void co_manifest_free(co_manifest *manifest);

/* Takes FOLDER/name, which is written, into the list: size and checksum. */
co_status co_manifest_add_file(co_manifest *manifest, const char *folder, const char *name);
/* Every file of the list is there, with its size and checksum. */
co_status co_manifest_check_files(const co_manifest *manifest, const char *folder);
/* The same of one file alone, which the list must have. */
co_status co_manifest_check_file(const co_manifest *manifest, const char *folder, const char *name);
/* Whether the list has a file. */
bool co_manifest_has_file(const co_manifest *manifest, const char *name);

#endif
