/*
 * schedule.c - a schedule from its config, and the warm-up in front of any.
 *
 * Decides where training is, in the schedule's own unit. Independent of optimizers and rates: a
 * schedule gives a factor.
 */
#include "core/mem.h"
#include "optim/optim.h"

enum { SCHEDULE_EPOCH, SCHEDULE_STEP };
static const char *const schedule_units[] = {"epoch", "step", NULL};

struct co_schedule {
    const co_schedule_ops *ops;
    int64_t warmup;
    double warmup_start;
    int unit;
    max_align_t self[]; /* the schedule's own fields */
};

const co_key co_schedule_common_keys[] = {
    {.name = "unit",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(co_schedule, unit),
     .fallback = "epoch",
     .choices = schedule_units,
     .help = "what the schedule's own lengths and warmup count"},
    {.name = "warmup",
     .type = CO_KEY_INT,
     .offset = offsetof(co_schedule, warmup),
     .fallback = "0",
     .min = 0,
     .max = 1e9,
     .help = "length of a linear rise of the rate at the start, update by update"},
    {.name = "warmup_start",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_schedule, warmup_start),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "factor on the rate that the rise starts above"},
    CO_KEYS_END,
};

static co_status schedule_check(const co_schedule *schedule)
{
    if (schedule->ops->check)
        CO_PLUGIN_TRY(&co_schedule_plugins, schedule->ops, check, (schedule->self));
    return CO_OK;
}

static co_status schedule_read(co_schedule *schedule, const co_value *map, const co_value *value,
                               co_arena *arena)
{
    const co_schedule_ops *ops = schedule->ops;
    const co_value none = co_value_absent(value);

    CO_TRY(co_plugin_read(schedule, ops, &co_schedule_plugins, co_schedule_common_keys,
                          offsetof(co_schedule, self), map ? map : &none, arena));
    return co_value_place(schedule_check(schedule), value);
}

co_status co_schedule_create(co_schedule **out, const co_value *value, co_config *config)
{
    const co_schedule_ops *ops;
    const void *chosen;
    const co_value *map;
    co_schedule *schedule;
    co_status st;

    CO_TRY(co_plugin_choose(&chosen, &map, &co_schedule_plugins, value, "constant"));
    ops = chosen;
    schedule = co_calloc(1, sizeof(*schedule) + ops->self_size);
    if (!schedule)
        return CO_E_NOMEM;
    schedule->ops = ops;
    st = schedule_read(schedule, map, value, co_config_arena(config));
    if (st != CO_OK) {
        co_schedule_destroy(schedule);
        return st;
    }
    *out = schedule;
    return CO_OK;
}

void co_schedule_destroy(co_schedule *schedule)
{
    co_free(schedule);
}

co_status co_schedule_check(const co_schedule *schedule, const co_progress *progress)
{
    const co_schedule_ops *ops = schedule->ops;
    const bool counts = schedule->warmup > 0 || (ops->needs & CO_SCHEDULE_NEEDS_AT);

    if (counts && schedule->unit == SCHEDULE_EPOCH && progress->steps_per_epoch == 0)
        return co_fail(CO_E_USAGE,
                       "schedule %s counts epochs: say how many steps one has, or set unit: step",
                       ops->name);
    if ((ops->needs & CO_SCHEDULE_NEEDS_TOTAL) && progress->total_steps == 0)
        return co_fail(CO_E_USAGE, "schedule %s needs the number of steps of the whole run",
                       ops->name);
    return CO_OK;
}

/* Rises from above `warmup_start` at the first update to 1 at the last of the warm-up. */
static double schedule_rise(const co_schedule *schedule, const co_progress *progress)
{
    const double length = (double)progress->warmup;
    const double made = (double)progress->step + 1, start = schedule->warmup_start;

    return made < length ? start + (1 - start) * made / length : 1;
}

uint64_t co_schedule_warmup(const co_schedule *schedule, const co_progress *progress)
{
    const bool epochs = schedule->unit == SCHEDULE_EPOCH;

    return (uint64_t)schedule->warmup * (epochs ? progress->steps_per_epoch : 1);
}

double co_schedule_factor(const co_schedule *schedule, const co_progress *progress)
{
    co_progress now = *progress;

    now.at = now.step;
    if (schedule->unit == SCHEDULE_EPOCH)
        now.at = now.steps_per_epoch ? now.step / now.steps_per_epoch : 0;
    now.warmup = co_schedule_warmup(schedule, &now);
    return schedule->ops->factor(schedule->self, &now) * schedule_rise(schedule, &now);
}
