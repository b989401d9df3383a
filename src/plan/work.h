/*
 * work.h - what a rank does in a step without the others: measured times, and the network's sizes.
 */
#ifndef CO_PLAN_WORK_H
#define CO_PLAN_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

/* Part of the backward pass: after it the gradient's elements up to `end` are final. */
typedef struct co_work_segment {
    double seconds;
    size_t end;
} co_work_segment;

/* A tensor of the store as a matrix, for compressors. */
typedef struct co_work_tensor {
    size_t rows, cols;
} co_work_tensor;

/* Times are seconds of a step of `batch` samples on a rank. */
typedef struct co_plan_work {
    const char *model, *source; /* borrowed; for people: "runs/x, 20 steps on 2 ranks" */
    size_t n;                   /* elements of the flat store, padding included */
    uint64_t n_weight;          /* those that are weights */
    size_t n_buffer;            /* running statistics */
    int n_state;                /* arrays of the optimizer */
    size_t n_tensor, n_segment;
    co_work_tensor *tensor;   /* owned */
    co_work_segment *segment; /* owned; in the order of backward; the last ends at n */
    double batch;
    double accumulate;        /* micro-batches of a step */
    double forward, backward; /* kernels, and what is between them */
    double fixed;             /* share of those that does not fall with the batch, 0 to 1 */
    double update;            /* clipping, optimizer, moving average */
    double rest;              /* of the loop, in every step: copies, metrics, log */
    double read;              /* of one reader for a sample; 0: unknown */
    double post, take;        /* of the strategy, waits included */
    double readers, depth;    /* of the loader; batches that it reads ahead */
    int ranks, threads;       /* of the run that was measured; of a rank */
    bool full;                /* it left no core free */
    size_t n_draw;
    double *draw;         /* owned; steps of that run over their mean, rising; or none */
    double activations;   /* bytes of a plan for each sample of a micro-batch */
    double sample_bytes;  /* of an input */
    double train_samples; /* of an epoch; 0: unknown */
    uint64_t shards;      /* 0: none */
} co_plan_work;

/* The names of the store's tensors, in its order, with the end of each; for the backward pass's
   segments. */
typedef struct co_work_names {
    size_t n;
    const char **name; /* "conv1.weight" */
    size_t *end;
} co_work_names;

/* Times from profile.json of a run directory, steps from its metrics.jsonl where each was logged,
   readers from its trace.json. `out` has the sizes already. CO_E_DATA: no profile, or damaged. */
co_status co_work_read(co_plan_work *out, const char *dir, const co_work_names *names);
/* Published times in place of measured ones; gradients become final evenly over the backward pass.
 */
co_status co_work_assume(co_plan_work *out, double samples_per_second, double batch,
                         double backward);
void co_work_fini(co_plan_work *work);

#endif
