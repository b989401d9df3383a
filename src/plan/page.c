/*
 * page.c - a sweep as a page: curves over numbers of ranks as SVG. One file that loads nothing and
 * runs no script.
 */
#include <inttypes.h>
#include <math.h>

#include "core/fs.h"
#include "core/plural.h"
#include "plan/sweep.h"

#define PAGE_STEP   20.0 /* between lines of a chart in percent */
#define PAGE_WIDTH  640.0
#define PAGE_HEIGHT 320.0
#define PAGE_LEFT   70.0
#define PAGE_RIGHT  26.0 /* half of the last label */
#define PAGE_BOTTOM 40.0
#define PAGE_TOP    14.0
#define PAGE_LINES  8 /* colours */

static const char *const page_colours[PAGE_LINES] = {"#0b62a4", "#c44e00", "#2f7d32", "#7b3294",
                                                     "#b8860b", "#00838f", "#ad1457", "#5d4037"};

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Plan</title>\n<style>\n"
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;"
    "max-width:1000px;padding:0 1em}svg{max-width:100%;height:auto}text{font-size:12px;"
    "fill:currentColor}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "table{font-size:13px}td,th{padding:2px 6px;text-align:right;border-bottom:1px solid "
    "#8884}td:first-child,"
    "th:first-child{text-align:left}.wide{overflow-x:auto}\n</style>\n";

static void page_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '"')
            fputs("&quot;", out);
        else if ((unsigned char)*text >= ' ')
            putc(*text, out);
    }
}

/* ---- a chart: ranks by their logarithm, values from low to high ---- */

typedef struct page_chart {
    const char *title;
    double (*value)(const co_prediction *p);
    bool log;
    double low, high;
} page_chart;

static double page_efficiency(const co_prediction *p)
{
    return 100 * p->efficiency;
}

static double page_rate(const co_prediction *p)
{
    return p->samples_per_second;
}

static double page_x(double ranks)
{
    return PAGE_LEFT + (PAGE_WIDTH - PAGE_LEFT - PAGE_RIGHT) * log2(ranks) / log2(CO_SWEEP_RANKS);
}

static double page_y(const page_chart *c, double value)
{
    const double at = c->log ? log(value / c->low) / log(c->high / c->low)
                             : (value - c->low) / (c->high - c->low);

    return PAGE_TOP + (PAGE_HEIGHT - PAGE_TOP - PAGE_BOTTOM) * (1 - fmin(fmax(at, 0), 1));
}

static void page_tick(FILE *out, const page_chart *c, double value)
{
    const double y = page_y(c, value);

    fprintf(out,
            "<path d=\"M%.0f %.1fH%.0f\" stroke=\"#8884\"/><text x=\"%.0f\" y=\"%.1f\" "
            "text-anchor=\"end\">%.4g</text>\n",
            PAGE_LEFT, y, PAGE_WIDTH - PAGE_RIGHT, PAGE_LEFT - 6, y + 4, value);
}

static void page_axes(FILE *out, const page_chart *c)
{
    const int ticks =
        (int)lround(c->log ? log10(c->high / c->low) : (c->high - c->low) / PAGE_STEP);

    for (int i = 0; i <= ticks; i++)
        page_tick(out, c, c->log ? c->low * pow(10, i) : c->low + PAGE_STEP * i);
    for (int64_t ranks = 1; ranks <= CO_SWEEP_RANKS; ranks *= 4)
        fprintf(out, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%" PRId64 "</text>\n",
                page_x((double)ranks), PAGE_HEIGHT - PAGE_BOTTOM + 18, ranks);
    fprintf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">ranks</text>\n",
            PAGE_WIDTH / 2, PAGE_HEIGHT - 4);
}

/* What the cluster has is drawn through, what lies beyond it dotted. A point alone is a round dot.
 */
static void page_curve(FILE *out, const page_chart *c, const co_sweep *s, size_t i, bool beyond)
{
    const co_sweep_line *line = &s->line[i];
    bool begun = false;

    fprintf(out,
            "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%d\" stroke-linecap=\"round\"%s d=\"",
            page_colours[i % PAGE_LINES], line->n == 1 ? 6 : 2,
            beyond ? " stroke-dasharray=\"1 5\"" : "");
    for (size_t k = 0; k < line->n; k++) {
        const co_prediction *p = &line->point[k];
        const bool last = k + 1 == line->n || line->point[k + 1].nodes > s->cluster->nodes;

        if (p->ranks > CO_SWEEP_RANKS ||
            (beyond ? p->nodes <= s->cluster->nodes && !last : p->nodes > s->cluster->nodes))
            continue;
        fprintf(out, "%c%.1f %.1f", begun ? 'L' : 'M', page_x((double)p->ranks),
                page_y(c, c->value(p)));
        begun = true;
    }
    fputs(begun ? "h0\"/>\n" : "M0 0\"/>\n", out);
}

static void page_put_chart(FILE *out, const page_chart *c, const co_sweep *s)
{
    fprintf(out, "<h2>%s</h2>\n<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n",
            c->title, PAGE_WIDTH, PAGE_HEIGHT, c->title);
    page_axes(out, c);
    for (size_t i = 0; i < s->n_line; i++) {
        page_curve(out, c, s, i, false);
        page_curve(out, c, s, i, true);
    }
    fputs("</svg>\n", out);
}

/* Decades that hold all rates. */
static void page_range(page_chart *c, const co_sweep *s)
{
    c->low = INFINITY;
    for (size_t i = 0; i < s->n_line; i++)
        for (size_t k = 0; k < s->line[i].n; k++) {
            c->low = fmin(c->low, page_rate(&s->line[i].point[k]));
            c->high = fmax(c->high, page_rate(&s->line[i].point[k]));
        }
    c->low = isfinite(c->low) ? pow(10, floor(log10(c->low))) : 1;
    c->high = fmax(pow(10, ceil(log10(fmax(c->high, 1)))), 10 * c->low);
}

static void page_legend(FILE *out, const co_sweep *s)
{
    fputs("<ul>\n", out);
    for (size_t i = 0; i < s->n_line; i++) {
        fprintf(out, "<li style=\"color:%s\">", page_colours[i % PAGE_LINES]);
        page_text(out, s->line[i].choice->title);
        if (s->line[i].batch > 0)
            fprintf(out, ", %.4g samples a rank", s->line[i].batch);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

static void page_table(FILE *out, const co_sweep *s, const co_sweep_line *line)
{
    fputs("<h2>", out);
    page_text(out, line->choice->title);
    fputs("</h2>\n<div class=\"wide\"><table><tr><th>ranks<th>step, ms<th>samples/s<th>efficiency"
          "<th>compute<th>exchange<th>loading<th>stragglers<th>binds<th>epoch, s<th>price</tr>\n",
          out);
    for (size_t i = 0; i < line->n; i++) {
        const co_prediction *p = &line->point[i];

        fprintf(out, "<tr><td>%" PRId64 "%s<td>%.4g<td>%.4g<td>%.0f%%", p->ranks,
                co_sweep_has(s, p) ? "" : " *", p->step * 1e3, p->samples_per_second,
                100 * p->efficiency);
        for (int k = 0; k < CO_TERMS; k++)
            fprintf(out, "<td>%.4g", p->term[k] * 1e3);
        fprintf(out, "<td>%s<td>%.4g<td>%.3g</tr>\n", co_plan_terms[p->binds], p->epoch, p->price);
    }
    fputs("</table></div>\n", out);
}

co_status co_sweep_write_page(const char *path, const co_sweep *s)
{
    const page_chart efficiency = {"Efficiency, %", page_efficiency, false, 0, 100};
    page_chart rate = {.title = "Samples per second", .value = page_rate, .log = true};
    co_atomic_file *file;
    FILE *out;

    CO_TRY(co_atomic_open(&file, path));
    out = co_atomic_stream(file);
    page_range(&rate, s);
    fputs(page_head, out);
    fputs("<h1>", out);
    page_text(out, s->work->model);
    fputs(" on ", out);
    page_text(out, s->cluster->name);
    fprintf(out,
            "</h1>\n<p>%" PRId64 " node%s of %" PRId64 " rank%s. Dotted, and * in the tables: "
            "more than the cluster has.</p>\n",
            s->cluster->nodes, co_plural((uint64_t)s->cluster->nodes), s->each,
            co_plural((uint64_t)s->each));
    page_legend(out, s);
    page_put_chart(out, &efficiency, s);
    page_put_chart(out, &rate, s);
    for (size_t i = 0; i < s->n_line; i++)
        page_table(out, s, &s->line[i]);
    return co_atomic_commit(file);
}
