/* plot.h - curves and bars in the cells of a terminal. */
#ifndef CO_LIVE_PLOT_H
#define CO_LIVE_PLOT_H

#include "live/ranks.h"
#include "live/screen.h"
#include "report/page_table.h"

typedef struct co_plot_area {
    int row, column, height, width;
} co_plot_area;

/* A column of a table by its first one, with a title and the lowest and the highest value beside
   it: in Braille characters, of 2 x 4 dots, or in ASCII where the locale has no others. */
void co_plot_curve(co_screen *screen, const co_plot_area *area, const char *title,
                   const co_page_table *table, size_t column, co_style style);
/* A bar of `width` cells filled as far as `share`, from 0 to 1. */
void co_plot_progress(co_screen *screen, int row, int column, int width, double share);
/* What a rank was doing: parts of a bar, each with a mark and a style of its own. */
void co_plot_doings(co_screen *screen, int row, int column, int width,
                    const unsigned count[CO_DOINGS]);
/* What the marks mean; returns the column after it. */
int co_plot_legend(co_screen *screen, int row, int column);

#endif
