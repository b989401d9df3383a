/*
 * profile.h - where the time of a step goes: rows for kernels and for the rest, as JSON and as a
 * table. Does not measure.
 */
#ifndef CO_TELEMETRY_PROFILE_H
#define CO_TELEMETRY_PROFILE_H

#include <stdint.h>
#include <stdio.h>

#include <cohort/types.h>

#include "core/roof.h"

/* Kind of a row. */
typedef enum co_profile_kind {
    CO_PROFILE_FORWARD = 0, /* a kernel in the forward pass */
    CO_PROFILE_BACKWARD,
    CO_PROFILE_OTHER /* not in any kernel */
} co_profile_kind;

/* Has no pointers, since ranks send rows to each other. Seconds, flops and bytes are per step. */
typedef struct co_profile_row {
    uint32_t kind;    /* co_profile_kind */
    uint32_t calls;   /* per step, rounded up */
    char name[48];    /* "layer1.0.conv1"; OTHER: "wait for data" */
    char op[24];      /* "conv2d" */
    char backend[16]; /* "onednn" */
    char kernel[96];  /* the backend's name of the kernel; "": it has none */
    co_shape shape;   /* of the output in the forward pass, batch first */
    double seconds, min_seconds;
    double flops, bytes; /* of a kernel, from co_work */
    uint32_t factors;    /* co_dtype of what it multiplies */
} co_profile_row;

/* One rank's rows. */
typedef struct co_profile {
    const char *title; /* borrowed: "mnist-net, batch 64, rank 0 of 2, steps 6 to 25" */
    int rank;
    uint64_t first_step, steps;
    bool alone;          /* each kernel was run alone, repeatedly */
    double step_seconds; /* wall time of a step; with `alone`: of all rows in turn */
    co_roof roof;
    size_t n_row;
    const co_profile_row *row; /* borrowed */
} co_profile;

/* The fraction of the roof that a row reaches, and what limits it; 0 for OTHER. */
double co_profile_reached(const char **bound, const co_profile *profile, const co_profile_row *row);
double co_profile_kernel_seconds(const co_profile *profile);
/* Operations of a step, and the fraction of the roof that it reaches: the kernels' minimum times
   over the time of the step. */
double co_profile_flops(const co_profile *profile);
double co_profile_step_reached(const co_profile *profile);

/* Print a table of 100 columns, longest first, at most `most` kernels (0: all). */
co_status co_profile_print(FILE *out, const co_profile *profile, size_t most);
/* Print a line of JSON for each row and one for the whole step, each with the members `head`, as in
   "\"bench\": \"ops\"". */
co_status co_profile_print_lines(FILE *out, const co_profile *profile, const char *head);

/* Print one line for the rank: the share of kernels, and the longest other row. */
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
