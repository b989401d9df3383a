/*
 * bench_ops.c - benchmark over the table of cases: bench_ops [WORD [BATCH [MILLISECONDS]]]
 *
 * Prints a JSON line for each case whose name contains WORD and each backend that runs one of its
 * ops: the best time of a forward and of a backward pass within MILLISECONDS, on one thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "core/clock.h"

typedef struct bench_time {
    double forward, backward; /* seconds */
} bench_time;

/* Whether the backend runs any op; ref runs the rest, such as losses. */
static bool bench_takes_part(const harness *h, const co_plan *plan, const co_backend *backend)
{
    for (int i = 0; i < h->graph->n_node; i++)
        if (strcmp(co_plan_backend(plan, i, NULL), backend->name) == 0)
            return true;
    return false;
}

static co_status bench_measure(bench_time *out, harness *h, co_plan *plan, double seconds)
{
    const uint64_t start = co_clock_ns();
    const co_run run = harness_run(h);
    uint64_t before, between, after;

    *out = (bench_time){1e9, 1e9};
    CO_TRY(harness_forward(NULL, h, plan)); /* sets inputs and labels */
    do {
        double forward, backward;

        before = co_clock_ns();
        CO_TRY(co_plan_forward(plan, &run));
        between = co_clock_ns();
        CO_TRY(co_plan_backward(plan, &run, NULL, NULL));
        after = co_clock_ns();
        forward = co_clock_seconds(before, between);
        backward = co_clock_seconds(between, after);
        out->forward = forward < out->forward ? forward : out->forward;
        out->backward = backward < out->backward ? backward : out->backward;
    } while (co_clock_seconds(start, after) < seconds);
    return CO_OK;
}

static co_status bench_case(const ops_case *c, const co_backend *backend, double seconds)
{
    const co_backend *const list[] = {backend, &co_backend_ref, NULL};
    const harness_mode mode = {.backends = list, .training = true, .threads = 1};
    harness *h = cases_create(c);
    co_plan *plan = NULL;
    bench_time time;
    co_status st = harness_plan(&plan, h, &mode);

    if (st == CO_OK && bench_takes_part(h, plan, backend)) {
        st = bench_measure(&time, h, plan, seconds);
        if (st == CO_OK)
            printf("{\"case\": \"%s\", \"batch\": %d, \"backend\": \"%s\", \"forward_us\": %.1f, "
                   "\"backward_us\": %.1f}\n",
                   c->name, (int)c->batch, backend->name, time.forward * 1e6, time.backward * 1e6);
    }
    co_plan_destroy(plan);
    harness_destroy(h);
    return st;
}

static co_status bench_on_all(const ops_case *c, int64_t batch, double seconds)
{
    ops_case sized = *c;

    sized.batch = batch;
    for (const co_backend *const *b = co_backends; *b; b++)
        CO_TRY(bench_case(&sized, *b, seconds));
    return CO_OK;
}

static co_status bench_table(const char *word, int64_t batch, double seconds)
{
    for (const ops_case *const *part = cases_all; *part; part++)
        for (const ops_case *c = *part; c->name; c++)
            if (strstr(c->name, word))
                CO_TRY(bench_on_all(c, batch, seconds));
    return CO_OK;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    const int64_t batch = argc > 2 ? atoll(argv[2]) : 64;
    const double seconds = (argc > 3 ? atof(argv[3]) : 200) * 1e-3;

    if (batch < 1) {
        fprintf(stderr, "usage: bench_ops [WORD [BATCH [MILLISECONDS]]]\n");
        return 2;
    }
    if (bench_table(word, batch, seconds) != CO_OK) {
        fprintf(stderr, "%s\n", co_error_message());
        return 1;
    }
    return 0;
}
