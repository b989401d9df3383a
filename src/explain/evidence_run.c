/* evidence_run.c - evidence from metrics.jsonl and summary.json. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "core/text.h"
#include "explain/evidence.h"

#define RUN_MAX_PATH    4096
#define RUN_MAX_LINE    ((size_t)1 << 20)
#define RUN_MAX_METRICS ((uint64_t)8 << 30)
#define RUN_MAX_SUMMARY ((size_t)16 << 20)
#define RUN_MAX_POINTS  ((size_t)1 << 20) /* later ones are left out but for the last */

#define RUN_TIMES (sizeof(co_rank_times) / sizeof(double))

/* In the order of co_rank_times. */
static const char *const run_times[] = {"wall",      "start",        "data",       "compute",
                                        "exchange",  "wait",         "evaluation", "checkpoint",
                                        "update",    "core",         "delayed",    "read",
                                        "read_core", "read_delayed", "samples"};

_Static_assert(sizeof(run_times) / sizeof(run_times[0]) == RUN_TIMES, "a name for each");

/* Of the ranks that run now: their last times, which are added up when others start. */
typedef struct run_reader {
    co_evidence_run *run;
    co_rank_times *now; /* owned, (ranks) */
    bool has_now;
    double earlier; /* of the run on another number of ranks, 0: these were all */
    bool resized;
} run_reader;

static double run_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static uint64_t run_count(const json_t *object, const char *key)
{
    const json_int_t value = json_integer_value(json_object_get(object, key));

    return value > 0 ? (uint64_t)value : 0;
}

static co_status run_add_point(co_evidence_curve *curve, const json_t *event)
{
    const co_evidence_point point = {.step = run_number(event, "step"),
                                     .train_loss = run_number(event, "train_loss"),
                                     .train_accuracy = run_number(event, "train_accuracy"),
                                     .test_loss = run_number(event, "test_loss"),
                                     .test_accuracy = run_number(event, "test_accuracy"),
                                     .gradient_norm = run_number(event, "gradient_norm"),
                                     .lr = run_number(event, "lr")};

    if (curve->n == RUN_MAX_POINTS)
        curve->n--;
    if (curve->n == curve->room) {
        const size_t room = curve->room ? 2 * curve->room : 64;
        co_evidence_point *at = co_realloc(curve->at, room, sizeof(*at));

        if (!at)
            return CO_E_NOMEM;
        curve->at = at;
        curve->room = room;
    }
    curve->at[curve->n++] = point;
    return CO_OK;
}

/* The times of ranks that have ended become part of the sum. */
static void run_settle(run_reader *reader)
{
    co_evidence_run *run = reader->run;

    for (int r = 0; reader->has_now && r < run->ranks; r++)
        for (size_t i = 0; i < RUN_TIMES; i++)
            ((double *)&run->times[r])[i] += ((const double *)&reader->now[r])[i];
    run->has_times |= reader->has_now;
    reader->has_now = false;
}

/* Other ranks: what those before them did is left out where their number was another. */
static co_status run_take_start(run_reader *reader, const json_t *event)
{
    co_evidence_run *run = reader->run;
    const uint64_t ranks = run_count(event, "ranks");

    run_settle(reader);
    if (ranks == 0 || ranks > CO_EVIDENCE_RANKS)
        return co_fail(CO_E_DATA, "metrics.jsonl: a start of %llu ranks; it is damaged",
                       (unsigned long long)ranks);
    if ((int)ranks != run->ranks) {
        reader->resized = run->starts > 0;
        co_free(run->times);
        co_free(reader->now);
        run->times = co_calloc((size_t)ranks, sizeof(*run->times));
        reader->now = co_calloc((size_t)ranks, sizeof(*reader->now));
        run->has_times = false;
    }
    if (!run->times || !reader->now)
        return CO_E_NOMEM;
    run->ranks = (int)ranks;
    run->starts++;
    run->cores = (int)run_count(event, "cores");
    run->threads = (int)run_count(event, "threads");
    run->batch = run_count(event, "batch");
    run->total_steps = run_count(event, "total_steps");
    run->steps_per_epoch = run_count(event, "steps_per_epoch");
    run->train_samples = run_count(event, "train_samples");
    run->test_samples = run_count(event, "test_samples");
    run->failure[0] = '\0';
    return CO_OK;
}

/* `wall`: of the run until this event. */
static void run_take_times(run_reader *reader, const json_t *event, double wall)
{
    const json_t *list = json_object_get(event, "times");

    if (!reader->now || json_array_size(list) != (size_t)reader->run->ranks)
        return;
    for (int r = 0; r < reader->run->ranks; r++)
        for (size_t i = 0; i < RUN_TIMES; i++) {
            const double value = run_number(json_array_get(list, (size_t)r), run_times[i]);

            ((double *)&reader->now[r])[i] = isnan(value) ? 0 : value;
        }
    reader->has_now = true;
    if (reader->resized)
        reader->earlier = fmax(wall - reader->run->times[0].wall - reader->now[0].wall, 0);
}

static co_status run_take(run_reader *reader, const json_t *event)
{
    co_evidence_run *run = reader->run;
    const char *kind = json_string_value(json_object_get(event, "event"));
    const double wall = run_number(event, "wall_seconds");
    const char *reason;

    if (!kind)
        return CO_OK;
    if (json_object_get(event, "train_samples"))
        return run_take_start(reader, event);
    if (run_count(event, "step") > run->steps)
        run->steps = run_count(event, "step");
    if (wall > run->wall_seconds)
        run->wall_seconds = wall;
    run_take_times(reader, event, run->wall_seconds);
    reason = json_string_value(json_object_get(event, "reason"));
    if (strcmp(kind, "failed") == 0)
        snprintf(run->failure, sizeof(run->failure), "%s", reason ? CO_SHOW(reason) : "");
    if (strcmp(kind, "step") == 0)
        return run_add_point(&run->step, event);
    if (strcmp(kind, "epoch") != 0)
        return CO_OK;
    run->evaluations += json_object_get(event, "test_loss") != NULL;
    return run_add_point(&run->epoch, event);
}

/* The last line may be cut. */
static co_status run_read_lines(run_reader *reader, FILE *file, const char *path, char *line)
{
    for (size_t number = 1; fgets(line, (int)RUN_MAX_LINE, file); number++) {
        const size_t n = strlen(line);
        json_t *event = json_loadb(line, n, 0, NULL);
        co_status st = CO_OK;

        if (json_is_object(event))
            st = run_take(reader, event);
        else if (n > 0 && line[n - 1] == '\n')
            st = co_fail(CO_E_DATA, "%s:%zu: not a JSON object; the file is damaged", path, number);
        json_decref(event);
        CO_TRY(st);
    }
    return CO_OK;
}

static co_status run_read_metrics(run_reader *reader, const char *run_dir)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = RUN_MAX_METRICS};
    char path[RUN_MAX_PATH], *line;
    FILE *file;
    co_status st;

    snprintf(path, sizeof(path), "%s/metrics.jsonl", run_dir);
    CO_TRY(co_open_stream(&file, NULL, path, &rule));
    line = co_calloc(RUN_MAX_LINE, 1);
    st = line ? run_read_lines(reader, file, path, line) : CO_E_NOMEM;
    co_free(line);
    fclose(file);
    return st;
}

static co_status run_read_summary(co_evidence_run *run, const char *run_dir)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = RUN_MAX_SUMMARY};
    char path[RUN_MAX_PATH];
    uint8_t *text = NULL;
    json_t *root;
    size_t size;

    run->checkpoints = (double)NAN;
    snprintf(path, sizeof(path), "%s/summary.json", run_dir);
    if (!co_fs_exists(path))
        return CO_OK;
    CO_TRY(co_fs_read_as(&text, &size, path, &rule));
    root = json_loadb((const char *)text, size, 0, NULL);
    co_free(text);
    if (!json_is_object(root)) {
        json_decref(root);
        return co_fail(CO_E_DATA, "%s: not a JSON object; the file is damaged", path);
    }
    run->finished = true;
    run->checkpoints = run_number(root, "checkpoints");
    if (run_number(root, "wall_seconds") > run->wall_seconds)
        run->wall_seconds = run_number(root, "wall_seconds");
    json_decref(root);
    return CO_OK;
}

co_status co_evidence_read_run(co_evidence_run *out, const char *run_dir)
{
    run_reader reader = {.run = out};
    co_status st = run_read_metrics(&reader, run_dir);

    run_settle(&reader);
    co_free(reader.now);
    if (st == CO_OK && out->starts == 0)
        st = co_fail(CO_E_DATA, "%s/metrics.jsonl: has no start of ranks; the run has not begun",
                     run_dir);
    if (st == CO_OK)
        st = run_read_summary(out, run_dir);
    if (st == CO_OK && out->has_times) {
        out->earlier_seconds = reader.earlier;
        out->wall_seconds -= reader.earlier;
    }
    return st;
}
