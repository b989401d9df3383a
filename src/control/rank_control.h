/*
 * rank_control.h - what a rank asks between two steps: whether to save, and whether all leave the
 * run.
 *
 * On one machine the launcher's session answers (session.h); over MPI ranks agree among themselves
 * (agree_stop.c). Must not know what a step is.
 */
#ifndef CO_CONTROL_RANK_CONTROL_H
#define CO_CONTROL_RANK_CONTROL_H

#include "control/answers.h"
#include "control/mpi_requests.h"
#include "state/saver.h"
#include "state/state.h"

struct co_session;
struct co_signal_thread;

/* All borrowed, but for `requests`. */
typedef struct co_rank_control_options {
    co_comm *comm;
    const co_state_source *source;     /* what is committed */
    co_saver *saver;                   /* NULL: no checkpoints */
    struct co_session *session;        /* NULL: one generation of ranks */
    struct co_signal_thread *listener; /* over MPI; NULL: none */
    co_mpi_requests *requests;         /* of the owner, over MPI on rank 0; NULL: none; owned */
    int64_t max_seconds;               /* of the run, over MPI; 0: no limit */
    uint64_t start_ns;                 /* of the run */
} co_rank_control_options;

/* Over MPI: state of one rank; the same on all ranks, except the time. */
typedef struct co_meeting {
    uint64_t next;   /* step before which ranks ask each other next */
    uint64_t met;    /* and before which they did last */
    uint64_t met_ns; /* 0: never */
} co_meeting;

typedef struct co_rank_control {
    co_rank_control_options options;
    co_meeting meeting;
    bool leaving; /* all ranks leave the run here, to continue as others or not at all */
    /* Over MPI: finally, because of a signal or another reason, with a checkpoint or without. */
    bool stopped, saved;
    co_status stopped_by; /* CO_OK: no signal */
} co_rank_control;

void co_rank_control_close(co_rank_control *control);
/* After `step` steps, before the next: sets `leaving` when all ranks leave the run here, and
   returns CO_OK then. Collective, as all below. */
co_status co_rank_control_before_step(co_rank_control *control, uint64_t step);
/* A step, or an epoch, is complete. */
co_status co_rank_control_after_step(co_rank_control *control, const co_where *where);
co_status co_rank_control_after_epoch(co_rank_control *control);

#endif
