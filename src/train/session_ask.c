/*
 * session_ask.c - what the owner of a run asks its launcher: how it is getting on, another number
 * of ranks, an end. Each answer is one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/watch.h"
#include "core/clock.h"
#include "telemetry/json.h"
#include "train/session_internal.h"

#define ASK_MAX_SHOWN 48 /* ranks whose phase is told one by one: the answer has a limit */

static void ask_print(char *reply, size_t size, json_t *object, int bad)
{
    char *text = bad ? NULL : json_dumps(object, JSON_COMPACT | JSON_STYLE);

    if (text && strlen(text) < size)
        memcpy(reply, text, strlen(text) + 1);
    else
        snprintf(reply, size, "{\"error\": \"out of memory\"}");
    free(text);
    json_decref(object);
}

static void ask_refuse(char *reply, size_t size)
{
    json_t *object = json_object();

    ask_print(reply, size, object, json_put_text(object, "error", co_error_message()));
}

static void ask_agree(char *reply, size_t size, const char *done)
{
    json_t *object = json_object();

    ask_print(reply, size, object, json_put_text(object, "done", done));
}

static int ask_put_phases(json_t *object, const co_session *s)
{
    const uint64_t now = co_clock_ns();
    json_t *list = json_array();
    int bad = 0;

    for (int r = 0; s->shm && r < s->ranks && r < ASK_MAX_SHOWN; r++) {
        co_watch *watch = co_shm_watch(s->shm, r);
        json_t *item = json_object();

        bad |=
            json_put_count(item, "rank", (uint64_t)r) |
            json_put_count(item, "pid", (uint64_t)atomic_load(&watch->pid)) |
            json_put_text(item, "phase", co_phase_name((co_phase)atomic_load(&watch->phase))) |
            json_put_real(item, "seconds", co_clock_seconds(atomic_load(&watch->phase_ns), now)) |
            json_object_set_new(item, "waiting", json_boolean(atomic_load(&watch->waiting))) |
            json_array_append_new(list, item);
    }
    return bad | json_object_set_new(object, "phases", list);
}

static void ask_status(const co_session *s, char *reply, size_t size)
{
    session_shared *shared = s->shared;
    const uint64_t saved = atomic_load(&shared->saved);
    json_t *object = json_object();
    int bad =
        json_put_count(object, "ranks", (uint64_t)s->ranks) |
        json_object_set_new(object, "saved_step",
                            saved ? json_integer((json_int_t)saved - 1) : json_null()) |
        json_put_count(object, "step", atomic_load(&shared->step)) |
        json_put_count(object, "total_steps", atomic_load(&shared->total_steps)) |
        json_put_count(object, "epoch", atomic_load(&shared->epoch)) |
        json_put_count(object, "steps_per_epoch", atomic_load(&shared->steps_per_epoch)) |
        json_put_count(object, "batch", atomic_load(&shared->batch)) |
        json_put_real(object, "samples_per_second", s->rate) |
        json_put_real(object, "wall_seconds", co_clock_seconds(s->job->start_ns, co_clock_ns())) |
        json_put_count(object, "restarts", (uint64_t)s->restarts) |
        json_put_count(object, "resizes", (uint64_t)s->resizes) |
        json_object_set_new(object, "stopping",
                            s->stopping ? json_string(s->stopping) : json_null()) |
        ask_put_phases(object, s);

    ask_print(reply, size, object, bad);
}

static co_status ask_ranks(co_session *s, const char *number)
{
    char *end;
    const long ranks = strtol(number, &end, 10);

    if (*end || end == number || ranks < 1 || ranks > 1024)
        return co_fail(CO_E_USAGE, "'%s' is no number of ranks", number);
    if (s->stopping)
        return co_fail(CO_E_USAGE, "the run is stopping");
    CO_TRY(session_can_resize(s, (int)ranks));
    if (ranks == s->ranks && !s->wanted)
        return CO_OK;
    s->wanted = (int)ranks;
    session_ask_leave(s);
    return CO_OK;
}

void session_answer(void *arg, char *reply, size_t size, const char *request)
{
    co_session *s = arg;

    if (strcmp(request, "status") == 0) {
        ask_status(s, reply, size);
    } else if (strcmp(request, "checkpoint") == 0) {
        s->save = true;
        ask_agree(reply, size, "a checkpoint is made after the step that the run is in");
    } else if (strcmp(request, "stop") == 0) {
        s->stopping = s->stopping ? s->stopping : "asked to stop";
        session_ask_leave(s);
        ask_agree(reply, size, "the run stops after the step it is in");
    } else if (strncmp(request, "ranks ", 6) == 0) {
        if (ask_ranks(s, request + 6) == CO_OK)
            ask_agree(reply, size, "the number of ranks changes at the next step");
        else
            ask_refuse(reply, size);
    } else {
        co_fail(CO_E_USAGE, "'%s' is not a request that a run knows", request);
        ask_refuse(reply, size);
    }
}
