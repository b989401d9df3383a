/* log.h - where the lines for people go: warnings, and what a run says on its way. */
#ifndef COHORT_LOG_H
#define COHORT_LOG_H

#include <cohort/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum co_log_level { CO_LOG_ERROR, CO_LOG_WARN, CO_LOG_INFO } co_log_level;

/** `line` has no newline and is borrowed for the call; `rank` is -1 where no rank says it. Called
 *  in the process and on the thread that has something to say: ranks may be processes of their own,
 *  and several threads may call at once. It must not call the library. */
typedef void (*co_log_fn)(void *arg, co_log_level level, int rank, const char *line);

/** From now on lines go to `fn`, and the library writes nothing to standard output and standard
 *  error: a run has no console, as with co_train_options.quiet. NULL: to standard error again. Of
 *  the whole process, and of ranks that it forks later; `arg` is borrowed. Not thread-safe: before
 *  other calls. What fails is not logged but returned (status.h). */
CO_API void co_log_to(co_log_fn fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif
