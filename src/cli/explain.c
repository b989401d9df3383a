/* explain.c - `cohort explain`: where the time of a run went, and what looks wrong with it. */
#include "explain/explain.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "cli/cli.h"
#include "core/text.h"
#include "telemetry/format.h"

#define EXPLAIN_PARTS 8
#define EXPLAIN_WIDTH 100 /* columns */
#define EXPLAIN_MOST  8   /* layers, and savings, for people */

typedef struct explain_options {
    bool json, quick;
    cli_list set, plugins;
} explain_options;

static const cli_argument explain_arguments[] = {
    {"RUN_DIR", false, "a run directory; the run may have ended, failed, or not ended yet"},
    {NULL, false, NULL},
};

static const cli_option explain_option_table[] = {
    {"quick", 0, CLI_FLAG, offsetof(explain_options, quick), NULL, 0, 0,
     "look at the figures of the run alone, not at its data and weights"},
    {"json", 0, CLI_FLAG, offsetof(explain_options, json), NULL, 0, 0, "print a JSON object"},
    {"set", 's', CLI_LIST, offsetof(explain_options, set), "KEY=VALUE", 0, 0,
     "change the config of the run, e.g. data.path=DIR; repeatable"},
    CLI_PLUGIN_OPTION(explain_options),
    CLI_OPTIONS_END,
};

/* A part of the wall time; together they are all of it. */
typedef struct explain_part {
    const char *name, *words;
    double seconds;
} explain_part;

static void explain_parts(explain_part out[EXPLAIN_PARTS], const co_evidence_run *run)
{
    const co_rank_times *t = run->times;
    const explain_part parts[EXPLAIN_PARTS] = {
        {"start", "start: config, data, network, ranks", t->start},
        {"data", "waiting for samples", t->data},
        {"compute", "forward, backward, update", t->compute},
        {"exchange", "exchange between ranks", t->exchange},
        {"wait", "waiting for other ranks", t->wait},
        {"evaluation", "evaluation", t->evaluation},
        {"checkpoint", "waiting for checkpoints", t->checkpoint},
        {"other", "the rest: log, supervision, final weights", 0},
    };
    double rest = run->wall_seconds;

    memcpy(out, parts, sizeof(parts));
    for (int i = 0; i + 1 < EXPLAIN_PARTS; i++)
        rest -= out[i].seconds;
    out[EXPLAIN_PARTS - 1].seconds = rest;
}

/* ---- for people ---- */

/* Text in lines of EXPLAIN_WIDTH, `indent` blanks before each but the first. */
static void explain_wrap(const char *text, int indent)
{
    int column = indent;

    while (*text) {
        const int n = (int)strcspn(text, " ");

        if (column > indent && column + 1 + n > EXPLAIN_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", n, text);
        column += n;
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

static void explain_print_ranks(const co_evidence_run *run)
{
    printf("\n%6s %12s %10s %10s %10s %10s %10s %9s\n", "rank", "samples", "data", "compute",
           "exchange", "waiting", "no core", "");
    for (int r = 0; r < run->ranks; r++) {
        const co_rank_times *t = &run->times[r];
        char count[32];

        printf("%6d %12s %8.2f s %8.2f s %8.2f s %8.2f s %8.2f s\n", r,
               co_format_count(count, sizeof(count), (uint64_t)t->samples), t->data, t->compute,
               t->exchange, t->wait, t->delayed);
    }
}

/* What computing consists of, in parts that add up to it: the profile's shares of all of it. */
static void explain_print_layers(const co_evidence *e)
{
    const co_evidence_profile *p = &e->profile;
    const double compute = e->run.times[0].compute, wall = e->run.wall_seconds;
    double rest = compute;

    for (size_t i = 0; i < p->n && (i < EXPLAIN_MOST || p->n == EXPLAIN_MOST + 1); i++) {
        const co_evidence_layer *l = &p->at[i];
        const double seconds = compute * l->seconds / p->step;
        char name[96];

        snprintf(name, sizeof(name), l->op[0] ? "%s (%s)" : "%s", CO_SHOW(l->name), l->op);
        printf("    %-42.42s %9.2f s %5.1f%%\n", name, seconds, 100 * seconds / wall);
        rest -= seconds;
    }
    if (p->n > EXPLAIN_MOST + 1)
        printf("    %-42s %9.2f s %5.1f%%\n", "others", rest, 100 * rest / wall);
}

static void explain_print_savings(const co_evidence *e)
{
    co_saving saving[CO_SAVINGS_MAX];
    const int n = co_explain_savings(saving, e);

    if (n == 0)
        return;
    printf("\nwhat would save most, by the profile of %llu steps, each by itself\n",
           (unsigned long long)e->profile.steps);
    for (int i = 0; i < n && i < EXPLAIN_MOST; i++) {
        printf("  %6.2f s %5.1f%%  ", saving[i].seconds,
               100 * saving[i].seconds / e->run.wall_seconds);
        explain_wrap(saving[i].what, 18);
    }
}

static void explain_print_times(const co_evidence *e)
{
    const co_evidence_run *run = &e->run;
    explain_part part[EXPLAIN_PARTS];

    if (!run->has_times) {
        printf("where the time went: not recorded; an epoch has to end first\n");
        return;
    }
    explain_parts(part, run);
    printf("where the time of rank 0 went\n");
    for (int i = 0; i < EXPLAIN_PARTS; i++) {
        printf("  %-44s %9.2f s %5.1f%%\n", part[i].words, part[i].seconds,
               100 * part[i].seconds / run->wall_seconds);
        if (e->profile.known && strcmp(part[i].name, "compute") == 0)
            explain_print_layers(e);
    }
    printf("  %-44s %9.2f s\n", "wall time", run->wall_seconds);
    if (run->earlier_seconds > 0)
        printf("  %-44s %9.2f s\n", "before that, on another number of ranks",
               run->earlier_seconds);
    if (run->ranks > 1)
        explain_print_ranks(run);
    explain_print_savings(e);
}

static void explain_print_finding(const co_finding *f, int number)
{
    printf("\n%d. %s", number, f->title);
    if (!isnan(f->gain))
        printf(": about %.0f%% of the wall time", 100 * f->gain);
    printf("  [%s]\n   ", f->cause);
    explain_wrap(f->evidence, 3);
    printf("   -> ");
    explain_wrap(f->remedy, 6);
}

static void explain_print_findings(const co_finding *finding, int n, const co_evidence *e)
{
    if (n == 0)
        printf("\nnothing looks wrong\n");
    for (int i = 0; i < n; i++)
        explain_print_finding(&finding[i], i + 1);
    if (!e->data.known)
        printf("\ndata was not looked at: %s\n", CO_SHOW(e->data.why_not));
    if (!e->weights.known)
        printf("\nweights were not looked at: %s\n", CO_SHOW(e->weights.why_not));
}

static void explain_print_run(const co_evidence_run *run, const char *dir)
{
    char steps[32], total[32];

    printf("%s: %s, %s of %s steps, %d rank%s\n", CO_SHOW(dir),
           run->failure[0] ? "failed"
           : run->finished ? "finished"
                           : "not finished",
           co_format_count(steps, sizeof(steps), run->steps),
           co_format_count(total, sizeof(total), run->total_steps), run->ranks,
           run->ranks == 1 ? "" : "s");
    if (run->failure[0])
        printf("%s\n", CO_SHOW(run->failure));
    putchar('\n');
}

/* ---- as JSON ---- */

static json_t *explain_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *explain_json_ranks(const co_evidence_run *run)
{
    json_t *list = json_array();

    for (int r = 0; run->has_times && r < run->ranks; r++) {
        const co_rank_times *t = &run->times[r];

        (void)json_array_append_new(
            list, json_pack("{s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "rank", r, "samples",
                            (json_int_t)t->samples, "data", t->data, "compute", t->compute,
                            "exchange", t->exchange, "wait", t->wait, "evaluation", t->evaluation,
                            "core", t->core, "delayed", t->delayed));
    }
    return list;
}

static json_t *explain_json_findings(const co_finding *finding, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:o}", "cause", finding[i].cause, "title",
                            finding[i].title, "evidence", finding[i].evidence, "remedy",
                            finding[i].remedy, "gain", explain_real(finding[i].gain)));
    return list;
}

static json_t *explain_json_parts(const co_evidence_run *run)
{
    explain_part part[EXPLAIN_PARTS];
    json_t *parts = json_object();

    if (run->has_times)
        explain_parts(part, run);
    for (int i = 0; run->has_times && i < EXPLAIN_PARTS; i++)
        (void)json_object_set_new(parts, part[i].name, explain_real(part[i].seconds));
    return parts;
}

/* Seconds of the run; together they are `compute`. */
static json_t *explain_json_layers(const co_evidence *e)
{
    const co_evidence_profile *p = &e->profile;
    json_t *list = json_array();

    for (size_t i = 0; e->run.has_times && p->known && i < p->n; i++) {
        const co_evidence_layer *l = &p->at[i];

        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:f, s:o}", "name", CO_UTF8(l->name), "op", CO_UTF8(l->op),
                            "seconds", e->run.times[0].compute * l->seconds / p->step, "reached",
                            explain_real(l->limit > 0 ? l->limit / l->seconds : (double)NAN)));
    }
    return list;
}

static json_t *explain_json_savings(const co_evidence *e)
{
    co_saving saving[CO_SAVINGS_MAX];
    const int n = co_explain_savings(saving, e);
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:f}", "what", saving[i].what, "seconds", saving[i].seconds));
    return list;
}

static co_status explain_print_json(const co_finding *finding, int n, const co_evidence *e,
                                    const char *dir)
{
    json_t *root = json_pack(
        "{s:s, s:b, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s}", "run_dir",
        CO_UTF8(dir), "finished", (int)e->run.finished, "failure", CO_UTF8(e->run.failure), "steps",
        (json_int_t)e->run.steps, "wall_seconds", explain_real(e->run.wall_seconds),
        "earlier_seconds", explain_real(e->run.earlier_seconds), "seconds",
        explain_json_parts(&e->run), "compute", explain_json_layers(e), "savings",
        explain_json_savings(e), "ranks", explain_json_ranks(&e->run), "findings",
        explain_json_findings(finding, n), "data_not_looked_at", CO_UTF8(e->data.why_not),
        "weights_not_looked_at", CO_UTF8(e->weights.why_not));
    const int bad = !root || json_dumpf(root, stdout, CLI_JSON_STYLE) != 0;

    json_decref(root);
    if (bad)
        return co_fail(CO_E_NOMEM, "out of memory");
    putchar('\n');
    return CO_OK;
}

static co_status explain_run(const void *options, int n, const char *const *argument)
{
    const explain_options *o = options;
    co_finding finding[CO_EXPLAIN_MAX];
    co_evidence evidence;
    co_status st = co_evidence_read(&evidence, argument[0], o->set.text, !o->quick);
    int found;

    (void)n;
    if (st == CO_OK) {
        found = co_explain_find(finding, &evidence);
        if (o->json) {
            st = explain_print_json(finding, found, &evidence, argument[0]);
        } else {
            explain_print_run(&evidence.run, argument[0]);
            explain_print_times(&evidence);
            explain_print_findings(finding, found, &evidence);
        }
    }
    co_evidence_free(&evidence);
    return st;
}

const co_command co_command_explain = {
    .name = "explain",
    .summary = "say where the time of a run went, and what looks wrong with it",
    .about =
        "Reads what the run has recorded, and looks at its data and its weights. Prints where the\n"
        "time of rank 0 went, in parts that add up to the wall time (of a run with --profile by\n"
        "layers, with what would save most), and that of each rank; then\n"
        "what is wrong with what it learned, and what would save most time, each with the figures\n"
        "that say so and the key of the config to change. Causes that it knows: wrong\n"
        "normalisation, shuffled labels, duplicated test samples, label imbalance, frozen layers,\n"
        "a learning rate that is too high, dead units, exploding gradients, augmentation that is\n"
        "too strong, a late rank, oversubscribed cores, a slow disk, a slow reader, a batch that\n"
        "is too small. Nothing is trained, and nothing is written.",
    .example = "  cohort explain runs/first\n"
               "  cohort explain runs/first --quick\n"
               "  cohort explain runs/first --json | jq '.findings[].cause'",
    .arguments = explain_arguments,
    .options = explain_option_table,
    .options_size = sizeof(explain_options),
    .run = explain_run,
};
