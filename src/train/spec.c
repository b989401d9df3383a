/*
 * spec.c - the top level of a config.
 *
 * Plugins read their own keys; here they are only passed on. Every error in a config must be found
 * here, before a rank starts.
 */
#include "train/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"
#include "core/thread.h"
#include "model/initial_weights.h"
#include "strategy/strategy.h"
#include "train/plugins.h"

static const char *const spec_shards[] = {"auto", NULL};
static const char *const spec_convolution[] = {"auto", "direct", NULL};
static const char *const spec_on_failure[] = {"stop", "shrink", "respawn", NULL};
static const char *const spec_log[] = {"run", "ranks", "lines", NULL};

#define SPEC(field) offsetof(co_spec, field)

const co_key co_spec_keys[] = {
    {"plugins", CO_KEY_VALUE, SPEC(plugins), "~", 0, 0, CO_KEY_TAKES("a file, or a list of files"),
     "shared objects whose optimizers, strategies, data sets, ... this config names"},
    {"model", CO_KEY_VALUE, SPEC(model), "~", 0, 0,
     CO_KEY_TAKES("a name of `cohort list models`, or {name: ..., key: value}"),
     "network: a name, or {name: ..., key: value}"},
    {"layers", CO_KEY_VALUE, SPEC(layers), "~", 0, 0,
     CO_KEY_TAKES("a list of layers of `cohort list ops`, each a name or {name: {key: value}}"),
     "network written out, instead of model"},
    {"loss", CO_KEY_VALUE, SPEC(loss), "~", 0, 0,
     CO_KEY_TAKES("a loss of `cohort list ops`, or {name: cross_entropy, label_smoothing: 0.1}"),
     "one of the losses of `cohort list ops`; by default what the last layer asks for"},
    {"init", CO_KEY_VALUE, SPEC(init), "~", 0, 0, CO_KEY_TAKES("a file, or a map of the keys"),
     "initial weights: a .safetensors file, or {weights: FILE, skip: [LAYER, ...]}; by default "
     "drawn"},
    {"freeze", CO_KEY_VALUE, SPEC(freeze), "~", 0, 0,
     CO_KEY_TAKES("a layer, or a list of them; patterns such as layer1.* and *.bias"),
     "layers and parameters that are not trained: names, or patterns such as layer1.* and *.bias"},
    {"data", CO_KEY_VALUE, SPEC(data), NULL, 0, 0,
     CO_KEY_TAKES("a name of `cohort list datasets`, or {name: ..., path: ..., key: value}"),
     "data set: a name, or {name: ..., path: ..., key: value}"},
    {"partition", CO_KEY_VALUE, SPEC(partition), "~", 0, 0,
     CO_KEY_TAKES("a kind of `cohort list partitions`, or {kind: ..., key: value}"),
     "how ranks share the data: global (default) or {kind: random, ratios: [...]}"},
    {"test_partition", CO_KEY_VALUE, SPEC(test_partition), "~", 0, 0, CO_KEY_TAKES("as partition"),
     "how ranks share the test split: by default equally; no total depends on it"},
    {"ranks", CO_KEY_INT, SPEC(ranks), "1", 1, 1024, NULL, "ranks to start; -n wins"},
    {"batch", CO_KEY_INT, SPEC(batch), "128", 1, 1 << 24, NULL, "samples per step over all ranks"},
    {"batch_per_rank", CO_KEY_INT, SPEC(batch_per_rank), "0", 0, 1 << 24, NULL,
     "samples per step of a rank instead: the batch grows with the ranks; 0: batch says it"},
    {"accumulate", CO_KEY_INT, SPEC(accumulate), "1", 1, 1 << 16, NULL,
     "micro-batches that a rank's samples of a step are cut into"},
    {"recompute", CO_KEY_BOOL, SPEC(recompute), "false", 0, 0, NULL,
     "compute the blocks of the network again in the backward pass instead of keeping their "
     "activations"},
    {"shards", CO_KEY_INT, SPEC(shards), "auto", 1, 1024, spec_shards,
     "shards that a batch is cut into whatever the ranks are, so that the bits do not depend on "
     "them; "
     "auto: one per rank"},
    {"epochs", CO_KEY_INT, SPEC(epochs), "10", 1, 1 << 24, NULL, "passes over the data"},
    {"max_steps", CO_KEY_INT, SPEC(max_steps), "0", 0, 1e15, NULL,
     "stop after this many steps; 0: after the epochs"},
    {"optimizer", CO_KEY_VALUE, SPEC(optimizer), "~", 0, 0,
     CO_KEY_TAKES("a name of `cohort list optimizers`, or {name: ..., lr: ..., key: value}"),
     "sgd (default), adam, ...: a name or {name: ..., lr: ...}"},
    {"schedule", CO_KEY_VALUE, SPEC(schedule), "~", 0, 0,
     CO_KEY_TAKES("a name of `cohort list schedules`, or {name: ..., key: value}"),
     "learning rate over time: constant (default), step, ..."},
    {"clip", CO_KEY_VALUE, SPEC(clip), "~", 0, 0, CO_KEY_TAKES("a map of the keys"),
     "gradient clipping: {norm: 1.0} or {value: 0.5}"},
    {"ema", CO_KEY_VALUE, SPEC(ema), "~", 0, 0,
     CO_KEY_TAKES("a map of the keys; {} is all defaults"),
     "moving average of the weights, to evaluate and keep: {decay: 0.999}"},
    {"strategy", CO_KEY_VALUE, SPEC(strategy), "~", 0, 0,
     CO_KEY_TAKES("a name of `cohort list strategies`, or {name: ..., key: value}"),
     "synchronization strategy of the ranks: sync (default)"},
    {"sync_batch_norm", CO_KEY_BOOL, SPEC(sync_batch_norm), "false", 0, 0, NULL,
     "statistics of batch norm over the batches of all ranks, at every step"},
    {"precision", CO_KEY_VALUE, SPEC(precision_value), "fp32", 0, 0,
     CO_KEY_TAKES("a level, or a map of the keys"),
     "half precision in a step: fp32 (none), bf16, O0 to O3, or {level: O2, dtype: bf16, ...}"},
    {"seed", CO_KEY_INT, SPEC(seed), "1234", 0, 9e15, NULL, "of weights, order and dropout"},
    {"device", CO_KEY_VALUE, SPEC(device_value), "~", 0, 0,
     CO_KEY_TAKES("cpu, cuda, auto, or a map of the keys"),
     "where ranks train: cpu (default), cuda, auto, or {name: cuda, index: 0}"},
    {"backend", CO_KEY_STRING, SPEC(backend), "auto", 0, 0, NULL,
     "kernels: auto, or one of `cohort list kernels`"},
    {"kernels", CO_KEY_VALUE, SPEC(kernels_value), "~", 0, 0, CO_KEY_TAKES("a map of the keys"),
     "which kernel runs each layer: by a fixed rule, or the fastest: {choice: measured}"},
    {"convolution", CO_KEY_CHOICE, SPEC(convolution), "auto", 0, 0, spec_convolution,
     "auto: also Winograd's algorithm, where it is faster; direct: never"},
    {"threads", CO_KEY_INT, SPEC(threads), "0", 0, 1024, NULL,
     "compute threads of a rank; 0: its share of the cores"},
    {"loader", CO_KEY_VALUE, SPEC(loader), "~", 0, 0, CO_KEY_TAKES("a map of the keys"),
     "reading ahead: {threads: 1, depth: 4}"},
    {"evaluate", CO_KEY_BOOL, SPEC(evaluate), "true", 0, 0, NULL,
     "measure the test split after every epoch"},
    {"metrics", CO_KEY_VALUE, SPEC(metrics_value), "~", 0, 0,
     CO_KEY_TAKES("a name of `cohort list metrics`, or a list of them such as [mae, r2]"),
     "what is measured besides loss and accuracy, in every epoch: [mae, r2]"},
    {"evaluate_every", CO_KEY_INT, SPEC(evaluate_every), "1", 1, 1 << 24, NULL,
     "epochs from one such measurement to the next; the last epoch has one always"},
    {"stop_at", CO_KEY_VALUE, SPEC(stop_at), "~", 0, 0, CO_KEY_TAKES("a map of the keys"),
     "end the run when the test split is this good, or gets no better: {accuracy: 0.75, patience: "
     "5}"},
    {"checkpoint", CO_KEY_VALUE, SPEC(checkpoint), "~", 0, 0,
     CO_KEY_TAKES("a time as `every` has it, off, or a map of the keys"),
     "what is kept to resume from: {every: 1 epoch, keep: 3, best: true}, or off"},
    {"log", CO_KEY_CHOICE, SPEC(log), "run", 0, 0, spec_log,
     "figures of an epoch: of the whole run alone, or also of each rank; or lines of steps"},
    {"log_every", CO_KEY_INT, SPEC(log_every), "50", 1, 1 << 30, NULL,
     "steps between step events in metrics.jsonl"},
    {"tensorboard", CO_KEY_VALUE, SPEC(tensorboard_value), "false", 0, 0,
     CO_KEY_TAKES("true, false, or a map of the keys"),
     "write events.out.tfevents.* into the run directory, which TensorBoard reads"},
    {"timeout", CO_KEY_INT, SPEC(timeout_s), "300", 1, 1 << 20, NULL,
     "longest wait for another rank, in seconds"},
    {"on_failure", CO_KEY_CHOICE, SPEC(on_failure), "stop", 0, 0, spec_on_failure,
     "when a rank dies: stop the run, shrink it by one rank, or respawn the rank"},
    {"max_restarts", CO_KEY_INT, SPEC(max_restarts), "3", 0, 1000, NULL,
     "times that on_failure lets the ranks start again"},
    {"max_seconds", CO_KEY_INT, SPEC(max_seconds), "0", 0, 1e9, NULL,
     "stop in good order after this time; 0: no limit"},
    CO_KEYS_END,
};

static const co_key spec_clip_keys[] = {
    {"norm", CO_KEY_REAL, SPEC(clip_norm), "0", 0, 1e30, NULL,
     "largest norm of the whole gradient; 0: no limit"},
    {"value", CO_KEY_REAL, SPEC(clip_value), "0", 0, 1e30, NULL,
     "largest absolute value of an element; 0: no limit"},
    CO_KEYS_END,
};

static const co_key spec_loader_keys[] = {
    {"threads", CO_KEY_INT, SPEC(loader_threads), "-1", -1, 64, NULL,
     "threads of a rank that read; 0: read between steps; -1: one, or one per core where images "
     "are decoded, or none where samples are in memory and the rank has one core"},
    {"depth", CO_KEY_INT, SPEC(loader_depth), "4", 1, 1024, NULL, "batches read ahead"},
    CO_KEYS_END,
};

static const co_key spec_ema_keys[] = {
    {"decay", CO_KEY_REAL, SPEC(ema_options.decay), "0.999", 0, 1, NULL,
     "share of the average that each of its updates keeps"},
    {"every", CO_KEY_INT, SPEC(ema_options.every), "1", 1, 1 << 24, NULL,
     "steps from one update of the average to the next"},
    {"warmup", CO_KEY_BOOL, SPEC(ema_options.warmup), "true", 0, 0, NULL,
     "update t keeps no more than (1 + t) / (10 + t): early weights are soon forgotten"},
    CO_KEYS_END,
};

static co_status spec_check_shards(const co_spec *spec)
{
    if (spec->shards && spec->batch_per_rank)
        return co_fail(CO_E_USAGE, "shards: the batch must not depend on the number of ranks, so "
                                   "batch_per_rank goes only with `shards: auto`; give batch");
    if (spec->shards && spec->sync_batch_norm)
        return co_fail(CO_E_USAGE, "sync_batch_norm: goes only with `shards: auto`; with shards "
                                   "the statistics of batch norm belong to a shard");
    return CO_OK;
}

static const char *const spec_board_names[] = {"cohort", "imagenet", NULL};

static const co_key spec_board_keys[] = {
    {"names", CO_KEY_CHOICE, SPEC(board_names), "cohort", 0, 0, spec_board_names,
     "of the figures: our own, or those of scripts for ImageNet, epoch by epoch"},
    {"images", CO_KEY_INT, SPEC(board_images), "8", 0, 64, NULL,
     "samples that are shown as the network sees them in its first epoch"},
    {"histograms", CO_KEY_INT, SPEC(board_histograms), "1", 0, 1 << 24, NULL,
     "epochs from one histogram of weights and gradients to the next; 0: none"},
    CO_KEYS_END,
};

static co_status spec_read_tensorboard(co_spec *spec, co_arena *arena)
{
    const co_value *value = spec->tensorboard_value;
    const char *text = value && value->kind == CO_VALUE_SCALAR ? value->text : "";

    spec->tensorboard = strcmp(text, "true") == 0 || (value && value->kind == CO_VALUE_MAP);
    if (spec->tensorboard || !value || strcmp(text, "false") == 0)
        return co_keys_read(spec, spec_board_keys, *text ? NULL : value, "tensorboard", arena);
    return co_value_fail(value, "tensorboard: expected true, false or {names: imagenet}");
}

static const co_key spec_stop_keys[] = {
    {"accuracy", CO_KEY_REAL, SPEC(stop_unused), "0", 0, 0, NULL,
     "test accuracy, as a fraction of 1; 0: none; so with each name of `metrics`"},
    {"loss", CO_KEY_REAL, SPEC(stop_unused), "0", 0, 1e30, NULL, "test loss, or lower; 0: none"},
    {"patience", CO_KEY_INT, SPEC(stop.patience), "0", 0, 1 << 24, NULL,
     "evaluations in a row without a better one; 0: any number"},
    {"metric", CO_KEY_STRING, SPEC(stop_metric), "~", 0, 0, NULL,
     "which `patience` waits for: accuracy (default), loss (of language models, and where there "
     "is no accuracy), or one of `metrics`"},
    CO_KEYS_END,
};

const co_spec_map co_spec_maps[] = {
    {"init", co_init_keys},
    {"clip", spec_clip_keys},
    {"ema", spec_ema_keys},
    {"precision", co_precision_keys},
    {"kernels", co_kernels_keys},
    {"loader", spec_loader_keys},
    {"stop_at", spec_stop_keys},
    {"checkpoint", co_saver_policy_keys},
    {"tensorboard", spec_board_keys},
    {"device", co_run_device_keys},
    {NULL, NULL},
};

/* Look up a metric that every evaluation of this config computes; `key` is the config key that
   names it. */
static co_status spec_watch(co_watched *out, co_spec *spec, const char *name, const char *key,
                            const co_value *value)
{
    const co_metric *metric = co_metric_find(name);

    if (!metric)
        return co_plugin_unknown(&co_metric_plugins, name, value, NULL);
    /* Those of sequences are always measured. */
    *out = (co_watched){metric, metric->sequences ? co_metric_set_include(&spec->metrics, metric)
                                                  : co_metric_set_find(&spec->metrics, name)};
    if (!metric->accumulate || out->at >= 0)
        return CO_OK;
    return co_value_fail(value, "%s: %s is not measured; name it in `metrics: [%s]` too", key, name,
                         name);
}

/* A key of stop_at that names a metric. */
static co_status spec_read_target(co_spec *spec, size_t i, double *value, co_arena *arena)
{
    const co_value *map = spec->stop_at;
    const bool bounded = strcmp(map->key[i], "accuracy") == 0 || strcmp(map->key[i], "loss") == 0;
    const co_key keys[] = {{map->key[i], CO_KEY_REAL, 0, "0", 0, bounded ? 1e30 : 0, NULL, NULL},
                           CO_KEYS_END};
    co_value one = *map;

    one.n = 1;
    one.item = &map->item[i];
    one.key = &map->key[i];
    CO_TRY(co_keys_read(value, keys, &one, "stop_at", arena));
    if (bounded && *value == 0)
        return CO_OK;
    spec->stop.target[spec->stop.n].value = *value;
    return spec_watch(&spec->stop.target[spec->stop.n++].of, spec, map->key[i], "stop_at",
                      map->item[i]);
}

/* Read the keys of stop_at that name metrics; `rest` gets the others. */
static co_status spec_read_targets(co_spec *spec, co_value *rest, co_arena *arena)
{
    const co_value *map = spec->stop_at;

    *rest = *map;
    rest->n = 0;
    rest->item = co_arena_alloc(arena, map->n + 1, sizeof(*rest->item));
    rest->key = co_arena_alloc(arena, map->n + 1, sizeof(*rest->key));
    if (!rest->item || !rest->key)
        return CO_E_NOMEM;
    for (size_t i = 0; i < map->n; i++) {
        double value;

        if (!co_metric_find(map->key[i])) {
            rest->item[rest->n] = map->item[i];
            rest->key[rest->n++] = map->key[i];
            continue;
        }
        if (spec->stop.n == CO_STOP_MAX_TARGETS)
            return co_value_fail(map, "stop_at: too many metrics");
        CO_TRY(spec_read_target(spec, i, &value, arena));
        if (strcmp(map->key[i], "accuracy") == 0 && value > 1)
            return co_value_fail(map,
                                 "stop_at: accuracy is a fraction above 0 and up to 1, such as "
                                 "0.75 for 75%%; got %g",
                                 value);
    }
    return CO_OK;
}

static co_status spec_read_stop(co_spec *spec, co_arena *arena)
{
    co_value rest;

    if (!spec->stop_at)
        return CO_OK;
    if (spec->stop_at->kind != CO_VALUE_MAP)
        return co_keys_read(spec, spec_stop_keys, spec->stop_at, "stop_at", arena);
    CO_TRY(spec_read_targets(spec, &rest, arena));
    CO_TRY(co_keys_read(spec, spec_stop_keys, &rest, "stop_at", arena));
    if (spec->stop_metric)
        CO_TRY(spec_watch(&spec->stop.awaited, spec, spec->stop_metric, "stop_at",
                          co_value_get(spec->stop_at, "metric")));
    if (spec->stop.n == 0 && spec->stop.patience == 0)
        return co_value_fail(spec->stop_at,
                             "stop_at: give it accuracy, a fraction above 0 such as 0.75, or "
                             "patience, evaluations without a better one such as 5, or loss");
    if (!spec->evaluate)
        return co_value_fail(spec->stop_at, "stop_at: nothing is measured with evaluate: false");
    return CO_OK;
}

static co_status spec_read(co_spec *spec, const co_train_options *options)
{
    co_arena *arena;

    if (options->config_path)
        CO_TRY(co_config_load(&spec->config, options->config_path));
    else
        CO_TRY(co_config_parse(&spec->config, options->config_text ? options->config_text : "",
                               options->config_text ? strlen(options->config_text) : 0, "config"));
    for (const char *const *set = options->set; set && *set; set++)
        CO_TRY(co_config_set(spec->config, *set));
    arena = co_config_arena(spec->config);
    CO_TRY(co_keys_read(spec, co_spec_keys, co_config_root(spec->config), "config", arena));
    CO_TRY(co_keys_read(spec, spec_clip_keys, spec->clip, "clip", arena));
    CO_TRY(co_keys_read(spec, spec_loader_keys, spec->loader, "loader", arena));
    CO_TRY(co_keys_read(spec, spec_ema_keys, spec->ema, "ema", arena));
    CO_TRY(co_metric_set_read(&spec->metrics, spec->metrics_value));
    CO_TRY(spec_read_stop(spec, arena));
    CO_TRY(spec_read_tensorboard(spec, arena));
    CO_TRY(co_precision_read(&spec->precision, spec->precision_value, arena));
    CO_TRY(co_run_device_read(&spec->device, spec->device_value, arena));
    CO_TRY(co_kernels_read(&spec->kernels, spec->kernels_value, arena));
    CO_TRY(co_saver_policy_read(&spec->saver, spec->checkpoint, arena));
    if (spec->saver.best_metric && !spec->evaluate)
        return co_value_fail(co_value_get(spec->checkpoint, "best"),
                             "checkpoint: best: nothing is measured with evaluate: false");
    if (spec->saver.best_metric)
        CO_TRY(spec_watch(&spec->stop.best, spec, spec->saver.best_metric, "checkpoint.best",
                          co_value_get(spec->checkpoint, "best")));
    if (options->ranks)
        spec->ranks = options->ranks;
    if (!spec->model == !spec->layers)
        return co_fail(CO_E_USAGE, "%s: give either `model: NAME` or `layers: [...]`",
                       options->config_path ? options->config_path : "config");
    return spec_check_shards(spec);
}

co_status co_spec_load(co_spec *out, const co_train_options *options)
{
    co_status st;

    memset(out, 0, sizeof(*out));
    st = spec_read(out, options);
    if (st != CO_OK)
        co_spec_unload(out);
    return st;
}

co_status co_spec_open(co_spec *out, const co_train_options *options)
{
    co_status st;

    CO_TRY(co_spec_load(out, options));
    st = co_plugins_check(out->plugins);
    if (st != CO_OK)
        co_spec_unload(out);
    return st;
}

void co_spec_unload(co_spec *spec)
{
    co_config_destroy(spec->config);
    memset(spec, 0, sizeof(*spec));
}

co_status co_spec_check_ranks(const co_spec *spec, int ranks)
{
    if (!spec->shards || ranks <= spec->shards)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "shards: %lld cannot occupy %d ranks; start at most %lld (-n), or raise shards, "
                   "which makes it another run",
                   (long long)spec->shards, ranks, (long long)spec->shards);
}

int co_spec_threads(const co_spec *spec)
{
    if (spec->threads)
        return (int)spec->threads;
    return spec->shards ? 1 : co_thread_cores();
}

co_distributed_values co_spec_update(const co_spec *spec)
{
    return (co_distributed_values){.optimizer = spec->optimizer,
                                   .schedule = spec->schedule,
                                   .strategy = spec->strategy,
                                   .precision = &spec->precision,
                                   .config = spec->config};
}

uint64_t co_spec_batch(const co_spec *spec, int ranks)
{
    return (uint64_t)(spec->batch_per_rank ? spec->batch_per_rank * ranks : spec->batch);
}

uint64_t co_spec_part(const co_spec *spec)
{
    const uint64_t among = (uint64_t)(spec->shards ? spec->shards : spec->ranks);
    const uint64_t parts = among * (uint64_t)spec->accumulate;

    return (co_spec_batch(spec, (int)spec->ranks) + parts - 1) / parts;
}

const char *co_spec_plugin_name(const co_value *value, const char *otherwise)
{
    const co_value *map;
    const char *name = otherwise;

    if (!value || co_value_plugin(&name, &map, value, "name") != CO_OK)
        return otherwise;
    return name;
}

const char *co_spec_strategy_name(const co_spec *spec)
{
    return co_spec_plugin_name(spec->strategy, CO_STRATEGY_DEFAULT);
}

const char *co_spec_model_name(const co_spec *spec)
{
    return co_spec_plugin_name(spec->model, "layers");
}

const char *co_spec_precision_name(const co_spec *spec)
{
    return spec->precision.name;
}

co_status co_spec_set_kernels(co_spec *spec, const char *text)
{
    CO_TRY(co_config_add_text(&spec->kernels_value, spec->config, text));
    return co_kernels_read(&spec->kernels, spec->kernels_value, co_config_arena(spec->config));
}

co_status co_spec_write_text(char **out, const co_spec *spec)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    co_status st;

    if (!stream)
        return co_fail(CO_E_NOMEM, "out of memory");
    st = co_keys_write(stream, spec, co_spec_keys, 0);
    return co_text_take(out, stream, &text, st);
}

co_status co_spec_text(const char **out, const co_spec *spec, const co_value *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream;
    co_status st;

    *out = NULL;
    if (!value)
        return CO_OK;
    stream = open_memstream(&text, &size);
    if (!stream)
        return co_fail(CO_E_NOMEM, "out of memory");
    st = co_value_write(stream, value);
    if (fclose(stream) != 0 && st == CO_OK)
        st = co_fail(CO_E_NOMEM, "out of memory");
    if (st == CO_OK) {
        *out = co_arena_strdup(co_config_arena(spec->config), text);
        st = *out ? CO_OK : CO_E_NOMEM;
    }
    free(text);
    return st;
}
