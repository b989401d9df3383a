/*
 * step.h - what a step of N ranks takes on a cluster, term by term.
 */
#ifndef CO_PLAN_STEP_H
#define CO_PLAN_STEP_H

#include "plan/cluster.h"
#include "plan/stragglers.h"
#include "plan/work.h"

typedef enum co_choice_kind {
    CO_CHOICE_SYNC,
    CO_CHOICE_STALE,
    CO_CHOICE_LOCAL,
    CO_CHOICE_ONE_SHOT,
    CO_CHOICE_SHARED /* hogwild, ssp: weights that all ranks change in memory */
} co_choice_kind;

typedef enum co_choice_compress {
    CO_CHOICE_WHOLE,
    CO_CHOICE_HALF,
    CO_CHOICE_TOPK,
    CO_CHOICE_POWERSGD,
} co_choice_compress;

/* Who updates the weights: each rank all of them, or a part. */
typedef enum co_choice_update {
    CO_CHOICE_AUTO,
    CO_CHOICE_EACH,
    CO_CHOICE_PARTS,
    CO_CHOICE_ZERO
} co_choice_update;

/* A strategy as far as times depend on it. */
typedef struct co_choice {
    const char *title; /* borrowed; "local period=16" */
    int kind;          /* co_choice_kind */
    int compress;      /* co_choice_compress */
    double period, ratio, rank, min_compression, bucket_mib;
    int update; /* co_choice_update */
    bool error_feedback;
    bool one_host;     /* its ranks share memory */
    double post, take; /* seconds of a step on one rank: what the compressor computes */
    bool measured;     /* those two; false, too, for what has no model (CO_CHOICE_SHARED) */
} co_choice;

/* From the value of `strategy:`, which is borrowed; NULL: sync. CO_E_USAGE: a plugin from outside,
   of which nobody knows here when it waits and what it sends. */
co_status co_choice_read(co_choice *out, const co_value *value);

typedef enum co_plan_term {
    CO_TERM_COMPUTE,
    CO_TERM_EXCHANGE,
    CO_TERM_LOADING,
    CO_TERM_STRAGGLERS,
    CO_TERMS
} co_plan_term;
extern const char *const co_plan_terms[];

typedef struct co_prediction {
    int64_t ranks, nodes;
    double batch; /* samples of a rank */
    double step;  /* seconds: the sum of the terms */
    double term[CO_TERMS];
    double samples_per_second;
    double efficiency; /* to as many ranks that need not wait for each other */
    double epoch;      /* seconds; 0: unknown */
    double price;      /* of an epoch; 0: unknown */
    double wire;       /* bytes that a node sends in a step */
    double memory;     /* bytes of a rank */
    bool fits;         /* in the node's memory */
    int binds;         /* co_plan_term that is longest */
} co_prediction;

/* `ranks` on the cluster's nodes, full ones first, each with `batch` samples. False: the strategy
   needs memory that all ranks share, and they are on several nodes. */
bool co_plan_predict(co_prediction *out, const co_cluster *cluster, const co_plan_work *work,
                     const co_choice *choice, int64_t ranks, double batch);

/* Ranks of a node, for `threads` of each. */
int64_t co_plan_ranks_per_node(const co_cluster *cluster, int threads);

#endif
