/* print_json.c - a sweep as one JSON object. */
#include "core/text.h"
#include "plan/sweep.h"
#include "telemetry/json.h"

static json_t *sweep_json_point(const co_sweep *s, const co_prediction *p)
{
    json_t *object = json_object(), *terms = json_object();
    int bad = json_put_count(object, "ranks", (uint64_t)p->ranks) |
              json_put_count(object, "nodes", (uint64_t)p->nodes) |
              json_put_real(object, "batch_per_rank", p->batch) |
              json_put_real(object, "step_ms", p->step * 1e3) |
              json_put_real(object, "samples_per_second", p->samples_per_second) |
              json_put_real(object, "efficiency", p->efficiency);

    for (int i = 0; i < CO_TERMS; i++)
        bad |= json_put_real(terms, co_plan_terms[i], p->term[i] * 1e3);
    bad |= json_object_set_new(object, "terms_ms", terms) |
           json_put_text(object, "binds", co_plan_terms[p->binds]) |
           json_put_real(object, "epoch_seconds", p->epoch > 0 ? p->epoch : NAN) |
           json_put_real(object, "epoch_price", p->price > 0 ? p->price : NAN) |
           json_put_real(object, "node_bytes_per_step", p->wire) |
           json_put_real(object, "rank_memory_bytes", p->memory) |
           json_object_set_new(object, "available", json_boolean(co_sweep_has(s, p)));
    if (!bad)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *sweep_json_line(const co_sweep *s, const co_sweep_line *line)
{
    json_t *object = json_object(), *points = json_array();
    int bad = json_put_text(object, "strategy", line->choice->title) |
              json_object_set_new(object, "measured", json_boolean(line->choice->measured)) |
              json_object_set_new(object, "points", points);

    for (size_t i = 0; i < line->n; i++)
        bad |= json_array_append_new(points, sweep_json_point(s, &line->point[i]));
    if (!bad)
        return object;
    json_decref(object);
    return NULL;
}

static int sweep_json_work(json_t *root, const co_plan_work *w)
{
    json_t *object = json_object();

    return json_put_text(object, "model", CO_UTF8(w->model)) |
           json_put_text(object, "source", CO_UTF8(w->source)) |
           json_put_count(object, "weights", w->n_weight) |
           json_put_count(object, "threads", (uint64_t)w->threads) |
           json_put_real(object, "batch_per_rank", w->batch) |
           json_put_real(object, "forward_ms", w->forward * 1e3) |
           json_put_real(object, "backward_ms", w->backward * 1e3) |
           json_put_real(object, "update_ms", w->update * 1e3) |
           json_put_real(object, "rest_ms", w->rest * 1e3) |
           json_put_real(object, "read_us_per_sample", w->read * 1e6) |
           json_put_count(object, "draws", w->n_draw) | json_object_set_new(root, "work", object);
}

static int sweep_json_best(json_t *root, const char *key, const co_sweep *s,
                           const co_sweep_line *line, const co_prediction *p)
{
    json_t *object = p ? sweep_json_point(s, p) : json_null();
    int bad = !object;

    if (p && object)
        bad |= json_put_text(object, "strategy", line->choice->title);
    return bad | json_object_set_new(root, key, object);
}

static co_status sweep_json(json_t **out, const co_sweep *s)
{
    json_t *root = json_object(), *lines = json_array();
    int bad = json_put_text(root, "cluster", CO_UTF8(s->cluster->name)) |
              json_put_count(root, "nodes", (uint64_t)s->cluster->nodes) |
              json_put_count(root, "ranks_per_node", (uint64_t)s->each) |
              sweep_json_work(root, s->work) | json_object_set_new(root, "strategies", lines);

    for (size_t i = 0; i < s->n_line; i++)
        bad |= json_array_append_new(lines, sweep_json_line(s, &s->line[i]));
    bad |= sweep_json_best(root, "shortest_epoch", s, s->fastest_line, s->fastest) |
           sweep_json_best(root, "lowest_price", s, s->cheapest_line, s->cheapest);
    *out = root;
    if (!bad)
        return CO_OK;
    json_decref(root);
    *out = NULL;
    return co_fail(CO_E_NOMEM, "out of memory");
}

co_status co_sweep_print_json(FILE *out, const co_sweep *sweep)
{
    json_t *root;

    CO_TRY(sweep_json(&root, sweep));
    (void)json_dumpf(root, out, JSON_INDENT(1) | JSON_ENSURE_ASCII | JSON_STYLE);
    json_decref(root);
    fputc('\n', out);
    return CO_OK;
}
