/* plan.h - shared by the files of `cohort plan`; `cohort tune` measures with it. */
#ifndef CO_CLI_PLAN_H
#define CO_CLI_PLAN_H

#include "cli/cli.h"
#include "plan/step.h"

typedef struct plan_options {
    const char *cluster, *profile_from, *ranks, *strategies, *batches, *html;
    int64_t global_batch, steps;
    int64_t skip; /* steps before those that count */
    bool json;
    cli_list set, plugins;
} plan_options;

/* What is planned. */
typedef struct plan_job {
    const plan_options *options;
    const char *path; /* of the config; borrowed */
    co_config *lists; /* owned: what the command line's lists are made of */
    co_config *file;  /* owned: the cluster's */
    cli_network net;
    co_cluster cluster;
    co_plan_work work;
    co_work_names names; /* owned */
    size_t n_choice, n_batch, n_ranks;
    co_choice *choice;     /* in the arena of `lists`, as `set` is */
    const co_value **item; /* of each choice, what it was read from */
    const char **set;      /* of each choice, for --set */
    double *batch;
    const int64_t *ranks;
    co_ints batches; /* that are given */
} plan_job;

#define PLAN_BATCH_MOST (1 << 24) /* samples of a rank, as `batch_per_rank` has it */

/* Strategies to compare by default. */
#define PLAN_STRATEGIES                                                                            \
    "sync, {name: sync, compress: bf16}, {name: sync, compress: topk}, {name: local, period: 16}"

/* --- plan.c --- */

/* Sizes of the network, the optimizer and the data; times come from elsewhere. */
co_status plan_read_network(plan_job *job);
/* Free what the job owns. */
void plan_close(plan_job *job);

/* --- plan_measure.c --- */

/* The work of a rank from short runs on this machine: with as many ranks as a node of the cluster
   has and this machine's cores allow, so that they compute under the same conditions; then on one
   rank for each choice that compresses. */
co_status plan_measure(plan_job *job);
/* The same of an earlier run; choices that compress are known if that run's strategy is theirs. */
co_status plan_read_profile(plan_job *job);

#endif
