/*
 * partition_file.c - parts listed in a text file, one line of samples per rank.
 *
 * For splits made by other programs, and for training on a subset: unlisted samples are not used.
 */
#include "core/fs.h"
#include "core/mem.h"
#include "data/partition.h"
#include "data/sample_lists.h"

/* Bytes: far more than any list needs. */
#define PARTITION_FILE_MAX ((size_t)1 << 30)

typedef struct partition_file {
    const char *path;
} partition_file;

static const co_key partition_file_keys[] = {
    {"path", CO_KEY_STRING, offsetof(partition_file, path), NULL, 0, 0, NULL,
     "text file: line r has the samples of rank r, such as `0-99, 205 207`"},
    CO_KEYS_END,
};

static co_status partition_file_cut(co_parts *out, const void *state,
                                    const co_sampler_options *options)
{
    const partition_file *self = state;
    uint8_t *text;
    size_t n;
    co_status st;

    CO_TRY(co_fs_read(&text, &n, self->path, PARTITION_FILE_MAX, CO_E_DATA));
    st = co_indices_parse(out->order, out->size, text, n, options->count, options->ranks,
                          self->path);
    co_free(text);
    return st;
}

const co_partition_ops co_partition_file = {
    .name = "file",
    .summary = "parts that a text file lists, one line of samples per rank",
    .keys = partition_file_keys,
    .self_size = sizeof(partition_file),
    .cut = partition_file_cut,
    .any_ranks = true,
    .drops = "the file does not name them",
};
