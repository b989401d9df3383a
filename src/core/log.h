/* log.h - lines for people on stderr; the only place beside src/cli that writes there. */
#ifndef CO_CORE_LOG_H
#define CO_CORE_LOG_H

#include <cohort/status.h>

typedef enum co_log_level { CO_LOG_ERROR, CO_LOG_WARN } co_log_level;

/* One whole line in one write, e.g. "cohort: warning: ...". Ranks other than 0 are named. */
void co_log(co_log_level level, const char *fmt, ...) CO_PRINTF(2, 3);
/* Name the rank in this thread's lines; -1 (the start) names none. */
void co_log_set_rank(int rank);

#endif
