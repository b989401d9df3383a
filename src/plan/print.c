/* print.c - a sweep as text: tables, the best, efficiency as a chart of characters. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/plural.h"
#include "core/text.h"
#include "plan/sweep.h"
#include "telemetry/format.h"

#define PRINT_ROWS   11 /* of the chart: 100% to 0% */
#define PRINT_COLUMN 5  /* characters for a doubling of ranks */
#define PRINT_MARKS  "abcdefghijklmnopqrstuvwxyz"

static char *print_bytes(char *out, size_t size, double bytes)
{
    if (bytes > 0)
        return co_format_bytes(out, size, (uint64_t)bytes);
    snprintf(out, size, "-");
    return out;
}

static void print_work(FILE *out, const co_sweep *s)
{
    const co_plan_work *w = s->work;
    char count[32];

    fprintf(out, "cluster    %s: %" PRId64 " node%s of %" PRId64 " rank%s\n",
            CO_SHOW(s->cluster->name), s->cluster->nodes, co_plural((uint64_t)s->cluster->nodes),
            s->each, co_plural((uint64_t)s->each));
    fprintf(out, "network    %s, %s weights\n", CO_SHOW(w->model),
            co_format_count(count, sizeof(count), w->n_weight));
    fprintf(out,
            "a rank     %.4g samples: forward %.4g ms, backward %.4g, update %.4g, rest %.4g"
            " (%s)\n",
            w->batch, w->forward * 1e3, w->backward * 1e3, w->update * 1e3, w->rest * 1e3,
            CO_SHOW(w->source));
    if (s->cluster->variation >= 0)
        fprintf(out, "steps      standard deviation %.3g of the mean, by the cluster file\n",
                s->cluster->variation);
    else if (w->n_draw)
        fprintf(out, "steps      %zu measured, the slowest %.2f times their mean\n", w->n_draw,
                w->draw[w->n_draw - 1]);
    else
        fprintf(out,
                "steps      no stragglers: a profile with log_every: 1 would show how they vary\n");
}

static void print_money(char out[32], const co_sweep *s, double price)
{
    if (price > 0)
        snprintf(out, 32, "%s%.3g", s->cluster->currency, price);
    else
        snprintf(out, 32, "-");
}

static void print_point(FILE *out, const co_sweep *s, const co_prediction *p)
{
    char epoch[32] = "-", price[32], wire[32], memory[32];

    print_money(price, s, p->price);
    if (p->epoch > 0)
        co_format_seconds(epoch, sizeof(epoch), p->epoch);
    fprintf(out,
            "%7" PRId64 " %6" PRId64 " %6.4g %9.4g %10.4g %4.0f%%  %3.0f %3.0f %3.0f %3.0f  %-10s "
            "%12s %8s %10s %10s%s\n",
            p->ranks, p->nodes, p->batch, p->step * 1e3, p->samples_per_second, 100 * p->efficiency,
            100 * p->term[0] / p->step, 100 * p->term[1] / p->step, 100 * p->term[2] / p->step,
            100 * p->term[3] / p->step, co_plan_terms[p->binds], epoch, price,
            print_bytes(wire, sizeof(wire), p->wire),
            print_bytes(memory, sizeof(memory), p->memory), p->fits ? "" : "  too much memory");
}

static void print_line(FILE *out, const co_sweep *s, size_t i)
{
    const co_sweep_line *line = &s->line[i];

    fprintf(out, "\n%c) %s%s\n", PRINT_MARKS[i % 26], CO_SHOW(line->choice->title),
            line->choice->measured ? ""
            : line->choice->kind == CO_CHOICE_SHARED
                ? " (its traffic over memory is not known: never proposed)"
                : " (what it computes is not measured: left out)");
    fprintf(out, "  ranks  nodes  batch   step ms  samples/s  eff.    %% of a step   binds       "
                 "      epoch    price node sends  rank has\n");
    for (size_t k = 0; k < line->n && line->point[k].nodes <= s->cluster->nodes; k++)
        print_point(out, s, &line->point[k]);
    if (line->n == 0)
        fprintf(out, "  lacks %s\n", line->lacks);
    else if (line->point[0].nodes > s->cluster->nodes)
        fprintf(out, "  more ranks than the cluster has: they are in the chart\n");
}

static void print_best(FILE *out, const co_sweep *s, const char *what, const co_sweep_line *line,
                       const co_prediction *p)
{
    char epoch[32] = "-", price[32];

    if (!p) {
        fprintf(out, "%s: none fits\n", what);
        return;
    }
    print_money(price, s, p->price);
    if (p->epoch > 0)
        co_format_seconds(epoch, sizeof(epoch), p->epoch);
    fprintf(out,
            "%s: %s on %" PRId64 " rank%s of %" PRId64 " node%s, %.4g samples each: epoch %s, "
            "price %s; %s binds\n",
            what, CO_SHOW(line->choice->title), p->ranks, co_plural((uint64_t)p->ranks), p->nodes,
            co_plural((uint64_t)p->nodes), p->batch, epoch, price, co_plan_terms[p->binds]);
}

/* ---- the chart ---- */

/* Where a number of ranks is; -1: not in the chart. */
static int print_column(int64_t ranks)
{
    return ranks <= CO_SWEEP_RANKS ? (int)lround(log2((double)ranks) * PRINT_COLUMN) : -1;
}

static void print_chart(FILE *out, const co_sweep *s)
{
    enum { WIDTH = 14 * PRINT_COLUMN + 1 };
    char cell[PRINT_ROWS][WIDTH + 1];

    memset(cell, ' ', sizeof(cell));
    for (size_t i = s->n_line; i-- > 0;)
        for (size_t k = 0; k < s->line[i].n; k++) {
            const co_prediction *p = &s->line[i].point[k];
            const double height = fmin(fmax(p->efficiency, 0), 1) * (PRINT_ROWS - 1);
            const int column = print_column(p->ranks);

            if (column >= 0)
                cell[PRINT_ROWS - 1 - (int)lround(height)][column] = PRINT_MARKS[i % 26];
        }
    fprintf(out, "\nefficiency over ranks (to ranks that need not wait for each other)\n");
    for (int row = 0; row < PRINT_ROWS; row++)
        fprintf(out, "%4d%% |%.*s\n", 100 - 10 * row, WIDTH, cell[row]);
    fprintf(out, "      +");
    for (int64_t ranks = 1; ranks <= CO_SWEEP_RANKS; ranks *= 2)
        fprintf(out, "%s", ranks < CO_SWEEP_RANKS ? "|----" : "|");
    fprintf(out, "\n       ");
    for (int64_t ranks = 1; ranks <= CO_SWEEP_RANKS; ranks *= 4)
        fprintf(out, "%-*" PRId64, 2 * PRINT_COLUMN, ranks);
    fputc('\n', out);
    if (s->cluster->nodes * s->each < CO_SWEEP_RANKS)
        fprintf(out, "beyond %" PRId64 " ranks: if there were more such nodes\n",
                s->cluster->nodes * s->each);
}

void co_sweep_print(FILE *out, const co_sweep *s)
{
    print_work(out, s);
    for (size_t i = 0; i < s->n_line; i++)
        print_line(out, s, i);
    fputs("\n% of a step: compute, exchange, loading, stragglers\n\n", out);
    print_best(out, s, "shortest epoch", s->fastest_line, s->fastest);
    if (s->cluster->price > 0)
        print_best(out, s, "lowest price", s->cheapest_line, s->cheapest);
    print_chart(out, s);
}
