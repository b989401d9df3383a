/*
 * answers.h - answers to `cohort ctl` over the socket in the run directory: JSON objects, one per
 * line.
 *
 * Independent of who started the ranks and of how a request reaches them.
 */
#ifndef CO_CONTROL_ANSWERS_H
#define CO_CONTROL_ANSWERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/watch.h"

/* Texts that all runs share. */
#define CO_ANSWER_WILL_SAVE "a checkpoint is made after the step that the run is in"
#define CO_ANSWER_WILL_STOP "the run stops after the step it is in"
#define CO_ANSWER_STOPPING  "asked to stop"

/* Position of the run: written by rank 0, read by the process that answers. */
typedef struct co_shown {
    _Atomic uint64_t saved; /* 1 + step of the last checkpoint that was requested; 0: none */
    _Atomic uint64_t step, epoch, samples, steps_per_epoch, total_steps, batch;
} co_shown;

/* The same as plain numbers. */
typedef struct co_where {
    uint64_t step, epoch, samples, steps_per_epoch, total_steps, batch;
} co_where;

/* Called on rank 0 after a step. */
void co_shown_set(co_shown *out, const co_where *where);

/* Recent samples per second, measured from outside. */
typedef struct co_shown_rate {
    uint64_t seen_ns, seen_samples; /* 0: nothing measured yet */
    double rate;
} co_shown_rate;

/* Update the rate. To be called at least ten times in the two seconds over which it is measured. */
void co_shown_measure(co_shown_rate *rate, const co_shown *shown);

/* The i-th rank whose state this process can read; NULL after the last. */
typedef co_watch *(*co_answer_watch_fn)(const void *arg, int i);

typedef struct co_answer_view {
    const co_shown *shown;
    int ranks, restarts, resizes;
    double rate;
    uint64_t start_ns;
    const char *stopping; /* why the run is about to end; NULL: it is not */
    co_answer_watch_fn watch;
    const void *arg;
} co_answer_view;

/* Write an answer of at most `size` bytes, including its NUL. */
void co_answer_status(char *reply, size_t size, const co_answer_view *view);
void co_answer_agree(char *reply, size_t size, const char *done);
/* An answer with this thread's error message. */
void co_answer_refuse(char *reply, size_t size);
void co_answer_unknown(char *reply, size_t size, const char *request);

#endif
