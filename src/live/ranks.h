/* ranks.h - what each rank of a running run is doing, asked of its launcher as `cohort ctl status`
   does, several times a second: the shares of the last half minute. */
#ifndef CO_LIVE_RANKS_H
#define CO_LIVE_RANKS_H

#include <stdint.h>

#include <jansson.h>

#include <cohort/status.h>

#define CO_RANKS_MAX     48  /* that a launcher names */
#define CO_RANKS_SAMPLES 150 /* half a minute, at five a second */

typedef enum co_doing {
    CO_DOING_COMPUTING,
    CO_DOING_WAITING, /* for other ranks */
    CO_DOING_READING,
    CO_DOING_EVALUATING,
    CO_DOING_SAVING,
    CO_DOING_OTHER, /* starting, ending */
    CO_DOINGS
} co_doing;

/* Zeroed: nothing is known. */
typedef struct co_ranks {
    uint64_t ask_ns;        /* not before this time */
    json_t *status;         /* owned: the last answer; NULL: none */
    size_t n, samples, at;  /* ranks; samples in the ring, and where the next one goes */
    int rank[CO_RANKS_MAX]; /* their numbers */
    uint8_t seen[CO_RANKS_SAMPLES][CO_RANKS_MAX]; /* co_doing */
    unsigned count[CO_RANKS_MAX][CO_DOINGS];
} co_ranks;

/* Ask the launcher of a run directory, unless it has just failed to answer. */
void co_ranks_ask(co_ranks *ranks, const char *dir);
/* Take an answer, as if the launcher had given it. */
void co_ranks_take(co_ranks *ranks, const char *answer);
/* {"step": ..., "ranks": [{"rank": 0, "seen": [...]}, ...]} for the page, or null; the caller's. */
json_t *co_ranks_json(const co_ranks *ranks);
void co_ranks_free(co_ranks *ranks);

#endif
