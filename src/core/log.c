/*
 * log.c - lines on stderr, one write each, so that lines of several ranks do not mix.
 */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/number.h"
#include "core/text.h"

/* The only global besides the error message. Ranks may be threads. */
static _Thread_local int log_rank = -1;
static _Thread_local co_log_tail *log_tail;

/* Of the process: set by the program before all else, so no lock. */
static struct {
    co_log_fn fn;
    void *arg;
} log_taken;

void co_log_to(co_log_fn fn, void *arg)
{
    log_taken.arg = arg;
    log_taken.fn = fn;
}

bool co_log_is_taken(void)
{
    return log_taken.fn != NULL;
}

void co_log_set_rank(int rank)
{
    log_rank = rank;
}

void co_log_set_tail(co_log_tail *tail)
{
    log_tail = tail;
}

static void log_keep(const char *line)
{
    const unsigned n = log_tail->written;
    _Atomic char *text = log_tail->text[n % CO_LOG_TAIL_LINES];
    int i = 0;

    for (; i < CO_LOG_TAIL_LINE - 1 && line[i]; i++)
        atomic_store_explicit(&text[i], line[i], memory_order_relaxed);
    atomic_store_explicit(&text[i], '\0', memory_order_relaxed);
    atomic_store(&log_tail->written, n + 1);
}

bool co_log_tail_line(char out[CO_LOG_TAIL_LINE], const co_log_tail *tail, int back)
{
    const unsigned n = atomic_load(&((co_log_tail *)tail)->written);
    const _Atomic char *text;

    if (back < 1 || back > CO_LOG_TAIL_LINES || n < (unsigned)back)
        return false;
    text = tail->text[(n - (unsigned)back) % CO_LOG_TAIL_LINES];
    for (int i = 0; i < CO_LOG_TAIL_LINE; i++)
        out[i] = atomic_load_explicit(&((_Atomic char *)text)[i], memory_order_relaxed);
    out[CO_LOG_TAIL_LINE - 1] = '\0';
    return true;
}

void co_log(co_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error: ", "warning: ", ""};
    const int rank = log_rank;
    char line[2304], words[2304], who[32] = "";
    size_t used;
    va_list args;

    if (rank > 0)
        snprintf(who, sizeof(who), "rank %d: ", rank);
    used = (size_t)snprintf(line, sizeof(line), "cohort: %s%s", who, names[level]);
    va_start(args, fmt);
    (void)co_number_vprint(words, sizeof(words), fmt, args);
    va_end(args);
    co_text_show(line + used, sizeof(line) - used - 1, words);
    if (log_tail)
        log_keep(line);
    if (log_taken.fn) {
        co_text_show(line, sizeof(line), words);
        log_taken.fn(log_taken.arg, level, rank, line);
        return;
    }
    used = 0;
    while (line[used])
        used++;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        return; /* there is no place left to report it */
}

void co_log_wait_read(uint32_t ms)
{
    const uint64_t until = co_clock_ns() + (uint64_t)ms * 1000000;
    struct stat to;
    int unread;

    if (fstat(STDERR_FILENO, &to) != 0 || !S_ISFIFO(to.st_mode))
        return;
    while (ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0 && co_clock_ns() < until)
        co_clock_sleep_us(500);
}
