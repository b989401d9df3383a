/* log.h - lines for people on stderr; the only place besides src/cli that writes there. */
#ifndef CO_CORE_LOG_H
#define CO_CORE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cohort/log.h>

/* Whether lines go to a function of the program (co_log_to): then nothing else is printed. */
bool co_log_is_taken(void);

/* One whole line in one write, e.g. "cohort: warning: ...". Ranks other than 0 are named. */
void co_log(co_log_level level, const char *fmt, ...) CO_PRINTF(2, 3);
/* Wait until the pipe that stderr may be has been read, for at most `ms`: a launcher that is told
   to end the job may not read it any more. */
void co_log_wait_read(uint32_t ms);
/* Name the rank in this thread's lines; -1 (the start) names none. */
void co_log_set_rank(int rank);

#define CO_LOG_TAIL_LINES 3
#define CO_LOG_TAIL_LINE  160

/* The last lines of a thread, where another thread or process can read them. Zeroed: none. */
typedef struct co_log_tail {
    _Atomic unsigned written;
    _Atomic char text[CO_LOG_TAIL_LINES][CO_LOG_TAIL_LINE]; /* cut where they are longer */
} co_log_tail;

/* Copy this thread's lines to `tail` too, which is borrowed; NULL: no more. */
void co_log_set_tail(co_log_tail *tail);
/* The line `back` lines ago (1: the last); false: there is none. */
bool co_log_tail_line(char out[CO_LOG_TAIL_LINE], const co_log_tail *tail, int back);

#endif
