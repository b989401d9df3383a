/* ranks.c - samples of what ranks are doing. */
#include "live/ranks.h"

#include <stdbool.h>
#include <string.h>

#include "core/clock.h"
#include "launch/control_socket.h"

#define RANKS_WAIT_MS 100
/* A launcher that does not answer, or one of another machine, is not asked again at once. */
#define RANKS_PAUSE_NS UINT64_C(5000000000)

static co_doing ranks_doing(const json_t *phase)
{
    static const struct {
        const char *name;
        co_doing doing;
    } names[] = {
        {"computing", CO_DOING_COMPUTING},
        {"reading data", CO_DOING_READING},
        {"evaluating", CO_DOING_EVALUATING},
        {"saving", CO_DOING_SAVING},
    };
    const char *name = json_string_value(json_object_get(phase, "phase"));

    if (json_is_true(json_object_get(phase, "waiting")))
        return CO_DOING_WAITING;
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].doing;
    return CO_DOING_OTHER;
}

/* Other ranks than before are counted from the start. */
static void ranks_set(co_ranks *ranks, const json_t *phases)
{
    size_t n = json_array_size(phases);
    bool same;

    if (n > CO_RANKS_MAX)
        n = CO_RANKS_MAX;
    same = n == ranks->n;
    for (size_t i = 0; i < n; i++) {
        const json_t *rank = json_object_get(json_array_get(phases, i), "rank");
        const int number = (int)json_integer_value(rank);

        same = same && ranks->rank[i] == number;
        ranks->rank[i] = number;
    }
    if (same)
        return;
    ranks->n = n;
    ranks->samples = ranks->at = 0;
    memset(ranks->count, 0, sizeof(ranks->count));
}

static void ranks_add(co_ranks *ranks, const json_t *phases)
{
    uint8_t *seen = ranks->seen[ranks->at];

    for (size_t i = 0; i < ranks->n; i++) {
        if (ranks->samples == CO_RANKS_SAMPLES)
            ranks->count[i][seen[i]]--;
        seen[i] = (uint8_t)ranks_doing(json_array_get(phases, i));
        ranks->count[i][seen[i]]++;
    }
    ranks->at = (ranks->at + 1) % CO_RANKS_SAMPLES;
    if (ranks->samples < CO_RANKS_SAMPLES)
        ranks->samples++;
}

void co_ranks_take(co_ranks *ranks, const char *answer)
{
    json_t *status = json_loads(answer, 0, NULL);
    const json_t *phases = json_object_get(status, "phases");

    json_decref(ranks->status);
    ranks->status = NULL;
    if (!json_is_array(phases)) {
        json_decref(status);
        return;
    }
    ranks_set(ranks, phases);
    ranks_add(ranks, phases);
    ranks->status = status;
}

void co_ranks_ask(co_ranks *ranks, const char *dir)
{
    char answer[CO_CONTROL_REPLY];
    const uint64_t now = co_clock_ns();

    if (now < ranks->ask_ns)
        return;
    if (co_control_ask(answer, dir, "status", RANKS_WAIT_MS) == CO_OK) {
        co_ranks_take(ranks, answer);
        return;
    }
    ranks->ask_ns = now + RANKS_PAUSE_NS;
    json_decref(ranks->status);
    ranks->status = NULL;
}

static json_t *ranks_shares(const co_ranks *ranks)
{
    json_t *list = json_array();

    for (size_t i = 0; i < ranks->n; i++) {
        json_t *seen = json_array();

        for (size_t k = 0; k < CO_DOINGS; k++)
            (void)json_array_append_new(seen, json_integer((json_int_t)ranks->count[i][k]));
        (void)json_array_append_new(list,
                                    json_pack("{s:i, s:o}", "rank", ranks->rank[i], "seen", seen));
    }
    return list;
}

json_t *co_ranks_json(const co_ranks *ranks)
{
    static const char *const names[] = {
        "step", "total_steps", "epoch", "samples_per_second", "wall_seconds", "stopping"};
    json_t *now;

    if (!ranks->status)
        return json_null();
    now = json_object();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)json_object_set(now, names[i], json_object_get(ranks->status, names[i]));
    (void)json_object_set_new(now, "ranks", ranks_shares(ranks));
    return now ? now : json_null();
}

void co_ranks_free(co_ranks *ranks)
{
    json_decref(ranks->status);
    *ranks = (co_ranks){0};
}
