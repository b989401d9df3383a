/*
 * inspect_run.c - prints what a run directory holds: config, progress, checkpoints, and commands to
 * continue with.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"
#include "state/checkpoint.h"
#include "telemetry/format.h"

#define RUN_MAX_SUMMARY ((size_t)1 << 20)

static bool run_has(const char *dir, const char *file)
{
    char path[CO_CHECKPOINT_MAX_PATH];

    return co_fs_join(path, sizeof(path), dir, file) == CO_OK && co_fs_exists(path);
}

bool cli_inspect_is_run(const char *dir)
{
    return run_has(dir, "config.yaml") &&
           (run_has(dir, "metrics.jsonl") || run_has(dir, "checkpoints") ||
            run_has(dir, "summary.json"));
}

/* `metrics` gets those of the config. */
static co_status run_print_config(co_metric_set *metrics, const char *dir)
{
    char path[CO_CHECKPOINT_MAX_PATH];
    const co_train_options options = {.config_path = path};
    co_spec spec;

    CO_TRY(co_fs_join(path, sizeof(path), dir, "config.yaml"));
    CO_TRY(co_spec_load(&spec, &options));
    printf("config       %s\n", CO_SHOW(path));
    printf("model        %s on %s\n", CO_SHOW(co_spec_model_name(&spec)),
           CO_SHOW(co_spec_plugin_name(spec.data, "")));
    printf("ranks        %" PRId64 ", strategy %s, batch %" PRIu64 ", seed %" PRId64 "\n",
           spec.ranks, CO_SHOW(co_spec_strategy_name(&spec)), co_spec_batch(&spec, (int)spec.ranks),
           spec.seed);
    *metrics = spec.metrics;
    co_spec_unload(&spec);
    return CO_OK;
}

static double run_number(const json_t *summary, const char *key)
{
    const json_t *value = json_object_get(summary, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void run_print_result(const json_t *summary, const co_metric_set *metrics)
{
    const double accuracy = run_number(summary, "test_accuracy");
    const double loss = run_number(summary, "test_loss");
    const uint64_t steps = (uint64_t)json_integer_value(json_object_get(summary, "steps"));
    char count[32], seconds[32], rate[32];

    printf("finished     %s step%s in %s of training, %s samples/s\n",
           co_format_count(count, sizeof(count), steps), co_plural(steps),
           co_format_seconds(seconds, sizeof(seconds), run_number(summary, "train_seconds")),
           co_format_rate(rate, sizeof(rate), run_number(summary, "samples_per_second")));
    if (!isfinite(loss))
        return;
    printf("test         ");
    if (isfinite(accuracy))
        printf("accuracy %.4f, ", accuracy);
    printf("loss %.4f", loss);
    for (int i = 0; i < metrics->n; i++) {
        char key[64], real[32];

        snprintf(key, sizeof(key), "test_%s", metrics->metric[i]->name);
        printf(", %s %s", metrics->metric[i]->name,
               co_format_real(real, sizeof(real), run_number(summary, key), 4));
    }
    printf("\n");
}

static co_status run_print_summary(const char *dir, const co_metric_set *metrics)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = RUN_MAX_SUMMARY};
    char path[CO_CHECKPOINT_MAX_PATH];
    uint8_t *text = NULL;
    size_t size;
    json_t *summary;

    CO_TRY(co_fs_join(path, sizeof(path), dir, "summary.json"));
    CO_TRY(co_fs_read_as(&text, &size, path, &rule));
    summary = json_loadb((const char *)text, size, 0, NULL);
    co_free(text);
    if (!json_is_object(summary)) {
        json_decref(summary);
        return co_fail(CO_E_DATA, "%s: is no summary of a run; it is damaged", path);
    }
    run_print_result(summary, metrics);
    json_decref(summary);
    return CO_OK;
}

static co_status run_print_checkpoint(const char *dir, uint64_t step, const char *best, bool first)
{
    char folder[CO_CHECKPOINT_MAX_PATH], count[32], accuracy[160] = "";
    const co_run_point *point;
    co_manifest m;

    CO_TRY(co_checkpoint_path(folder, dir, step));
    co_format_count(count, sizeof(count), step);
    if (co_manifest_read(&m, folder, &co_checkpoint_layout) != CO_OK) {
        if (!co_fs_exists(folder)) /* by now others are kept */
            return CO_OK;
        printf("%-12s step %s: damaged\n", first ? "checkpoints" : "", count);
        return CO_OK;
    }
    point = m.point;
    if (isfinite(m.best_value))
        snprintf(accuracy, sizeof(accuracy), ", test %s %.4f%s",
                 m.best_by[0] ? CO_SHOW(m.best_by) : "accuracy", m.best_value,
                 strcmp(folder, best) == 0 ? ", the best" : "");
    printf("%-12s step %s, epoch %" PRIu64 "%s%s\n", first ? "checkpoints" : "", count,
           point->epoch_step || !point->epoch ? point->epoch + 1 : point->epoch, accuracy,
           first ? ", the latest" : "");
    co_manifest_free(&m);
    return CO_OK;
}

static co_status run_print_checkpoints(size_t *n, const char *run_dir)
{
    char dir[CO_CHECKPOINT_MAX_PATH], best[CO_CHECKPOINT_MAX_PATH];
    uint64_t *steps = NULL;
    co_status st = CO_OK;

    CO_TRY(co_fs_join(dir, sizeof(dir), run_dir, "checkpoints"));
    CO_TRY(co_checkpoint_list(&steps, n, dir));
    if (co_checkpoint_find(best, run_dir, "best") != CO_OK)
        best[0] = '\0';
    for (size_t i = 0; i < *n && st == CO_OK; i++)
        st = run_print_checkpoint(dir, steps[i], best, i == 0);
    co_free(steps);
    return st;
}

co_status cli_inspect_run(const char *dir)
{
    const bool finished = run_has(dir, "summary.json");
    const char *shown = CO_SHOW(dir);
    co_metric_set metrics;
    size_t n = 0;

    printf("run          %s\n", shown);
    CO_TRY(run_print_config(&metrics, dir));
    if (finished)
        CO_TRY(run_print_summary(dir, &metrics));
    CO_TRY(run_print_checkpoints(&n, dir));
    if (run_has(dir, "control.sock"))
        printf("\nIf it is running, `cohort ctl %s status` says how far it is.\n", shown);
    else if (!finished && n == 0)
        printf("\nIt has no checkpoint and no result.\n");
    else if (!finished)
        printf("\nIt is not finished. `cohort train %s/config.yaml --run-dir %s --resume` "
               "continues it.\n",
               shown, shown);
    if (run_has(dir, "final.safetensors"))
        printf("\n`cohort eval %s` measures its weights; `cohort inspect %s/final.safetensors` "
               "shows them.\n",
               shown, shown);
    return CO_OK;
}
