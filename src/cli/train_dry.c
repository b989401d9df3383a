/* train_dry.c - `cohort train --dry-run`: what a run would be, for people and as JSON. */
#include "cli/train_dry.h"

#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "core/plural.h"
#include "core/text.h"
#include "telemetry/format.h"
#include "train/dry_run.h"

#define DRY_TEXT 64

static const char *dry_count(char out[DRY_TEXT], uint64_t n)
{
    return co_format_count(out, DRY_TEXT, n);
}

static const char *dry_bytes(char out[DRY_TEXT], uint64_t n)
{
    return co_format_bytes(out, DRY_TEXT, n);
}

static const char *dry_seconds(char out[DRY_TEXT], double seconds)
{
    if (seconds < 1)
        snprintf(out, DRY_TEXT, "%.3g ms", seconds * 1e3);
    else
        co_format_seconds(out, DRY_TEXT, seconds);
    return out;
}

static void dry_print_run(const co_dry_run *run, const char *config)
{
    const co_dry_times *t = &run->times;
    char a[DRY_TEXT], b[DRY_TEXT], c[DRY_TEXT];

    printf("config       %s\n", CO_SHOW(config));
    printf("data         %s: %s training and %s test samples of %s, %" PRId64 " classes\n",
           CO_SHOW(run->dataset), dry_count(a, run->train_samples), dry_count(b, run->test_samples),
           co_shape_format(c, sizeof(c), &run->sample), run->classes);
    printf("read         %s samples all over both splits: readable\n",
           dry_count(a, run->read_samples));
    printf("model        %s, %s parameters\n", CO_SHOW(run->model), dry_count(a, run->parameters));
    printf("ranks        %d, strategy %s, %s sample%s a step, %s steps an epoch, %s in all\n",
           t->ranks, CO_SHOW(run->strategy), dry_count(a, t->batch), co_plural(t->batch),
           dry_count(b, t->steps_per_epoch), dry_count(c, t->total_steps));
}

static void dry_print_place(const co_dry_run *run)
{
    char a[DRY_TEXT], b[DRY_TEXT];

    printf("run dir      %s: may be written, needs up to %s, %s free\n",
           run->run_dir[0] ? CO_SHOW(run->run_dir) : "a new one in runs/",
           dry_bytes(a, run->needed_bytes), dry_bytes(b, run->free_bytes));
    if (run->resume == CO_RESUME_STATE)
        printf("resume       continues after step %s\n", dry_count(a, run->first_step));
    else if (run->resume == CO_RESUME_COMPLETE)
        printf("resume       the run is complete: there is nothing to train\n");
}

static void dry_print_layers(const co_dry_run *run)
{
    printf("\n%-24s %-14s %-12s %s\n", "layer", "op", "backend", "kernel");
    for (int i = 0; i < run->n_layer; i++)
        printf("%-24s %-14s %-12s %s\n", CO_SHOW(run->layer[i].name), run->layer[i].op,
               run->layer[i].backend, run->layer[i].kernel);
    putchar('\n');
}

static void dry_print_estimates(const co_dry_run *run)
{
    const co_dry_times *t = &run->times;
    char a[DRY_TEXT], b[DRY_TEXT], c[DRY_TEXT], d[DRY_TEXT];

    printf("memory       a rank: weights, gradients, optimizer %s; activations %s; resident %s\n",
           dry_bytes(a, run->store_bytes), dry_bytes(b, run->activation_bytes),
           dry_bytes(c, t->peak_bytes));
    printf("step         %s (%s to %s, %" PRIu64 " measured), %.3g samples/s\n",
           dry_seconds(a, t->step_seconds), dry_seconds(b, t->min_seconds),
           dry_seconds(c, t->max_seconds), t->steps, (double)t->batch / t->step_seconds);
    printf("epoch        %s", dry_seconds(a, run->epoch_seconds));
    if (t->evaluation_seconds > 0)
        printf(", %s of them evaluation", dry_seconds(b, t->evaluation_seconds));
    printf("\nrun          %s, start %s\n", dry_seconds(c, run->run_seconds),
           dry_seconds(d, t->start_seconds));
    printf("nothing was written; `cohort train` without --dry-run makes the run\n");
}

static json_t *dry_json_layers(const co_dry_run *run)
{
    json_t *list = json_array();

    for (int i = 0; i < run->n_layer; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s}", "name", CO_UTF8(run->layer[i].name), "op",
                            run->layer[i].op, "backend", run->layer[i].backend, "kernel",
                            run->layer[i].kernel));
    return list;
}

static json_t *dry_json_measured(const co_dry_run *run)
{
    const co_dry_times *t = &run->times;

    return json_pack(
        "{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "measured_steps",
        (json_int_t)t->steps, "step_seconds", t->step_seconds, "step_seconds_min", t->min_seconds,
        "step_seconds_max", t->max_seconds, "start_seconds", t->start_seconds, "data_wait_share",
        t->data_wait_share, "evaluation_seconds", t->evaluation_seconds, "epoch_seconds",
        run->epoch_seconds, "run_seconds", run->run_seconds, "store_bytes",
        (json_int_t)run->store_bytes, "activation_bytes", (json_int_t)run->activation_bytes,
        "peak_memory_bytes", (json_int_t)t->peak_bytes);
}

static json_t *dry_json_run(const co_dry_run *run, const char *config)
{
    static const char *const resume[] = {[CO_RESUME_FRESH] = "start",
                                         [CO_RESUME_STATE] = "resume",
                                         [CO_RESUME_COMPLETE] = "complete"};
    const co_dry_times *t = &run->times;

    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, "
                     "s:I, s:I}",
                     "config", CO_UTF8(config), "model", CO_UTF8(run->model), "dataset",
                     CO_UTF8(run->dataset), "strategy", CO_UTF8(run->strategy), "ranks", t->ranks,
                     "parameter_count", (json_int_t)run->parameters, "train_samples",
                     (json_int_t)run->train_samples, "test_samples", (json_int_t)run->test_samples,
                     "samples_read", (json_int_t)run->read_samples, "classes",
                     (json_int_t)run->classes, "batch", (json_int_t)t->batch, "steps_per_epoch",
                     (json_int_t)t->steps_per_epoch, "total_steps", (json_int_t)t->total_steps,
                     "begins", resume[run->resume], "first_step", (json_int_t)run->first_step,
                     "disk_needed_bytes", (json_int_t)run->needed_bytes, "disk_free_bytes",
                     (json_int_t)run->free_bytes);
}

static co_status dry_print_json(const co_dry_run *run, const char *config)
{
    json_t *object = dry_json_run(run, config), *measured = dry_json_measured(run);
    int bad = !object || !measured || json_object_update(object, measured) ||
              json_object_set_new(object, "layers", dry_json_layers(run));

    if (!bad)
        bad = json_dumpf(object, stdout, CLI_JSON_STYLE);
    json_decref(measured);
    json_decref(object);
    if (bad)
        return co_fail(CO_E_NOMEM, "out of memory");
    putchar('\n');
    return CO_OK;
}

co_status cli_train_dry(const co_train_options *options, const char *config, bool json)
{
    co_dry_run run;
    co_status st = co_dry_run_make(&run, options);

    if (st == CO_OK && co_launch_is_root() && json) {
        st = dry_print_json(&run, config);
    } else if (st == CO_OK && co_launch_is_root() && !options->quiet) {
        dry_print_run(&run, config);
        dry_print_place(&run);
        dry_print_layers(&run);
        dry_print_estimates(&run);
    }
    co_dry_run_free(&run);
    return st;
}
