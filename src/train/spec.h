/*
 * spec.h - the top level of a config: what to train, on which data, and how. Reads and checks keys
 * only.
 */
#ifndef CO_TRAIN_SPEC_H
#define CO_TRAIN_SPEC_H

#include <cohort/train.h>

#include "core/config.h"
#include "launch/on_failure.h"
#include "metrics/metrics.h"
#include "model/kernels.h"
#include "model/precision.h"
#include "state/best.h"
#include "state/save_policy.h"
#include "step/distributed.h"
#include "step/ema.h"
#include "train/run_device.h"

typedef struct co_spec {
    co_config *config; /* owned */
    const co_value *model, *layers, *loss, *init, *data, *partition, *test_partition, *optimizer,
        *schedule, *strategy;
    const co_value *freeze;  /* NULL: everything is trained */
    const co_value *plugins; /* files; the caller has loaded them, or rejects the config */
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
    const co_value *device_value;
    co_run_device device; /* of `device_value` */
    const co_value *kernels_value;
    co_kernels kernels; /* of `kernels_value` */
    const co_value *metrics_value;
    co_metric_set metrics; /* of `metrics_value` */
    int convolution;       /* co_spec_convolution */
    int log;               /* co_spec_log */
    int on_failure;        /* co_on_failure */
    int64_t max_restarts, max_seconds;
    bool evaluate, sync_batch_norm, recompute;
    const co_value *tensorboard_value;
    bool tensorboard;           /* from `tensorboard`: whether to write a file, and its tag names */
    int board_names;            /* co_board_names */
    int64_t board_images;       /* samples to show */
    int64_t board_histograms;   /* epochs between two; 0: none */
    int64_t evaluate_every;     /* epochs */
    const char *stop_metric;    /* of `stop_at` */
    double stop_unused;         /* target of the keys that are metrics; those are read elsewhere */
    co_stop_at stop;            /* of `stop_at` and `checkpoint.best` */
    const co_value *checkpoint; /* NULL: defaults */
    co_saver_policy saver;      /* of `checkpoint` */
} co_spec;

/* Algorithms that convolutions may use. */
typedef enum co_spec_convolution {
    CO_SPEC_CONVOLUTION_AUTO = 0,
    CO_SPEC_CONVOLUTION_DIRECT
} co_spec_convolution;

/* Which figures the console and metrics.jsonl show at the end of an epoch. */
typedef enum co_spec_log { CO_SPEC_LOG_RUN = 0, CO_SPEC_LOG_RANKS, CO_SPEC_LOG_LINES } co_spec_log;

extern const co_key co_spec_keys[];
/* The keys whose value is a map that belongs to no plugin, with the keys of that map; ends with
   NULL. */
typedef struct co_spec_map {
    const char *name;
    const co_key *keys;
} co_spec_map;
extern const co_spec_map co_spec_maps[];

/* Load a config file or text with --set and -n applied; checks all keys, including those of
   plugins. */
co_status co_spec_load(co_spec *out, const co_train_options *options);
/* The same, but CO_E_USAGE if a file of `plugins` is not loaded. For callers that use what the
   config names. */
co_status co_spec_open(co_spec *out, const co_train_options *options);
void co_spec_unload(co_spec *spec);
/* Compute threads of a rank. With shards the number comes from the config alone, because kernels
   may sum in another order with another number of threads. */
int co_spec_threads(const co_spec *spec);
/* Fails if there are fewer shards than ranks. */
co_status co_spec_check_ranks(const co_spec *spec, int ranks);
/* Optimizer, schedule and strategy. */
co_distributed_values co_spec_update(const co_spec *spec);
/* The network, of samples of this shape, without co_model_setup, its weights 0 (co_model_draw). */
co_status co_spec_create_model(co_model **out, const co_spec *spec, const co_shape *sample,
                               int64_t classes);
/* Samples per step over all ranks. */
uint64_t co_spec_batch(const co_spec *spec, int ranks);
/* Samples that a rank computes at once, of the config's ranks: the most. */
uint64_t co_spec_part(const co_spec *spec);
/* Name of the model in reports: "mnist-net", or "layers". */
const char *co_spec_model_name(const co_spec *spec);
const char *co_spec_precision_name(const co_spec *spec);
const char *co_spec_strategy_name(const co_spec *spec);
/* Name of a plugin value; `otherwise` if it is NULL. */
const char *co_spec_plugin_name(const co_value *value, const char *otherwise);
/* The resolved config as YAML. The caller frees it with co_free. */
co_status co_spec_write_text(char **out, const co_spec *spec);
/* Set `kernels` to a value in flow YAML. */
co_status co_spec_set_kernels(co_spec *spec, const char *text);
/* Take those that a resolved config has measured, if `spec` wants them to be measured. */
co_status co_spec_take_kernels(bool *taken, co_spec *spec, const char *config);
/* Value as flow YAML in the config's arena, for functions that take text; NULL for NULL. */
co_status co_spec_text(const char **out, const co_spec *spec, const co_value *value);

#endif
