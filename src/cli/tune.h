/* tune.h - shared by the files of `cohort tune`. */
#ifndef CO_CLI_TUNE_H
#define CO_CLI_TUNE_H

#include "cli/cli.h"
#include "cli/plan.h"
#include "tune/search.h"

typedef struct tune_options {
    const char *output;
    int64_t ms; /* that a candidate is measured */
    bool json, apply, in_place, change_result, full;
    cli_list tries, set, plugins;
} tune_options;

/* What is searched, in the order of the search. */
typedef enum tune_axis_id {
    TUNE_LAYOUT, /* ranks, and threads of each */
    TUNE_BATCH,
    TUNE_BUCKET,
    TUNE_STRATEGY,
    TUNE_LOADER,
    TUNE_AXES
} tune_axis_id;

/* What a value does to what is learnt. */
typedef enum tune_effect {
    TUNE_SAME,     /* the same bits */
    TUNE_ROUNDING, /* the same sums in another order */
    TUNE_CHANGES   /* another result */
} tune_effect;

typedef struct tune_value {
    const char *text;  /* for people; "2 x 1" */
    const char *value; /* in a config; of TUNE_LAYOUT none */
    int64_t number;    /* ranks; samples of a step over all ranks; readers */
    int64_t threads;   /* of TUNE_LAYOUT; 0: a rank's share of the cores */
    double mib;        /* of TUNE_BUCKET; 0: auto */
    int effect;        /* tune_effect */
    co_choice choice;  /* of TUNE_STRATEGY */
    bool buckets;      /* of TUNE_STRATEGY: its steps exchange in buckets */
} tune_value;

typedef struct tune_axis {
    int n, usual; /* value[0] is the config's own */
    tune_value value[CO_TUNE_MAX_VALUES];
} tune_axis;

/* A key that gets another value. */
typedef struct tune_row {
    const char *key, *now, *proposed;
    int effect;  /* tune_effect */
    double gain; /* fraction; < 0: counted in the row before */
    const char *reason;
} tune_row;

#define TUNE_MAX_ROWS   8
#define TUNE_MAX_BYTES  6
#define TUNE_MAX_FAILED 8

/* From the point before to a faster one. */
typedef struct tune_step {
    co_tune_point point;
    double rate;
    int n;
    tune_row row[TUNE_MAX_ROWS];
} tune_step;

/* The last measurement with some ranks and threads. */
typedef struct tune_seen {
    double batch, step; /* seconds; 0: none yet */
} tune_seen;

typedef struct tune_job {
    const tune_options *options;
    const char *path;
    plan_options plan_options;
    plan_job plan; /* network, measured work, this machine as a cluster; its arena has all texts */
    tune_axis axis[TUNE_AXES];
    co_tune *search;  /* owned */
    int64_t readers;  /* that a rank has by default */
    int cores, links; /* links: sizes measured */
    size_t bytes[TUNE_MAX_BYTES];
    double seconds[TUNE_MAX_BYTES]; /* of a sum of so many bytes */
    uint64_t start_ns, searching_ns;
    double search_seconds;
    tune_seen seen[CO_TUNE_MAX_VALUES]; /* by TUNE_LAYOUT */
    bool batch_norm, terminal;
    const char *failed[TUNE_MAX_FAILED]; /* why candidates could not run */
    int n_failed;
    co_tune_point now;
    double now_rate;
    tune_step kept;    /* what keeps the result */
    tune_step changed; /* from there on, what changes it */
    const char *written;
} tune_job;

/* --- tune_axes.c --- */

/* The keys of --try, before anything is opened. */
co_status tune_axes_check(const tune_job *job);
/* Candidates of each axis, by the config, this machine and --try. */
co_status tune_axes_read(tune_job *job);
co_arena *tune_arena(const tune_job *job);

/* --- tune_point.c --- */

/* For the search: only values that keep the result are open. */
void tune_point_problem(co_tune_problem *out, const tune_job *job);
/* The --set of a point where it differs from the config; `out` has room for TUNE_MAX_ROWS + 1.
   False: the point cannot be had. */
bool tune_point_set(const char **out, const tune_job *job, const co_tune_point *point);

/* --- tune_measure.c --- */

/* The config as it is; kernels by batch, readers, sums by size. */
co_status tune_measure_machine(tune_job *job);
/* For co_tune_problem; `arg` is the job. */
co_status tune_measure_point(double *rate, void *arg, const co_tune_point *point, double effort);
void tune_shortlist(bool *take, void *arg, const co_tune_point *point, int axis);
/* By the model of `cohort plan`. */
bool tune_predict(co_prediction *out, const tune_job *job, const co_tune_point *point);
/* Whether another strategy could be faster at a point, even without what its compressor computes.
 */
bool tune_strategy_pays(const tune_job *job, const co_tune_point *point, int strategy);
/* Readers that keep up with a rank at a point, as a number that need not be whole; 0: not known. */
double tune_readers(const tune_job *job, const co_tune_point *point);

/* --- tune_rows.c --- */

/* The rows from one point to another. */
co_status tune_rows(tune_step *step, const tune_job *job, const co_tune_point *from,
                    const double *gain);

/* --- tune_print.c --- */

void tune_print(const tune_job *job);
co_status tune_print_json(const tune_job *job);

/* --- tune_apply.c --- */

/* Check where the config is going to be written, before anything is measured. */
co_status tune_apply_check(tune_job *job);
/* Write it, with what is applied. */
co_status tune_apply(tune_job *job);
bool tune_is_applied(const tune_job *job, const tune_step *step);

#endif
