/*
 * telemetry.h - sinks of a run's figures: console and files. Only rank 0 has sinks.
 */
#ifndef CO_TELEMETRY_TELEMETRY_H
#define CO_TELEMETRY_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#include "metrics/metrics.h"
#include "telemetry/display.h"

/* Facts about the run, known before the first step. */
typedef struct co_run_info {
    const char *model, *strategy, *dataset, *transport, *backend, *precision;
    int ranks;
    bool under_mpi; /* mpiexec passes on what ranks print */
    uint64_t parameter_count, train_samples, test_samples, batch, steps_per_epoch, total_steps;
    uint64_t epochs;              /* 0: limited by steps only */
    int64_t classes;              /* of the data; 0: the network does not classify */
    bool learns_values;           /* regression: accuracies are NaN */
    uint64_t positions;           /* of a sample, if it is a sequence of tokens; else 0 */
    const char *train_at;         /* with a device: where samples are; NULL: without */
    const char *test_at;          /* likewise */
    const co_metric_set *metrics; /* of the config, borrowed; NULL: none */
    uint64_t first_step;          /* steps made before these ranks were started */
    double epoch_start_seconds;   /* train_seconds at the start of the epoch of their first step */
    double epoch_start_wait;      /* data_wait_seconds there */
    /* If these ranks replace others of the same run. */
    int restarts, resizes; /* so far: after a failure, for another number of ranks */
    const char *cause;     /* of this restart, with the lost rank; NULL: not a restart */
    int lost_rank;         /* -1: unknown */
    int cores, threads;    /* of this machine, for this process; of a rank */
} co_run_info;

/* A rank that others wait for. */
typedef struct co_straggler {
    int rank;
    double late; /* additional working time relative to the median of the others; at least 0.2 */
    double cost; /* fraction of the steps' time in which the others wait only for it */
} co_straggler;

/* A rank that waits for samples for at least this fraction of the training time is input-bound. */
#define CO_INPUT_BOUND 0.05

typedef enum co_event_kind {
    CO_EVENT_STEP,  /* after every step */
    CO_EVENT_EPOCH, /* after every epoch, with evaluation if there was one */
    CO_EVENT_END    /* after the last step and the last evaluation */
} co_event_kind;

/* One rank's figures of an epoch: training, the mean of its batches with equal weights; the test
   split, over its part of it. NaN if it had no samples. */
typedef struct co_rank_figures {
    double train_loss, train_accuracy, test_loss, test_accuracy;
} co_rank_figures;

/* Seconds of one rank since its process, or thread, began to train this run, on its main thread:
   the parts add up to `wall`, but for the rest: log lines, supervision, the final weights. Plain
   doubles, which ranks send to each other. */
typedef struct co_rank_times {
    double wall;
    double start;      /* from the start of the job to the first step */
    double data;       /* waiting for samples */
    double compute;    /* forward, backward, update, metrics */
    double exchange;   /* in the strategy, without the waits */
    double wait;       /* for other ranks */
    double evaluation; /* of the test split */
    double checkpoint; /* until training could continue */
    /* Parts of the above, or of other threads. */
    double update;       /* of compute: the optimizer */
    double core;         /* of all threads of the process: on a core, */
    double delayed;      /* and ready to run without one */
    double read;         /* of readers of training samples: busy, */
    double read_core;    /* on a core, */
    double read_delayed; /* and ready to run without one */
    double samples;      /* trained on */
} co_rank_times;

/* One step on this rank, over its own samples; NaN if it had none. */
typedef struct co_step_figures {
    double seconds, wait_seconds; /* including the wait for samples; only that wait */
    uint64_t samples;             /* of all ranks */
    double loss, accuracy, accuracy_top5;
} co_step_figures;

/* Loss, accuracy and speed of the last steps; NaN for no samples or no time. */
typedef struct co_recent_figures {
    uint64_t steps; /* number of these steps; 0: not due at this step */
    bool rank0;     /* loss, accuracy and reads are of rank 0 only; else of all ranks */
    double loss, accuracy, accuracy_top5; /* top5 < 0: 5 classes or fewer */
    double samples_per_second;            /* of all ranks */
    double read_samples_per_second, read_bytes_per_second;
} co_recent_figures;

/* The best evaluation: by the config's metric, by default accuracy or, if there is none, loss. */
typedef struct co_best_figures {
    uint64_t step, epoch; /* as in co_event; step 0: unknown, from an earlier version */
    double test_accuracy; /* -1: no evaluation; NaN: not defined */
    double test_loss;
    double test_metric[CO_METRICS_MAX]; /* of info->metrics */
} co_best_figures;

/* Why a run ended before its last step. */
typedef enum co_stop_reason {
    CO_STOP_NONE,
    CO_STOP_REACHED, /* a value of stop_at */
    CO_STOP_PATIENCE,
    CO_STOP_CALLBACK /* requested by the program's callback */
} co_stop_reason;

typedef struct co_event {
    co_event_kind kind;
    uint64_t epoch;            /* 0-based */
    uint64_t step;             /* updates made so far, over all epochs */
    uint64_t epoch_step;       /* updates made so far in this epoch */
    double wall_seconds;       /* since the start of the run */
    double train_seconds;      /* in training steps alone */
    double compute_seconds;    /* of rank 0 in the whole run: forward, backward, update */
    double sync_seconds;       /* likewise: in the strategy, waiting included */
    double samples_per_second; /* STEP: of the epoch so far; EPOCH: of the epoch; END: of the run */
    double step_seconds;       /* EPOCH: mean of a step */
    double lr;
    double loss_scale;                 /* of the next step; 0: none */
    uint64_t skipped_steps;            /* in the run so far, for overflow of gradients */
    co_step_figures last;              /* STEP */
    co_recent_figures recent;          /* STEP */
    double train_accuracy_top5;        /* as train_accuracy; < 0: 5 classes or fewer */
    double train_loss, train_accuracy; /* STEP: of rank 0's samples of the epoch so far; EPOCH, END:
                                          of the last epoch */
    bool has_test;
    double test_loss, test_accuracy, test_accuracy_top5; /* top5 < 0: 5 classes or fewer */
    /* EPOCH, END: of info->metrics, likewise. */
    double train_metric[CO_METRICS_MAX], test_metric[CO_METRICS_MAX];
    co_best_figures best;                              /* END: of all evaluations */
    double test_samples_per_second, test_step_seconds; /* EPOCH: likewise, of the evaluation */
    double data_wait_seconds; /* of rank 0 in the whole run: waiting for samples */
    uint64_t bad_samples; /* EPOCH, END: replaced samples in the last epoch, of all ranks and both
                             splits */
    uint64_t bytes_sent;  /* of rank 0 in the whole run */
    const co_rank_figures *rank; /* EPOCH: (ranks); NULL: not requested */
    const co_rank_times *times;  /* EPOCH, END: (ranks) */
    double gradient_norm;        /* STEP: of the last step, before clipping; NaN: not computed */
} co_event;

typedef struct co_sink_ops co_sink_ops;
typedef struct co_sink {
    const co_sink_ops *ops;
} co_sink;

/* Names of curves: Cohort's own, by step of the run; or those of scripts for ImageNet (Loss/train,
   Top1/val), by epoch, counted from 1. */
typedef enum co_board_names { CO_BOARD_COHORT = 0, CO_BOARD_IMAGENET } co_board_names;

/* What a run requests of its sinks. Borrowed until they are open. */
typedef struct co_sink_options {
    const char *run_dir;
    bool quiet;     /* nothing on standard output */
    bool lines;     /* on standard output, lines of steps instead of progress */
    uint64_t every; /* steps between two lines */
    bool tensorboard;
    co_board_names board_names;
    bool resumed; /* the run continues after `step`, which is `epoch_step` of its epoch */
    uint64_t step, epoch_step;
} co_sink_options;

struct co_sink_ops {
    const char *name;
    const char *summary;
    bool (*wanted)(const co_sink_options *options); /* NULL: always */
    co_status (*open)(co_sink **out, const co_run_info *info, const co_sink_options *options);
    co_status (*event)(co_sink *sink, const co_event *event);
    co_status (*show)(co_sink *sink, const co_display *display); /* NULL: ignored */
    void (*text)(co_sink *sink, const char *line); /* a line for people; NULL: ignored */
    /* The run has failed after `event`, for this reason; NULL: ignored. */
    co_status (*failed)(co_sink *sink, const co_event *event, const char *reason);
    void (*close)(co_sink *sink);
};

/* Flush standard output after printing. *failed says whether printing has failed, and on return
   whether either has. CO_OK also if the reader has exited (EPIPE), else CO_E_IO. */
co_status co_sink_flush_output(bool *failed);

/* Progress bar on a terminal, plain lines elsewhere, on stdout. */
extern const co_sink_ops co_sink_console;
/* Instead of it: a line every `every` steps, and at the first and last of an epoch. */
extern const co_sink_ops co_sink_lines;
/* `run_dir`/metrics.jsonl, one object per event; only those steps that have recent figures. */
extern const co_sink_ops co_sink_jsonl;
/* A new `run_dir`/events.out.tfevents.*; steps likewise. */
extern const co_sink_ops co_sink_tensorboard;

#define CO_MAX_SINKS 4 /* that a run can have */
/* NULL-terminated, in the order in which they get events: files first, so that what people see is
   already stored. */
extern const co_sink_ops *const co_sinks[];

/* Keep in `run_dir`/metrics.jsonl the events up to `step`, which is `epoch_step` of its epoch: a
   run that resumes after it writes later ones again. No effect if there is no such file. */
co_status co_sink_jsonl_cut(const char *run_dir, uint64_t step, uint64_t epoch_step);

/* `run_dir`/summary.json. */
typedef struct co_summary {
    const co_run_info *info;
    const co_event *last; /* END */
    const char *weights_sha256;
    uint64_t shards;        /* 0: auto */
    double reached_seconds; /* to the accuracy of stop_at; 0: not reached, or not requested */
    co_stop_reason stop_reason;
    const char *stop_metric; /* REACHED: which metric reached its value */
    double start_seconds;    /* from process start to the first step */
    const co_straggler *straggler;
    int n_straggler;
    const char *counts_name; /* key of the strategy's counts; NULL: none */
    const uint64_t *counts;  /* (n_counts) */
    size_t n_counts;
    uint64_t checkpoints, checkpoint_failures; /* made; not written because of a failure */
} co_summary;
co_status co_summary_write(const char *run_dir, const co_summary *summary);

#endif
