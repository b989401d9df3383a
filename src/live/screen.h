/* screen.h - the cells of a terminal. A frame is put together in memory, and only the cells that
   differ from what is shown are written, in one piece: nothing flickers. */
#ifndef CO_LIVE_SCREEN_H
#define CO_LIVE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

/* How a cell looks. Without colour the last ones are as the first. */
typedef enum co_style {
    CO_STYLE_PLAIN,
    CO_STYLE_BOLD,
    CO_STYLE_FAINT,
    CO_STYLE_BLUE,
    CO_STYLE_YELLOW,
    CO_STYLE_GREEN,
    CO_STYLE_MAGENTA,
    CO_STYLE_CYAN,
    CO_STYLE_RED,
    CO_STYLES
} co_style;

typedef struct co_screen {
    int columns, rows;
    bool has_colour, has_unicode; /* NO_COLOR; the locale's characters */
    struct co_screen_state *state;
} co_screen;

#define CO_SCREEN_MAX_COLUMNS 400
#define CO_SCREEN_MAX_ROWS    200

/* Take the terminal that standard input and output are; CO_E_USAGE: they are none. */
co_status co_screen_open(co_screen *screen);
/* Give it back as it was. Takes one that was not opened. */
void co_screen_close(co_screen *screen);
/* Whether the terminal has another size than before, which `screen` has now. */
bool co_screen_has_resized(co_screen *screen);
/* Begin an empty frame. */
void co_screen_clear(co_screen *screen);
/* Put UTF-8 text from a cell on, as far as the row has room; returns the column after it.
   Characters that would take two columns become '?'. */
int co_screen_put(co_screen *screen, int row, int column, co_style style, const char *text);
/* One character. */
void co_screen_put_code(co_screen *screen, int row, int column, co_style style, uint32_t code);
/* Show the frame; `anew`: every cell. CO_E_IO: the terminal is gone. */
co_status co_screen_show(co_screen *screen, bool anew);

/* A key, waited for so long: its byte, CO_KEY_..., CO_KEY_NONE, or CO_KEY_END where input has
 * ended. */
enum { CO_KEY_NONE = -1, CO_KEY_END = -2, CO_KEY_LEFT = 256, CO_KEY_RIGHT };
int co_screen_key(const co_screen *screen, int milliseconds);

#endif
