/* inspect_checkpoint.c - verifies and prints a checkpoint. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/cli.h"
#include "core/plural.h"
#include "core/text.h"
#include "state/checkpoint.h"
#include "telemetry/format.h"

static void inspect_print_place(const co_manifest *m)
{
    const co_run_point *point = m->point;

    printf("model        %s, %" PRIu64 " parameters\n", CO_SHOW(m->model), m->parameter_count);
    printf("data         %s, %" PRIu64 " training sample%s\n", CO_SHOW(m->dataset),
           m->train_samples, co_plural(m->train_samples));
    printf("strategy     %s, made by %" PRIu64 " rank%s, seed %" PRIu64 "\n", CO_SHOW(m->strategy),
           m->ranks, co_plural((uint64_t)m->ranks), m->seed);
    printf("place        step %" PRIu64 ": %" PRIu64 " of %" PRIu64 " step%s of epoch %" PRIu64
           ", %" PRIu64 " sample%s a step\n",
           point->step, point->epoch_step, point->steps_per_epoch,
           co_plural(point->steps_per_epoch), point->epoch + 1, point->batch,
           co_plural(point->batch));
    printf("time         %.1f s, %.1f s of it in steps\n", point->wall_seconds,
           point->train_seconds + point->epoch_seconds);
    if (isfinite(m->test_accuracy))
        printf("accuracy     %.4f on the test split\n", m->test_accuracy);
    if (m->best_by[0] && isfinite(m->best_value))
        printf("%-12s %.4f on the test split\n", CO_SHOW(m->best_by), m->best_value);
    if (point->best.figures.step > 0 && m->best_by[0])
        printf("best so far  %s %.4f in epoch %" PRIu64 "\n", CO_SHOW(m->best_by),
               point->best.value, point->best.figures.epoch + 1);
    else if (point->best.figures.step > 0)
        printf("best so far  %.4f in epoch %" PRIu64 "\n", point->best.figures.test_accuracy,
               point->best.figures.epoch + 1);
    else if (point->best.figures.test_accuracy >= 0)
        printf("best so far  %.4f\n", point->best.figures.test_accuracy);
}

co_status cli_inspect_checkpoint(const char *folder)
{
    co_manifest m;

    CO_TRY(co_checkpoint_open(&m, folder));
    printf("checkpoint   %s, by Cohort %s\n", CO_SHOW(folder), CO_SHOW(m.cohort));
    inspect_print_place(&m);
    for (int i = 0; i < m.n_file; i++) {
        char bytes[32];

        printf("%-12s %s, %s, SHA-256 as written\n", i ? "" : "files", CO_SHOW(m.file[i].name),
               co_format_bytes(bytes, sizeof(bytes), m.file[i].bytes));
    }
    for (int i = 0; i < m.n_array; i++)
        printf("%-12s %s%s\n", i ? "" : "state", CO_SHOW(m.array[i].name),
               m.array[i].copies > 1 ? ", one for each rank" : "");
    co_manifest_free(&m);
    return CO_OK;
}
