/* checkpoint_layout.c - the numbers of a position that a checkpoint's manifest has. */
#include "state/checkpoint.h"

#define NUMBER(of, name, kind, field, optional)                                                    \
    {                                                                                              \
        name, CO_NUMBER_##kind, offsetof(of, field), optional, 0                                   \
    }
#define POINT(name, kind, field)       NUMBER(co_run_point, name, kind, field, false)
#define POINT_LATER(name, kind, field) NUMBER(co_run_point, name, kind, field, true)
#define RANK(name, kind, field)        NUMBER(co_rank_point, name, kind, field, false)
#define LATER(name, kind, field)       NUMBER(co_rank_point, name, kind, field, true)
#define SPAN(name, field)                                                                          \
    LATER(name "_count", COUNT, field.sum.count),                                                  \
        LATER(name "_loss_sum", REAL, field.sum.loss_sum),                                         \
        LATER(name "_correct", COUNT, field.sum.correct),                                          \
        LATER(name "_correct5", COUNT, field.sum.correct5),                                        \
        LATER(name "_steps", COUNT, field.steps), LATER(name "_samples", COUNT, field.samples),    \
        LATER(name "_read_samples", COUNT, field.reads.samples),                                   \
        LATER(name "_read_bytes", COUNT, field.reads.bytes),                                       \
        LATER(name "_begin_seconds", REAL, field.begin_seconds)
#define LIST(of, name, field)                                                                      \
    {                                                                                              \
        name, CO_NUMBER_REALS, offsetof(of, field), true,                                          \
            sizeof(((of *)NULL)->field) / (sizeof(double))                                         \
    }
#define NUMBERS_END                                                                                \
    {                                                                                              \
        NULL, CO_NUMBER_COUNT, 0, false, 0                                                         \
    }

static const co_number checkpoint_point[] = {
    POINT("epoch", COUNT, epoch),
    POINT("epoch_step", COUNT, epoch_step),
    POINT("step", COUNT, step),
    POINT("samples", COUNT, samples),
    POINT("epoch_samples", COUNT, epoch_samples),
    POINT("batch", COUNT, batch),
    POINT("steps_per_epoch", COUNT, steps_per_epoch),
    POINT("train_seconds", REAL, train_seconds),
    POINT("epoch_seconds", REAL, epoch_seconds),
    POINT("wall_seconds", REAL, wall_seconds),
    POINT_LATER("compute_seconds", REAL, spent.compute_seconds),
    POINT_LATER("sync_seconds", REAL, spent.sync_seconds),
    POINT_LATER("data_wait_seconds", REAL, spent.data_wait_seconds),
    POINT_LATER("bytes_sent", COUNT, spent.bytes_sent),
    POINT("best_accuracy", REAL, best.figures.test_accuracy),
    POINT_LATER("best_loss", REAL, best.figures.test_loss),
    POINT_LATER("best_step", COUNT, best.figures.step),
    POINT_LATER("best_epoch", COUNT, best.figures.epoch),
    POINT_LATER("least_loss", REAL, best.least_loss),
    POINT_LATER("best_value", REAL, best.value),
    POINT_LATER("best_by", COUNT, best.by),
    POINT_LATER("awaited_value", REAL, best.awaited),
    POINT_LATER("awaited_by", COUNT, best.awaited_by),
    LIST(co_run_point, "best_metrics", best.figures.test_metric),
    POINT_LATER("measured", FLAG, best.measured),
    POINT_LATER("waited", COUNT, best.waited),
    POINT("last_epoch", COUNT, last.epoch),
    POINT("last_step", COUNT, last.step),
    POINT("last_epoch_step", COUNT, last.epoch_step),
    POINT("last_wall_seconds", REAL, last.wall_seconds),
    POINT("last_train_seconds", REAL, last.train_seconds),
    POINT_LATER("last_data_wait_seconds", REAL, last.data_wait_seconds),
    POINT("last_samples_per_second", REAL, last.samples_per_second),
    POINT("last_lr", REAL, last.lr),
    POINT("last_train_loss", REAL, last.train_loss),
    POINT("last_train_accuracy", REAL, last.train_accuracy),
    POINT("last_train_accuracy_top5", REAL, last.train_accuracy_top5),
    POINT("last_bad_samples", COUNT, last.bad_samples),
    POINT("last_has_test", FLAG, last.has_test),
    POINT("last_test_loss", REAL, last.test_loss),
    POINT("last_test_accuracy", REAL, last.test_accuracy),
    POINT("last_test_accuracy_top5", REAL, last.test_accuracy_top5),
    LIST(co_run_point, "last_train_metrics", last.train_metric),
    LIST(co_run_point, "last_test_metrics", last.test_metric),
    NUMBERS_END,
};

static const co_number checkpoint_rank[] = {
    RANK("count", COUNT, seen.count),
    RANK("loss_sum", REAL, seen.loss_sum),
    RANK("correct", COUNT, seen.correct),
    RANK("correct5", COUNT, seen.correct5),
    RANK("batches", COUNT, means.batches),
    RANK("batch_loss_sum", REAL, means.loss_sum),
    RANK("batch_accuracy_sum", REAL, means.accuracy_sum),
    LATER("bad_samples", COUNT, bad_samples),
    RANK("updates", COUNT, updates),
    RANK("counter0", COUNT, count[0]),
    RANK("counter1", COUNT, count[1]),
    RANK("counter2", COUNT, count[2]),
    RANK("counter3", COUNT, count[3]),
    LATER("loss_scale", REAL, scaler.scale),
    LATER("clean_steps", COUNT, scaler.clean),
    LATER("skipped_steps", COUNT, scaler.skipped),
    LATER("skipped_in_row", COUNT, scaler.in_row),
    SPAN("recent", recent.last),
    SPAN("exact", recent.all),
    LIST(co_rank_point, "metric_sums", metrics),
    NUMBERS_END,
};

_Static_assert(CO_STRATEGY_MAX_COUNTERS == 4, "a line for each in checkpoint_rank");
_Static_assert(CO_STATE_MAX_ARRAYS <= CO_MANIFEST_MAX_ARRAYS, "all have room in a manifest");

const co_manifest_layout co_checkpoint_layout = {checkpoint_point, checkpoint_rank,
                                                 sizeof(co_run_point), sizeof(co_rank_point)};
