/*
 * manifest.h - manifest.json of a checkpoint: what was trained, the position in the run, the files
 * and their checksums.
 *
 * Untrusted input: reading gives a consistent manifest, or CO_E_DATA with one message. The numbers
 * of a position are up to the caller, who lists them in a table.
 */
#ifndef CO_CHECKPOINT_MANIFEST_H
#define CO_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#define CO_MANIFEST_VERSION    1
#define CO_MANIFEST_NAME       "manifest.json"
#define CO_MANIFEST_MAX_BYTES  ((size_t)64 << 20)
#define CO_MANIFEST_MAX_FILES  8
#define CO_MANIFEST_MAX_ARRAYS 128
#define CO_MANIFEST_MAX_RANKS  16384
#define CO_MANIFEST_MAX_TEXT   64

/* Type of a number in a struct. */
typedef enum co_number_kind {
    CO_NUMBER_COUNT, /* uint64_t, below 2^63 */
    CO_NUMBER_REAL,  /* double; not finite: null */
    CO_NUMBER_FLAG,  /* bool */
    CO_NUMBER_REALS  /* an array of doubles; trailing zeros are left out */
} co_number_kind;

typedef struct co_number {
    const char *name; /* NULL ends the list */
    co_number_kind kind;
    size_t offset;
    bool optional; /* missing in files of earlier versions: the field is left as it is */
    size_t n;      /* REALS: elements */
} co_number;

/* The numbers of a position, and of each rank's own part of it. */
typedef struct co_manifest_layout {
    const co_number *point, *rank;
    size_t point_size, rank_size; /* of the structs */
} co_manifest_layout;

typedef struct co_manifest_file {
    char name[CO_MANIFEST_MAX_TEXT]; /* in the manifest's folder; no '/' in it, no leading '.' */
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
                                           "": accuracy, from a version without others */
    double best_value;                  /* of these weights, likewise */
    int n_file, n_array;
    co_manifest_file file[CO_MANIFEST_MAX_FILES];
    co_manifest_array array[CO_MANIFEST_MAX_ARRAYS];
    char *config; /* owned; YAML, as resolved */
    void *point;  /* owned; a struct of the layout */
    void *rank;   /* owned; (ranks) */
} co_manifest;

/* Read and check FOLDER/manifest.json; the files that it lists are not checked. */
co_status co_manifest_read(co_manifest *out, const char *folder, const co_manifest_layout *layout);
/* Whether FOLDER has a later format version, which is not damage. */
bool co_manifest_is_newer(const char *folder);
/* co_manifest_read from memory, without checking the manifest's own checksum; messages call the
   file `name`. */
co_status co_manifest_parse(co_manifest *out, const char *text, size_t size, const char *name,
                            const co_manifest_layout *layout);
/* Writes nothing that co_manifest_read would refuse for its size. */
co_status co_manifest_write(const co_manifest *manifest, const char *folder,
                            const co_manifest_layout *layout);
void co_manifest_free(co_manifest *manifest);

/* Add FOLDER/name, which is complete, to the list, with its size and checksum. */
co_status co_manifest_add_file(co_manifest *manifest, const char *folder, const char *name);
/* Check that every file of the list exists, with its size and checksum. */
co_status co_manifest_check_files(const co_manifest *manifest, const char *folder);
/* The same for one file, which must be in the list. */
co_status co_manifest_check_file(const co_manifest *manifest, const char *folder, const char *name);
/* Whether the list has a file. */
bool co_manifest_has_file(const co_manifest *manifest, const char *name);

#endif
