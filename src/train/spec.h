/*
 * spec.h - the top level of a config: what to train, on what, how. Reads and checks keys; runs
 * nothing.
 */
#ifndef CO_TRAIN_SPEC_H
#define CO_TRAIN_SPEC_H

#include <cohort/train.h>

#include "core/config.h"
#include "launch/on_failure.h"
#include "metrics/metrics.h"
#include "model/precision.h"
#include "state/best.h"
#include "state/save_policy.h"
#include "step/distributed.h"
#include "step/ema.h"

typedef struct co_spec {
    co_config *config; /* owned */
    const co_value *model, *layers, *loss, *init, *data, *partition, *test_partition, *optimizer,
        *schedule, *strategy;
    const co_value *freeze;  /* NULL: all is trained */
    const co_value *plugins; /* files; who reads the config has loaded them, or refuses it */
    const co_value *clip, *loader, *ema, *stop_at; /* NULL: defaults; no average */
    int64_t ranks, batch, batch_per_rank, accumulate, epochs, max_steps, seed, threads, timeout_s,
        log_every;
    int64_t loader_threads, loader_depth; /* of `loader` */
    double clip_norm, clip_value;         /* of `clip` */
    co_ema_options ema_options;
    const char *backend;
    int64_t shards; /* 0: auto */
    const co_value *precision_value;
    co_precision precision; /* of `precision_value` */
    const co_value *metrics_value;
    co_metric_set metrics; /* of `metrics_value` */
    int convolution;       /* co_spec_convolution */
    int log;               /* co_spec_log */
    int on_failure;        /* co_on_failure */
    int64_t max_restarts, max_seconds;
    bool evaluate, sync_batch_norm;
    const co_value *tensorboard_value;
    bool tensorboard;           /* of `tensorboard`: whether there is a file, and its names */
    int board_names;            /* co_board_names */
    int64_t evaluate_every;     /* epochs */
    const char *stop_metric;    /* of `stop_at` */
    double stop_unused;         /* of keys that are metrics, which are read otherwise */
    co_stop_at stop;            /* of `stop_at` and `checkpoint.best` */
    const co_value *checkpoint; /* NULL: defaults */
    co_saver_policy saver;      /* of `checkpoint` */
} co_spec;

/* Which algorithms convolutions may use. */
typedef enum co_spec_convolution {
    CO_SPEC_CONVOLUTION_AUTO = 0,
    CO_SPEC_CONVOLUTION_DIRECT
} co_spec_convolution;

/* Whose figures the console shows, and metrics.jsonl holds, at the end of an epoch. */
typedef enum co_spec_log { CO_SPEC_LOG_RUN = 0, CO_SPEC_LOG_RANKS, CO_SPEC_LOG_LINES } co_spec_log;

extern const co_key co_spec_keys[];
/* Of those keys the maps that are no plugin's, each with its keys; ended by a NULL. */
typedef struct co_spec_map {
    const char *name;
    const co_key *keys;
} co_spec_map;
extern const co_spec_map co_spec_maps[];

/* Config file or text, --set, -n; all keys checked, also those of the plugins. */
co_status co_spec_load(co_spec *out, const co_train_options *options);
/* The same for who uses what it names: CO_E_USAGE where a file of `plugins` is not loaded. */
co_status co_spec_open(co_spec *out, const co_train_options *options);
void co_spec_unload(co_spec *spec);
/* Compute threads of a rank. With shards their number is the config's alone, as kernels may add up
   in another order on another number of threads. */
int co_spec_threads(const co_spec *spec);
/* Whether the shards, if there are any, are enough for so many ranks. */
co_status co_spec_check_ranks(const co_spec *spec, int ranks);
/* Optimizer, schedule and strategy. */
co_distributed_values co_spec_update(const co_spec *spec);
/* Samples of a step over all of `ranks`. */
uint64_t co_spec_batch(const co_spec *spec, int ranks);
/* Name of the model for reports: "mnist-net", or "layers". */
const char *co_spec_model_name(const co_spec *spec);
const char *co_spec_precision_name(const co_spec *spec);
const char *co_spec_strategy_name(const co_spec *spec);
/* Name of a plugin value, `otherwise` for NULL. */
const char *co_spec_plugin_name(const co_value *value, const char *otherwise);
/* The whole config as resolved, as YAML. Caller frees with co_free. */
co_status co_spec_write_text(char **out, const co_spec *spec);
/* Value as flow YAML text in the config's arena, for the text-taking API; NULL for NULL. */
co_status co_spec_text(const char **out, const co_spec *spec, const co_value *value);

#endif
