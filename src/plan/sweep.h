/* sweep.h - predictions for many numbers of ranks, batches and strategies, and the best of them. */
#ifndef CO_PLAN_SWEEP_H
#define CO_PLAN_SWEEP_H

#include "plan/step.h"

#define CO_SWEEP_RANKS 16384 /* to which curves are drawn, whatever the cluster has */

/* One strategy with one batch per rank, over numbers of ranks. */
typedef struct co_sweep_line {
    const co_choice *choice; /* borrowed */
    double batch;            /* of a rank; 0: the sweep's global batch over its ranks */
    size_t n;
    co_prediction *point; /* owned, rising by ranks; only those that are possible */
    const char *lacks;    /* where there is none: what the last number of ranks lacks */
} co_sweep_line;

typedef struct co_sweep {
    const co_cluster *cluster;
    const co_plan_work *work;
    double global_batch; /* 0: each rank has its own */
    int64_t each;        /* ranks of a node */
    size_t n_line;
    co_sweep_line *line; /* owned */
    /* Of those that the cluster has nodes and memory for; NULL: none. Into `line`. */
    const co_sweep_line *fastest_line, *cheapest_line;
    const co_prediction *fastest, *cheapest; /* shortest epoch; lowest price of an epoch */
} co_sweep;

/* Every choice with every batch. Numbers of ranks are 1, and a node's, doubled up to
   CO_SWEEP_RANKS, with the cluster's own; or those of `ranks`, in any order. */
typedef struct co_sweep_options {
    const co_cluster *cluster; /* borrowed, as all here */
    const co_plan_work *work;
    const co_choice *choice;
    size_t n_choice, n_batch, n_ranks;
    const double *batch; /* samples of a rank */
    const int64_t *ranks;
    double global_batch; /* 0, or kept as ranks grow, in place of `batch` */
} co_sweep_options;

co_status co_sweep_create(co_sweep *out, const co_sweep_options *options);
void co_sweep_fini(co_sweep *sweep);

/* Whether the cluster has the nodes, and these the memory. */
bool co_sweep_has(const co_sweep *sweep, const co_prediction *point);

/* ---- as text ---- */

/* What was measured, a table for each line, the best, and efficiency over ranks as a chart. */
void co_sweep_print(FILE *out, const co_sweep *sweep);
/* One JSON object. */
co_status co_sweep_print_json(FILE *out, const co_sweep *sweep);
/* A page with charts, one file that loads nothing. */
co_status co_sweep_write_page(const char *path, const co_sweep *sweep);

#endif
