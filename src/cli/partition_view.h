/* partition_view.h - an epoch's samples by rank and label, as text, as CSV and as a picture. */
#ifndef CO_CLI_PARTITION_VIEW_H
#define CO_CLI_PARTITION_VIEW_H

#include <stdint.h>
#include <stdio.h>

#include <cohort/status.h>

typedef struct partition_view_rank {
    uint64_t samples; /* in the epoch */
    uint64_t most;    /* in a step */
    uint64_t idle;    /* steps without samples */
} partition_view_rank;

typedef struct partition_view {
    const char *data, *partition; /* borrowed: name, config text */
    const char *repeats, *drops;  /* borrowed: why samples are; NULL: they are not */
    uint64_t batch, steps;
    uint64_t count; /* samples of the set */
    uint64_t taken; /* samples of the epoch */
    int ranks;
    int64_t classes;
    partition_view_rank *rank; /* (ranks) */
    uint64_t *label;           /* (ranks, classes) samples */
    uint32_t *uses;            /* (count): how often the epoch takes a sample */
} partition_view;

void partition_view_print(FILE *out, const partition_view *view);
/* rank,label,samples */
void partition_view_csv(FILE *out, const partition_view *view);
/* Stacked bars into `path`, by gnuplot and its `terminal`. */
co_status partition_view_draw(const char *path, const char *terminal, const partition_view *view);

#endif
