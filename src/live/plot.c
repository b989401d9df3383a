/* plot.c - dots of Braille characters, and bars of blocks. */
#include "live/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"

#define PLOT_BRAILLE 0x2800u
#define PLOT_LABEL   8 /* columns of the values beside a curve, a blank included */

typedef struct plot_range {
    double low, high;
} plot_range;

/* Dots: bits of a Braille character by column and row in it. */
static const uint8_t plot_dots[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

typedef struct plot_canvas {
    int width, height; /* cells */
    uint8_t dot[CO_SCREEN_MAX_ROWS][CO_SCREEN_MAX_COLUMNS];
} plot_canvas;

static double plot_at(const co_page_table *table, size_t row, size_t column)
{
    return table->value[row * table->columns + column];
}

static plot_range plot_find_range(const co_page_table *table, size_t column)
{
    plot_range range = {INFINITY, -INFINITY};

    for (size_t i = 0; i < table->rows; i++) {
        const double v = plot_at(table, i, column);

        if (isfinite(v)) {
            range.low = fmin(range.low, v);
            range.high = fmax(range.high, v);
        }
    }
    return range;
}

/* Dots of a column of them, either way. */
static void plot_column(plot_canvas *canvas, int x, int from, int to)
{
    const int low = from < to ? from : to, high = from < to ? to : from;

    for (int y = low; y <= high; y++)
        canvas->dot[y / 4][x / 2] |= plot_dots[x % 2][y % 4];
}

/* A line between two points, the columns between them included. */
static void plot_line(plot_canvas *canvas, int x, int y, int to_x, int to_y)
{
    const int n = to_x > x ? to_x - x : x - to_x;
    int before = y;

    for (int i = 1; i < n; i++) {
        const int at = y + (to_y - y) * i / n;

        plot_column(canvas, to_x > x ? x + i : x - i, before, at);
        before = at;
    }
    plot_column(canvas, to_x, before, to_y);
}

/* Which of `n` dots a value has, from `low` on; within them whatever a file says. */
static int plot_dot(double value, const plot_range *range, int n)
{
    const double at = (value - range->low) / (range->high - range->low);

    return at >= 0 && at <= 1 ? (int)(at * (n - 1) + 0.5) : n / 2;
}

static void plot_points(plot_canvas *canvas, const co_page_table *table, size_t column,
                        const plot_range *y)
{
    const int width = 2 * canvas->width, height = 4 * canvas->height;
    const plot_range x = plot_find_range(table, 0);
    int from_x = -1, from_y = 0;

    for (size_t i = 0; i < table->rows; i++) {
        const double v = plot_at(table, i, column), at = plot_at(table, i, 0);
        int px, py;

        if (!isfinite(v) || !isfinite(at))
            continue;
        px = plot_dot(at, &x, width);
        py = height - 1 - plot_dot(v, y, height);
        if (from_x < 0)
            plot_column(canvas, px, py, py);
        else
            plot_line(canvas, from_x, from_y, px, py);
        from_x = px;
        from_y = py;
    }
}

/* A cell's dots in ASCII: its upper half, its lower one, or both. */
static uint32_t plot_ascii(uint8_t dots)
{
    const bool upper = dots & 0x1b, lower = dots & 0xe4;

    return upper && lower ? ':' : upper ? '\'' : '.';
}

static void plot_label(co_screen *screen, int row, int column, double value)
{
    const double size = fabs(value);
    char number[32], text[48];

    if (size >= 1e9 || (size > 0 && size < 1e-3))
        snprintf(number, sizeof(number), "%.1e", value);
    else if (size >= 1e6)
        snprintf(number, sizeof(number), "%.4gM", value / 1e6);
    else if (size >= 1e4)
        snprintf(number, sizeof(number), "%.4gk", value / 1e3);
    else
        snprintf(number, sizeof(number), "%.4g", value);
    snprintf(text, sizeof(text), "%*s", PLOT_LABEL - 1, number);
    co_screen_put(screen, row, column, CO_STYLE_FAINT, text);
}

void co_plot_curve(co_screen *screen, const co_plot_area *area, const char *title,
                   const co_page_table *table, size_t column, co_style style)
{
    const plot_range y = plot_find_range(table, column);
    plot_canvas *canvas;

    co_screen_put(screen, area->row, area->column + PLOT_LABEL, CO_STYLE_BOLD, title);
    if (!(y.low <= y.high) || area->height < 3 || area->width < PLOT_LABEL + 4)
        return;
    canvas = co_calloc(1, sizeof(*canvas));
    if (!canvas)
        return;
    canvas->width = area->width - PLOT_LABEL;
    canvas->height = area->height - 1;
    plot_points(canvas, table, column, &y);
    for (int r = 0; r < canvas->height; r++)
        for (int c = 0; c < canvas->width; c++) {
            const uint8_t dots = canvas->dot[r][c];

            if (dots)
                co_screen_put_code(screen, area->row + 1 + r, area->column + PLOT_LABEL + c, style,
                                   screen->has_unicode ? PLOT_BRAILLE + dots : plot_ascii(dots));
        }
    plot_label(screen, area->row + 1, area->column, y.high);
    if (y.low < y.high)
        plot_label(screen, area->row + canvas->height, area->column, y.low);
    co_free(canvas);
}

void co_plot_progress(co_screen *screen, int row, int column, int width, double share)
{
    const int full = (int)(fmin(fmax(share, 0), 1) * width + 0.5);

    for (int i = 0; i < width; i++)
        co_screen_put_code(screen, row, column + i, i < full ? CO_STYLE_BLUE : CO_STYLE_FAINT,
                           screen->has_unicode ? (i < full ? 0x2588u : 0x2591u)
                                               : (i < full ? '#' : '-'));
}

static const struct {
    const char *name;
    uint32_t mark, ascii;
    co_style style;
} plot_parts[CO_DOINGS] = {
    [CO_DOING_COMPUTING] = {"computing", 0x2588, '#', CO_STYLE_BLUE},
    [CO_DOING_WAITING] = {"waiting for ranks", 0x2592, '=', CO_STYLE_YELLOW},
    [CO_DOING_READING] = {"reading data", 0x2593, '+', CO_STYLE_GREEN},
    [CO_DOING_EVALUATING] = {"evaluating", 0x2584, 'e', CO_STYLE_MAGENTA},
    [CO_DOING_SAVING] = {"saving", 0x2580, 's', CO_STYLE_CYAN},
    [CO_DOING_OTHER] = {"other", 0x2591, '-', CO_STYLE_FAINT},
};

void co_plot_doings(co_screen *screen, int row, int column, int width,
                    const unsigned count[CO_DOINGS])
{
    unsigned all = 0, before = 0;

    for (int i = 0; i < CO_DOINGS; i++)
        all += count[i];
    for (int i = 0; i < CO_DOINGS && all; i++) {
        const int from = (int)((double)before * width / all + 0.5);
        const int to = (int)((double)(before + count[i]) * width / all + 0.5);

        for (int c = from; c < to; c++)
            co_screen_put_code(screen, row, column + c, plot_parts[i].style,
                               screen->has_unicode ? plot_parts[i].mark : plot_parts[i].ascii);
        before += count[i];
    }
}

int co_plot_legend(co_screen *screen, int row, int column)
{
    for (int i = 0; i < CO_DOINGS; i++) {
        co_screen_put_code(screen, row, column, plot_parts[i].style,
                           screen->has_unicode ? plot_parts[i].mark : plot_parts[i].ascii);
        column = co_screen_put(screen, row, column + 2, CO_STYLE_FAINT, plot_parts[i].name) + 3;
    }
    return column;
}
