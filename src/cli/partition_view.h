/* partition_view.h - an epoch's samples by rank and label, as text, CSV and a plot. */
#ifndef CO_CLI_PARTITION_VIEW_H
#define CO_CLI_PARTITION_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cohort/status.h>

typedef struct partition_view_rank {
    uint64_t samples; /* in the epoch */
    uint64_t most;    /* in one step, maximum */
    uint64_t idle;    /* steps without samples */
} partition_view_rank;

typedef struct partition_view {
    const char *data, *partition; /* borrowed: data set's name; partition's config text */
    const char *repeats, *drops;  /* borrowed: why samples repeat or are left out; NULL: they do
                                     not */
    uint64_t batch, steps;
    uint64_t count; /* samples in the data set */
    uint64_t taken; /* samples taken in the epoch */
    int ranks;
    int64_t classes; /* without labels 1, of all samples */
    bool has_labels;
    partition_view_rank *rank; /* (ranks) */
    uint64_t *label;           /* (ranks, classes) samples */
    uint32_t *uses;            /* (count): how often the epoch takes each sample */
} partition_view;

void partition_view_print(FILE *out, const partition_view *view);
/* Columns: rank,label,samples; the label is empty where samples have none. */
void partition_view_csv(FILE *out, const partition_view *view);
/* Draw stacked bars into `path` with gnuplot's `terminal`. */
co_status partition_view_draw(const char *path, const char *terminal, const partition_view *view);

#endif
