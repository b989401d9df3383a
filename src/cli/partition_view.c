/*
 * partition_view.c - prints and plots an epoch's samples by rank and label.
 *
 * Does not know how the samples were chosen.
 */
#include "cli/partition_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/machine.h"
#include "core/plural.h"
#include "launch/child.h"
#include "telemetry/format.h"

#define VIEW_WIDTH        100 /* of a line */
#define VIEW_RANK_COLUMN  10
#define VIEW_MAX_COLUMNS  6   /* with more ranks, no columns of numbers */
#define VIEW_MAX_ROWS     100 /* of a table */
#define VIEW_MAX_KEYS     24  /* of a legend */
#define VIEW_PLOT_SECONDS 120
#define VIEW_MAX_SAMPLES  12 /* in a list */

static const char view_digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* With many ranks, digits repeat. */
static int view_digit(int rank)
{
    return view_digits[(size_t)rank % (sizeof(view_digits) - 1)];
}

static uint64_t view_label(const partition_view *v, int rank, int64_t label)
{
    return v->label[rank * v->classes + label];
}

static uint64_t view_label_total(const partition_view *v, int64_t label)
{
    uint64_t sum = 0;

    for (int r = 0; r < v->ranks; r++)
        sum += view_label(v, r, label);
    return sum;
}

/* How many of `width` characters represent n of `most`. */
static int view_cells(uint64_t n, uint64_t most, int width)
{
    return most ? (int)((double)n / (double)most * width + 0.5) : 0;
}

static void view_repeat(FILE *out, int character, int n)
{
    for (; n > 0; n--)
        fputc(character, out);
}

static void view_print_ranks(FILE *out, const partition_view *v)
{
    uint64_t most = 0;
    char samples[32], largest[32], idle[32];

    for (int r = 0; r < v->ranks; r++)
        most = v->rank[r].samples > most ? v->rank[r].samples : most;
    fprintf(out, "\n rank    samples   share  most a step  idle steps\n");
    for (int r = 0; r < v->ranks && r < VIEW_MAX_ROWS; r++) {
        const partition_view_rank *rank = &v->rank[r];

        fprintf(out, "%5d %10s %6.1f%% %12s %11s", r,
                co_format_count(samples, sizeof(samples), rank->samples),
                100 * (double)rank->samples / (double)v->taken,
                co_format_count(largest, sizeof(largest), rank->most),
                co_format_count(idle, sizeof(idle), rank->idle));
        fputs(rank->samples ? "  " : "", out);
        view_repeat(out, view_digit(r), view_cells(rank->samples, most, 48));
        fputc('\n', out);
    }
    if (v->ranks > VIEW_MAX_ROWS)
        fprintf(out, "  ... and %d more rank%s\n", v->ranks - VIEW_MAX_ROWS,
                co_plural((uint64_t)(v->ranks - VIEW_MAX_ROWS)));
}

/* One label's bar; rounding the running sum makes the parts add up to the whole. */
static void view_print_bar(FILE *out, const partition_view *v, int64_t label, uint64_t most,
                           int width)
{
    uint64_t sum = 0;
    int done = 0;

    for (int r = 0; r < v->ranks; r++) {
        int to;

        sum += view_label(v, r, label);
        to = view_cells(sum, most, width);
        view_repeat(out, view_digit(r), to - done);
        done = to;
    }
}

static void view_print_labels(FILE *out, const partition_view *v)
{
    const int columns = v->ranks <= VIEW_MAX_COLUMNS ? v->ranks : 0;
    const int width = VIEW_WIDTH - 18 - columns * VIEW_RANK_COLUMN;
    uint64_t most = 0;
    char text[32];

    for (int64_t c = 0; c < v->classes; c++) {
        const uint64_t n = view_label_total(v, c);

        most = n > most ? n : most;
    }
    fprintf(out, "\nlabel    samples");
    for (int r = 0; r < columns; r++)
        fprintf(out, "    rank %d", r);
    fputc('\n', out);
    for (int64_t c = 0; c < v->classes && c < VIEW_MAX_ROWS; c++) {
        fprintf(out, "%5" PRId64 " %10s", c,
                co_format_count(text, sizeof(text), view_label_total(v, c)));
        for (int r = 0; r < columns; r++)
            fprintf(out, "%*s", VIEW_RANK_COLUMN,
                    co_format_count(text, sizeof(text), view_label(v, r, c)));
        fputs(view_label_total(v, c) ? "  " : "", out);
        view_print_bar(out, v, c, most, width);
        fputc('\n', out);
    }
    if (v->classes > VIEW_MAX_ROWS)
        fprintf(out, "  ... and %" PRId64 " more labels (--csv prints all)\n",
                v->classes - VIEW_MAX_ROWS);
    else if (columns == 0)
        fprintf(out, "  (--csv prints each rank's numbers)\n");
}

/* Print the samples that are taken never, or more than once, if there are any. */
static void view_print_uses(FILE *out, const partition_view *v, bool never)
{
    uint64_t n = 0;
    char text[32];

    for (uint64_t i = 0; i < v->count; i++)
        n += never ? v->uses[i] == 0 : v->uses[i] > 1;
    if (n == 0)
        return;
    fprintf(out, "  %s %s (%s):", co_format_count(text, sizeof(text), n),
            never ? "not taken" : "more than once", never ? v->drops : v->repeats);
    n = 0;
    for (uint64_t i = 0; i < v->count && n <= VIEW_MAX_SAMPLES; i++) {
        if (never ? v->uses[i] > 0 : v->uses[i] <= 1)
            continue;
        if (n++ < VIEW_MAX_SAMPLES)
            fprintf(out, " %" PRIu64, i);
        else
            fprintf(out, " ...");
    }
    fputc('\n', out);
}

static void view_print_proof(FILE *out, const partition_view *v)
{
    uint64_t once = 0;
    char taken[32], steps[32], count[32];

    for (uint64_t i = 0; i < v->count; i++)
        once += v->uses[i] == 1;
    fprintf(out, "\nAn epoch takes %s sample%s in %s step%s",
            co_format_count(taken, sizeof(taken), v->taken), co_plural(v->taken),
            co_format_count(steps, sizeof(steps), v->steps), co_plural((uint64_t)v->steps));
    if (once == v->count) {
        fprintf(out, ": each of the set exactly once.\n");
        return;
    }
    fprintf(out, ". Of the %s of the set:\n  %s exactly once\n",
            co_format_count(count, sizeof(count), v->count),
            co_format_count(taken, sizeof(taken), once));
    view_print_uses(out, v, false);
    view_print_uses(out, v, true);
}

void partition_view_print(FILE *out, const partition_view *view)
{
    char count[32], batch[32];

    fprintf(out, "data         %s: %s samples, ", view->data,
            co_format_count(count, sizeof(count), view->count));
    if (view->has_labels)
        fprintf(out, "%" PRId64 " labels\n", view->classes);
    else
        fprintf(out, "without labels\n");
    fprintf(out, "partition    %s\n", view->partition);
    fprintf(out, "batch        %s over %d rank%s\n",
            co_format_count(batch, sizeof(batch), view->batch), view->ranks,
            co_plural((uint64_t)view->ranks));
    view_print_ranks(out, view);
    if (view->has_labels)
        view_print_labels(out, view);
    view_print_proof(out, view);
}

void partition_view_csv(FILE *out, const partition_view *view)
{
    char label[32] = "";

    fprintf(out, "rank,label,samples\n");
    for (int r = 0; r < view->ranks; r++)
        for (int64_t c = 0; c < view->classes; c++) {
            if (view->has_labels)
                snprintf(label, sizeof(label), "%" PRId64, c);
            fprintf(out, "%d,%s,%" PRIu64 "\n", r, label, view_label(view, r, c));
        }
}

/* gnuplot expands nothing in single quotes; a quote is doubled. */
static void view_put_text(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    fputc('\'', out);
}

/* One row per rank: its number, then its samples of each label. */
static void view_put_data(FILE *out, const partition_view *v)
{
    fprintf(out, "$parts << EOD\n");
    for (int r = 0; r < v->ranks; r++) {
        fprintf(out, "%d", r);
        for (int64_t c = 0; c < v->classes; c++)
            fprintf(out, " %" PRIu64, view_label(v, r, c));
        fputc('\n', out);
    }
    fprintf(out, "EOD\n");
}

static void view_put_script(FILE *out, const char *path, const char *terminal,
                            const partition_view *v)
{
    view_put_data(out, v);
    fprintf(out, "set terminal %s size 900,500\nset output ", terminal);
    view_put_text(out, path);
    fprintf(out, "\nset title ");
    view_put_text(out, v->partition);
    fprintf(out,
            " noenhanced\nset xlabel 'rank'\nset ylabel 'samples of an epoch'\n"
            "set yrange [0:*]\nset style data histograms\nset style histogram rowstacked\n"
            "set style fill solid 0.9\nset boxwidth 0.8\nset key outside right\n"
            "%splot for [c=2:%" PRId64 "] $parts using c:xtic(1) title sprintf('label %%d', c-2) "
            "lc rgb hsv2rgb((c - 2.0) / %" PRId64 ", 0.6, c %% 2 ? 0.65 : 0.9)\n",
            !v->has_labels || v->classes > VIEW_MAX_KEYS ? "unset key\n" : "", v->classes + 1,
            v->classes);
}

/* The script is a temporary file without a name; gnuplot inherits its descriptor. */
static co_status view_run_gnuplot(FILE *script, const char *path)
{
    char name[32];
    const char *const argv[] = {"gnuplot", name, NULL};
    const co_child child = {
        .file = "gnuplot", .argv = argv, .log = STDERR_FILENO, .limit_seconds = VIEW_PLOT_SECONDS};
    co_child_ending ending;
    co_child_guard guard;
    co_status st;

    snprintf(name, sizeof(name), "/dev/fd/%d", fileno(script));
    co_child_guard_enter(&guard);
    st = co_child_run(&ending, &guard, &child);
    co_child_guard_leave(&guard);
    if (st == CO_OK && ending.wait != 0)
        st = co_fail(CO_E_IO, "%s: gnuplot could not draw it", path);
    return st;
}

co_status partition_view_draw(const char *path, const char *terminal, const partition_view *view)
{
    char program[4096];
    FILE *script;
    co_status st;

    if (!machine_find_program(program, sizeof(program), "gnuplot"))
        return co_fail(CO_E_FAILED, "%s: gnuplot draws it, and is not here; install gnuplot-nox",
                       path);
    script = tmpfile();
    if (!script)
        return co_fail(CO_E_IO, "cannot make a temporary file for gnuplot: %s", strerror(errno));
    view_put_script(script, path, terminal, view);
    if (fflush(script) != 0)
        st = co_fail(CO_E_IO, "cannot write a temporary file for gnuplot: %s", strerror(errno));
    else
        st = view_run_gnuplot(script, path);
    fclose(script);
    return st;
}
