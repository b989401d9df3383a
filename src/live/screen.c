/* screen.c - a terminal by the control sequences that all of today's know (ECMA-48, and xterm's
   alternate screen). */
#include "live/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/utf8.h"

#define SCREEN_CELLS (CO_SCREEN_MAX_COLUMNS * CO_SCREEN_MAX_ROWS)
/* Of a cell: style, cursor and character. */
#define SCREEN_BYTES ((size_t)SCREEN_CELLS * 32 + 64)

/* Alternate screen, no cursor, no wrapping; and back. */
#define SCREEN_ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define SCREEN_LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"
/* Terminals that know this show what is between at once; others ignore it. */
#define SCREEN_BEGIN "\033[?2026h"
#define SCREEN_END   "\033[?2026l"

typedef struct screen_cell {
    uint32_t code; /* 0: a blank */
    uint8_t style;
} screen_cell;

struct co_screen_state {
    struct termios before;
    screen_cell next[CO_SCREEN_MAX_ROWS][CO_SCREEN_MAX_COLUMNS];
    screen_cell shown[CO_SCREEN_MAX_ROWS][CO_SCREEN_MAX_COLUMNS];
    char out[SCREEN_BYTES];
    size_t n;
};

static const char *const screen_styles[CO_STYLES] = {"0",    "0;1",  "0;2",  "0;34", "0;33",
                                                     "0;32", "0;35", "0;36", "0;31"};

static bool screen_write(const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t got = write(STDOUT_FILENO, bytes, n);

        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return false;
        bytes += got;
        n -= (size_t)got;
    }
    return true;
}

/* By the variables that decide about the locale, in their order. */
static bool screen_has_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

bool co_screen_has_resized(co_screen *screen)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    int columns, rows;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    columns = size.ws_col < CO_SCREEN_MAX_COLUMNS ? size.ws_col : CO_SCREEN_MAX_COLUMNS;
    rows = size.ws_row < CO_SCREEN_MAX_ROWS ? size.ws_row : CO_SCREEN_MAX_ROWS;
    if (columns == screen->columns && rows == screen->rows)
        return false;
    screen->columns = columns;
    screen->rows = rows;
    return true;
}

co_status co_screen_open(co_screen *screen)
{
    const char *colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    struct termios raw;

    *screen = (co_screen){.has_colour = !colour || !*colour, .has_unicode = screen_has_unicode()};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return co_fail(CO_E_USAGE, "--tui needs a terminal as standard input and output; without "
                                   "it, `cohort watch` serves a page");
    if (kind && strcmp(kind, "dumb") == 0)
        return co_fail(CO_E_USAGE, "TERM=dumb says that nothing can be drawn on this terminal; set "
                                   "TERM to its kind, or leave out --tui for a page");
    screen->state = co_calloc(1, sizeof(*screen->state));
    if (!screen->state)
        return CO_E_NOMEM;
    if (tcgetattr(STDIN_FILENO, &screen->state->before) != 0) {
        co_free(screen->state);
        screen->state = NULL;
        return co_fail(CO_E_IO, "the terminal: %s", strerror(errno));
    }
    raw = screen->state->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    (void)screen_write(SCREEN_ENTER, strlen(SCREEN_ENTER));
    (void)co_screen_has_resized(screen);
    return CO_OK;
}

void co_screen_close(co_screen *screen)
{
    if (!screen->state)
        return;
    (void)screen_write(SCREEN_LEAVE, strlen(SCREEN_LEAVE));
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->state->before);
    co_free(screen->state);
    screen->state = NULL;
}

void co_screen_clear(co_screen *screen)
{
    memset(screen->state->next, 0, sizeof(screen->state->next));
}

void co_screen_put_code(co_screen *screen, int row, int column, co_style style, uint32_t code)
{
    screen_cell *cell;

    if (row < 0 || row >= screen->rows || column < 0 || column >= screen->columns)
        return;
    cell = &screen->state->next[row][column];
    if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        code = '?';
    /* Of what is one column wide: Latin, Greek, Cyrillic, and the marks that are drawn here. */
    if (code >= 0x300 && !(code >= 0x370 && code < 0x530) && !(code >= 0x2010 && code < 0x2040) &&
        !(code >= 0x2500 && code < 0x2600) && !(code >= 0x2800 && code < 0x2900))
        code = '?';
    if (code >= 0x80 && !screen->has_unicode)
        code = '?';
    *cell = (screen_cell){.code = code == ' ' ? 0 : code, .style = (uint8_t)style};
}

int co_screen_put(co_screen *screen, int row, int column, co_style style, const char *text)
{
    while (*text && column < screen->columns) {
        uint32_t code;
        const size_t n = co_utf8_decode(&code, (const uint8_t *)text, strnlen(text, CO_UTF8_MAX));

        co_screen_put_code(screen, row, column++, style, n ? code : '?');
        text += n ? n : 1;
    }
    return column;
}

static void screen_add(struct co_screen_state *s, const char *text)
{
    const size_t n = strlen(text);

    if (s->n + n <= sizeof(s->out)) {
        memcpy(s->out + s->n, text, n);
        s->n += n;
    }
}

static void screen_add_code(struct co_screen_state *s, uint32_t code)
{
    char text[CO_UTF8_MAX + 1] = "";

    co_utf8_encode((uint8_t *)text, code ? code : ' ');
    screen_add(s, text);
}

static bool screen_is_same(const screen_cell *a, const screen_cell *b)
{
    return a->code == b->code && (a->style == b->style || a->code == 0);
}

/* The cells of a row that differ; *style is that of the terminal. */
static void screen_add_row(co_screen *screen, int row, bool anew, int *style)
{
    struct co_screen_state *s = screen->state;
    int at = -1; /* column of the cursor; -1: elsewhere */
    char text[32];

    for (int c = 0; c < screen->columns; c++) {
        const screen_cell *cell = &s->next[row][c];
        int looks = cell->style;

        if (!anew && screen_is_same(cell, &s->shown[row][c]))
            continue;
        if (!screen->has_colour && looks >= CO_STYLE_BLUE)
            looks = CO_STYLE_PLAIN;
        if (at != c) {
            snprintf(text, sizeof(text), "\033[%d;%dH", row + 1, c + 1);
            screen_add(s, text);
        }
        if (cell->code && looks != *style) {
            snprintf(text, sizeof(text), "\033[%sm", screen_styles[looks]);
            screen_add(s, text);
            *style = looks;
        }
        screen_add_code(s, cell->code);
        at = c + 1;
    }
}

co_status co_screen_show(co_screen *screen, bool anew)
{
    struct co_screen_state *s = screen->state;
    int style = -1;

    s->n = 0;
    screen_add(s, SCREEN_BEGIN);
    if (anew)
        screen_add(s, "\033[0m\033[2J");
    for (int row = 0; row < screen->rows; row++)
        screen_add_row(screen, row, anew, &style);
    screen_add(s, SCREEN_END);
    memcpy(s->shown, s->next, sizeof(s->shown));
    return screen_write(s->out, s->n) ? CO_OK : co_fail(CO_E_IO, "the terminal is gone");
}

int co_screen_key(const co_screen *screen, int milliseconds)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char bytes[8];
    ssize_t n;

    (void)screen;
    if (poll(&in, 1, milliseconds) <= 0)
        return CO_KEY_NONE;
    n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n <= 0)
        return n < 0 && errno == EINTR ? CO_KEY_NONE : CO_KEY_END;
    if (n >= 3 && bytes[0] == '\033' && (bytes[1] == '[' || bytes[1] == 'O'))
        return bytes[2] == 'C' ? CO_KEY_RIGHT : bytes[2] == 'D' ? CO_KEY_LEFT : CO_KEY_NONE;
    return bytes[0];
}
