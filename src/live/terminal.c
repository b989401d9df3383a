/*
 * terminal.c - runs on a screen of a terminal: the run that is chosen, with its curves, and what
 * its ranks are doing.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/clock.h"
#include "core/process.h"
#include "core/text.h"
#include "live/live.h"
#include "live/plot.h"
#include "live/runs.h"
#include "telemetry/format.h"

#define TERMINAL_READ_NS UINT64_C(1000000000)
#define TERMINAL_ASK_MS  200
#define TERMINAL_NICE    10
#define TERMINAL_WIDE    100 /* columns from which on two curves are side by side */
#define TERMINAL_CURVES  6
#define TERMINAL_HIGH    14  /* rows of a curve, at most */
#define TERMINAL_LOW     5   /* at least */
#define TERMINAL_BARS    8   /* ranks that are shown */
#define TERMINAL_LONG    1e9 /* seconds that nobody waits for */

typedef struct terminal {
    co_screen screen;
    co_live_runs runs;
    size_t shown; /* which run */
    bool anew, ended;
} terminal;

/* A curve of the page's tables. */
typedef struct terminal_curve {
    const char *title, *name;
    co_style style;
} terminal_curve;

static const terminal_curve terminal_curves[] = {
    {"training loss", "train_loss", CO_STYLE_BLUE},
    {"test accuracy", "test_accuracy", CO_STYLE_GREEN},
    {"test loss", "test_loss", CO_STYLE_MAGENTA},
    {"samples per second", "samples_per_second", CO_STYLE_YELLOW},
    {"training accuracy", "train_accuracy", CO_STYLE_CYAN},
    {"learning rate", "lr", CO_STYLE_PLAIN},
};

static double terminal_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static const char *terminal_count(char out[32], double value)
{
    return value >= 0 && value < 1e15 ? co_format_count(out, 32, (uint64_t)value) : "-";
}

/* ---- parts of the screen; each returns the row after it ---- */

static int terminal_draw_head(terminal *t, const co_live_run *run)
{
    const co_page_figures f = co_page_source_figures(run->source);
    const co_style style = f.state == CO_RUN_RUNNING ? CO_STYLE_GREEN : CO_STYLE_BOLD;
    char text[512], ranks[32], loss[32], accuracy[32];
    int column =
        co_screen_put(&t->screen, 0, 0, CO_STYLE_BOLD, CO_SHOW(co_page_source_dir(run->source)));

    column = co_screen_put(&t->screen, 0, column + 2, style, co_run_state_name(f.state));
    snprintf(text, sizeof(text), "%s on %s, %s, %s rank%s", CO_SHOW(f.model), CO_SHOW(f.dataset),
             CO_SHOW(f.strategy), terminal_count(ranks, f.ranks), f.ranks == 1 ? "" : "s");
    co_screen_put(&t->screen, 0, column + 2, CO_STYLE_PLAIN, text);
    snprintf(text, sizeof(text), "test accuracy %s, test loss %s",
             co_format_real(accuracy, sizeof(accuracy), f.test_accuracy, 4),
             co_format_real(loss, sizeof(loss), f.test_loss, 4));
    co_screen_put(&t->screen, 2, 0, CO_STYLE_PLAIN, text);
    if (*run->damage)
        co_screen_put(&t->screen, 3, 0, CO_STYLE_RED, run->damage);
    return *run->damage ? 5 : 4;
}

/* Steps made, how fast, and how long it will take. */
static void terminal_draw_progress(terminal *t, const co_live_run *run)
{
    const co_page_figures f = co_page_source_figures(run->source);
    const double asked = terminal_number(run->ranks.status, "step");
    const double speed = terminal_number(run->ranks.status, "samples_per_second");
    const double step = isnan(asked) ? f.steps : asked, rate = isnan(speed) ? f.rate : speed;
    const double rest = (f.total_steps - step) * f.batch / rate;
    const int width = t->screen.columns / 4 < 40 ? t->screen.columns / 4 : 40;
    char text[256], at[32], of[32], fast[32], left[64];
    int n;

    if (isfinite(step) && f.total_steps > 0)
        co_plot_progress(&t->screen, 1, 0, width, step / f.total_steps);
    n = snprintf(text, sizeof(text), "step %s of %s", terminal_count(at, step),
                 terminal_count(of, f.total_steps));
    if (f.state == CO_RUN_RUNNING && rate > 0)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", %s samples/s",
                      co_format_rate(fast, sizeof(fast), rate));
    if (f.state == CO_RUN_RUNNING && rest >= 1 && rest < TERMINAL_LONG)
        (void)snprintf(text + n, sizeof(text) - (size_t)n, ", about %s left",
                       co_format_seconds(left, sizeof(left), rest));
    co_screen_put(&t->screen, 1, width + 2, CO_STYLE_PLAIN, text);
}

/* Of as many ranks as there is room for in `rows`, below a legend. */
static int terminal_bars(const co_live_run *run, int rows)
{
    const int n = (int)run->ranks.n, most = rows - 1 < TERMINAL_BARS ? rows - 1 : TERMINAL_BARS;

    if (!run->ranks.status || n == 0 || most < 1)
        return 0;
    return n < most ? n : most;
}

/* Ranks, at the foot of the screen. */
static void terminal_draw_ranks(terminal *t, const co_live_run *run, int row, int bars)
{
    const co_ranks *ranks = &run->ranks;
    char text[64];
    int column;

    if (!bars)
        return;
    column = co_plot_legend(&t->screen, row++, 0);
    if (ranks->n > (size_t)bars) {
        snprintf(text, sizeof(text), "%d of %zu ranks", bars, ranks->n);
        co_screen_put(&t->screen, row - 1, column, CO_STYLE_FAINT, text);
    }
    for (int i = 0; i < bars; i++) {
        snprintf(text, sizeof(text), "rank %d", ranks->rank[i]);
        co_screen_put(&t->screen, row + i, 0, CO_STYLE_PLAIN, text);
        co_plot_doings(&t->screen, row + i, 9, t->screen.columns - 10, ranks->count[i]);
    }
}

/* As many curves as have numbers and fit between two rows. */
static void terminal_draw_curves(terminal *t, const co_live_run *run, int from, int to)
{
    const int across = t->screen.columns >= TERMINAL_WIDE ? 2 : 1;
    const terminal_curve *curve[TERMINAL_CURVES];
    const co_page_table *table[TERMINAL_CURVES];
    size_t column[TERMINAL_CURVES];
    int n = 0, lines, high;

    for (size_t i = 0; i < TERMINAL_CURVES; i++) {
        curve[n] = &terminal_curves[i];
        table[n] = co_page_source_curve(&column[n], run->source, curve[n]->name);
        n += table[n] != NULL;
    }
    while (n > across && (to - from) / ((n + across - 1) / across) < TERMINAL_LOW)
        n--;
    lines = (n + across - 1) / across;
    if (n == 0 || (to - from) / lines < 3)
        return;
    high = (to - from) / lines < TERMINAL_HIGH ? (to - from) / lines : TERMINAL_HIGH;
    for (int i = 0; i < n; i++) {
        const int width = t->screen.columns / across;
        const co_plot_area area = {from + i / across * high, i % across * width, high - 1,
                                   width - 2};

        co_plot_curve(&t->screen, &area, curve[i]->title, table[i], column[i], curve[i]->style);
    }
}

/* On a screen of more than `used` rows. */
static void terminal_draw_foot(terminal *t, int used)
{
    char text[128];

    if (t->screen.rows <= used)
        return;
    if (t->runs.n > 1)
        snprintf(text, sizeof(text),
                 "run %zu of %zu: arrows or Tab for another; q ends this, and no run", t->shown + 1,
                 t->runs.n);
    else
        snprintf(text, sizeof(text), "q ends this, and not the run");
    co_screen_put(&t->screen, t->screen.rows - 1, 0, CO_STYLE_FAINT, text);
}

static co_status terminal_draw(terminal *t)
{
    const bool anew = t->anew;
    int from = 2;

    co_screen_clear(&t->screen);
    t->anew = false;
    if (t->shown >= t->runs.n)
        t->shown = t->runs.n ? t->runs.n - 1 : 0;
    if (t->runs.n) {
        const co_live_run *run = t->runs.run[t->shown];
        int bars, foot;

        from = terminal_draw_head(t, run);
        bars = terminal_bars(run, t->screen.rows - 2 - from);
        foot = t->screen.rows - 2 - (bars ? bars + 2 : 0);
        terminal_draw_progress(t, run);
        terminal_draw_curves(t, run, from, foot);
        terminal_draw_ranks(t, run, foot + 1, bars);
    } else {
        co_screen_put(&t->screen, 0, 0, CO_STYLE_BOLD, "no run yet");
    }
    terminal_draw_foot(t, from - 1);
    return co_screen_show(&t->screen, anew);
}

/* ---- keys and time ---- */

/* Returns whether something is to be drawn. */
static bool terminal_take_key(terminal *t, int key)
{
    const size_t n = t->runs.n ? t->runs.n : 1;

    switch (key) {
    case CO_KEY_NONE:
        return false;
    case CO_KEY_END:
    case 'q':
    case 'Q':
    case 3: /* Ctrl-C: the terminal sends no signal while it is taken */
        t->ended = true;
        return false;
    case 12: /* Ctrl-L */
        t->anew = true;
        return true;
    case CO_KEY_RIGHT:
    case '\t':
    case 'n':
        t->shown = (t->shown + 1) % n;
        return true;
    case CO_KEY_LEFT:
    case 'p':
        t->shown = (t->shown + n - 1) % n;
        return true;
    default:
        return false;
    }
}

static co_status terminal_read(terminal *t)
{
    json_t *message;
    bool all;
    co_status st = co_live_runs_update(&t->runs, &message, &all);

    if (st == CO_OK)
        json_decref(message);
    return st;
}

static co_status terminal_loop(terminal *t, const sigset_t *watched)
{
    const struct timespec none = {0};
    uint64_t read = 0;
    int signal = 0;

    while (!t->ended && (signal = sigtimedwait(watched, NULL, &none)) < 0) {
        const uint64_t now = co_clock_ns();
        bool draw = co_screen_has_resized(&t->screen);

        t->anew = t->anew || draw;
        co_live_runs_ask(&t->runs);
        if (now >= read) {
            CO_TRY(terminal_read(t));
            read = now + TERMINAL_READ_NS;
            draw = true;
        }
        draw = terminal_take_key(t, co_screen_key(&t->screen, TERMINAL_ASK_MS)) || draw;
        if (draw && !t->ended)
            CO_TRY(terminal_draw(t));
    }
    return t->ended || signal == SIGINT ? CO_OK : co_fail(CO_E_TERMINATED, "terminated");
}

co_status co_live_terminal(const co_live_options *options)
{
    terminal t = {.anew = true};
    sigset_t watched, before;
    co_status st;

    CO_TRY(co_live_runs_open(&t.runs, options->folder, options->n));
    st = co_screen_open(&t.screen);
    if (st == CO_OK) {
        co_process_requests(&watched);
        sigprocmask(SIG_BLOCK, &watched, &before);
        (void)!setpriority(PRIO_PROCESS, 0, TERMINAL_NICE);
        st = terminal_loop(&t, &watched);
        co_screen_close(&t.screen);
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    co_live_runs_close(&t.runs);
    return st;
}
