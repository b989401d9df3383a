/*
 * answers.c - answers to `cohort ctl`. Numbers are read while ranks write them, so each is only
 * consistent by itself.
 */
#include "control/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "telemetry/json.h"

#define ANSWERS_MAX_SHOWN 48 /* ranks whose phase is listed: the answer has a size limit */
#define ANSWERS_RATE_NS   UINT64_C(2000000000)

void co_shown_set(co_shown *out, const co_where *where)
{
    atomic_store_explicit(&out->step, where->step, memory_order_relaxed);
    atomic_store_explicit(&out->epoch, where->epoch, memory_order_relaxed);
    atomic_store_explicit(&out->samples, where->samples, memory_order_relaxed);
    atomic_store_explicit(&out->steps_per_epoch, where->steps_per_epoch, memory_order_relaxed);
    atomic_store_explicit(&out->total_steps, where->total_steps, memory_order_relaxed);
    atomic_store_explicit(&out->batch, where->batch, memory_order_relaxed);
}

void co_shown_measure(co_shown_rate *rate, const co_shown *shown)
{
    const uint64_t now = co_clock_ns(), samples = atomic_load(&shown->samples);

    if (rate->seen_ns && samples > rate->seen_samples)
        rate->rate = (double)(samples - rate->seen_samples) / co_clock_seconds(rate->seen_ns, now);
    if (rate->seen_ns && now < rate->seen_ns + ANSWERS_RATE_NS)
        return;
    rate->seen_ns = now;
    rate->seen_samples = samples;
}

static void answers_print(char *reply, size_t size, json_t *object, int bad)
{
    char *text = bad ? NULL : json_dumps(object, JSON_COMPACT | JSON_STYLE);

    if (text && strlen(text) < size)
        memcpy(reply, text, strlen(text) + 1);
    else
        snprintf(reply, size, "{\"error\": \"out of memory\"}");
    free(text);
    json_decref(object);
}

void co_answer_refuse(char *reply, size_t size)
{
    json_t *object = json_object();

    answers_print(reply, size, object, json_put_text(object, "error", co_error_message()));
}

void co_answer_unknown(char *reply, size_t size, const char *request)
{
    co_fail(CO_E_USAGE, "'%s' is not a request that a run knows", request);
    co_answer_refuse(reply, size);
}

void co_answer_agree(char *reply, size_t size, const char *done)
{
    json_t *object = json_object();

    answers_print(reply, size, object, json_put_text(object, "done", done));
}

static int answers_put_phases(json_t *object, const co_answer_view *view)
{
    const uint64_t now = co_clock_ns();
    json_t *list = json_array();
    co_watch *watch;
    int bad = 0;

    for (int i = 0; i < ANSWERS_MAX_SHOWN && (watch = view->watch(view->arg, i)) != NULL; i++) {
        json_t *item = json_object();

        bad |=
            json_put_count(item, "rank", (uint64_t)atomic_load(&watch->rank)) |
            json_put_count(item, "pid", (uint64_t)atomic_load(&watch->pid)) |
            json_put_text(item, "phase", co_phase_name((co_phase)atomic_load(&watch->phase))) |
            json_put_real(item, "seconds", co_clock_seconds(atomic_load(&watch->phase_ns), now)) |
            json_object_set_new(item, "waiting", json_boolean(atomic_load(&watch->waiting))) |
            json_array_append_new(list, item);
    }
    return bad | json_object_set_new(object, "phases", list);
}

void co_answer_status(char *reply, size_t size, const co_answer_view *view)
{
    const co_shown *shown = view->shown;
    const uint64_t saved = atomic_load(&shown->saved);
    json_t *object = json_object();
    int bad =
        json_put_count(object, "ranks", (uint64_t)view->ranks) |
        json_object_set_new(object, "saved_step",
                            saved ? json_integer((json_int_t)saved - 1) : json_null()) |
        json_put_count(object, "step", atomic_load(&shown->step)) |
        json_put_count(object, "total_steps", atomic_load(&shown->total_steps)) |
        json_put_count(object, "epoch", atomic_load(&shown->epoch)) |
        json_put_count(object, "steps_per_epoch", atomic_load(&shown->steps_per_epoch)) |
        json_put_count(object, "batch", atomic_load(&shown->batch)) |
        json_put_real(object, "samples_per_second", view->rate > 0 ? view->rate : (double)NAN) |
        json_put_real(object, "wall_seconds", co_clock_seconds(view->start_ns, co_clock_ns())) |
        json_put_count(object, "restarts", (uint64_t)view->restarts) |
        json_put_count(object, "resizes", (uint64_t)view->resizes) |
        json_object_set_new(object, "stopping",
                            view->stopping ? json_string(view->stopping) : json_null()) |
        answers_put_phases(object, view);

    answers_print(reply, size, object, bad);
}
