/*
 * rank_control.h - what a rank checks between two steps: whether to save, and whether all leave the
 * run.
 *
 * On one machine the launcher's session decides (session.h); over MPI ranks agree among themselves
 * (agree_stop.c).
 */
#ifndef CO_CONTROL_RANK_CONTROL_H
#define CO_CONTROL_RANK_CONTROL_H

#include "control/answers.h"
#include "control/mpi_requests.h"
#include "state/saver.h"
#include "state/state.h"

struct co_session;
struct co_signal_thread;

/* All borrowed, except `requests`. */
typedef struct co_rank_control_options {
    co_comm *comm;
    const co_state_source *source;     /* the state to commit */
    co_saver *saver;                   /* NULL: no checkpoints */
    struct co_session *session;        /* NULL: one generation of ranks */
    struct co_signal_thread *listener; /* over MPI; NULL: none */
    co_mpi_requests *requests;         /* owned; over MPI on rank 0; NULL: none */
    int64_t max_seconds;               /* of the run, over MPI; 0: no limit */
    uint64_t asked_ns;                 /* they count from then */
} co_rank_control_options;

/* Over MPI: when ranks agree. The same on all ranks, except the time. */
typedef struct co_meeting {
    uint64_t next;   /* step before which ranks agree next */
    uint64_t met;    /* and before which they did last */
    uint64_t met_ns; /* 0: never */
} co_meeting;

typedef struct co_rank_control {
    co_rank_control_options options;
    co_meeting meeting;
    bool leaving; /* all ranks leave the run here: others continue it, or it ends */
    /* Over MPI: the run ends, by a signal or for another reason; whether a checkpoint was saved. */
    bool stopped, saved;
    co_status stopped_by; /* CO_OK: no signal */
} co_rank_control;

void co_rank_control_close(co_rank_control *control);
/* After `step` steps, before the next: sets `leaving` if all ranks leave the run here, which is
   CO_OK. Collective, as all below. */
co_status co_rank_control_before_step(co_rank_control *control, uint64_t step);
/* A step, or an epoch, is complete. */
co_status co_rank_control_after_step(co_rank_control *control, const co_where *where);
co_status co_rank_control_after_epoch(co_rank_control *control);

#endif
