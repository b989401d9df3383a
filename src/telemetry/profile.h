/*
 * profile.h - where time went: rows of kernels and of what is in no kernel, as JSON and as a table.
 *
 * Knows figures; not how they were measured.
 */
#ifndef CO_TELEMETRY_PROFILE_H
#define CO_TELEMETRY_PROFILE_H

#include <stdint.h>
#include <stdio.h>

#include <cohort/types.h>

#include "core/roof.h"

/* What a row is. */
typedef enum co_profile_kind {
    CO_PROFILE_FORWARD = 0, /* a kernel in the forward pass */
    CO_PROFILE_BACKWARD,
    CO_PROFILE_OTHER /* not in any kernel */
} co_profile_kind;

/* Without pointers: ranks send rows to each other. Seconds, flops and bytes are of one step. */
typedef struct co_profile_row {
    uint32_t kind;    /* co_profile_kind */
    uint32_t calls;   /* of one step, rounded up */
    char name[48];    /* "layer1.0.conv1"; of what is in no kernel: "wait for data" */
    char op[24];      /* "conv2d" */
    char backend[16]; /* "onednn" */
    char kernel[32];  /* the backend's own name for what it runs; "": it has none */
    co_shape shape;   /* of the result in forward, batch first */
    double seconds, min_seconds;
    double flops, bytes; /* of a kernel: co_work */
    uint32_t bf16;       /* whether it multiplies BF16 */
} co_profile_row;

/* One rank's rows. */
typedef struct co_profile {
    const char *title; /* borrowed: "mnist-net, batch 64, rank 0 of 2, steps 6 to 25" */
    int rank;
    uint64_t first_step, steps;
    bool alone;          /* each row was run by itself, again and again */
    double step_seconds; /* wall time of a step; with `alone`: of all rows in turn */
    co_roof roof;
    size_t n_row;
    const co_profile_row *row; /* borrowed */
} co_profile;

/* As much of the roof as it reaches, of 1, and what bounds it; 0 for what is in no kernel. */
double co_profile_reached(const char **bound, const co_profile *profile, const co_profile_row *row);
double co_profile_kernel_seconds(const co_profile *profile);
/* Operations of a step; and how much of the roof the whole step reaches, of 1: the minimum time of
   each kernel, over the time that the step took. */
double co_profile_flops(const co_profile *profile);
double co_profile_step_reached(const co_profile *profile);

/* The table, longest first, at most `most` kernels (0: all); fits 100 columns. */
co_status co_profile_print(FILE *out, const co_profile *profile, size_t most);
/* One line of JSON for each row, with `head` (members of an object, "\"bench\": \"ops\"") in each;
   and one for the whole step. */
co_status co_profile_print_lines(FILE *out, const co_profile *profile, const char *head);

/* The rank in one line: how much is in kernels, and what the longest of the rest is. */
co_status co_profile_print_rank(FILE *out, const co_profile *profile);

/* profile.json in a run directory: one object per rank. */
typedef struct co_profile_file co_profile_file;
co_status co_profile_file_create(co_profile_file **out, const char *model, uint64_t batch,
                                 int ranks);
co_status co_profile_file_add(co_profile_file *file, const co_profile *profile);
co_status co_profile_file_write(const co_profile_file *file, const char *dir);
/* Takes NULL. */
void co_profile_file_destroy(co_profile_file *file);

#endif
