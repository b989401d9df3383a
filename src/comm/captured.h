/*
 * captured.h - work of a step that is captured once and replayed, with its operations over ranks.
 *
 * Outside of a capture ranks agree on each operation before NCCL is given it. What is captured they
 * compare once, and before each step they agree on what they are about to give: so no GPU waits for
 * a rank that is late, dead or elsewhere.
 */
#ifndef CO_COMM_CAPTURED_H
#define CO_COMM_CAPTURED_H

#include <cohort/ext/comm.h>

typedef struct co_comm_captured co_comm_captured;

/* What a rank can give its queue for a step, the least first. */
typedef enum co_comm_give {
    CO_GIVE_PLAINLY, /* the work itself */
    CO_GIVE_CAPTURE, /* the same, after a first time: it can be captured, and replayed */
    CO_GIVE_REPLAY   /* what has been captured */
} co_comm_give;

/* Whether operations on a device's memory can be captured: of one rank, or by NCCL. */
bool co_comm_captures(const co_comm *comm);
/* `body` gives `queue` work, operations of `comm` among it. Collective; CO_E_MISMATCH: ranks have
   captured different operations. */
co_status co_comm_capture(co_comm_captured **out, co_comm *comm, co_queue *queue,
                          co_status (*body)(void *arg), void *arg);
/* All ranks have agreed on it. */
co_status co_comm_replay(co_comm_captured *captured, co_queue *queue);
/* Not while it runs, and before `comm` is closed; takes NULL. */
void co_comm_captured_destroy(co_comm_captured *captured);
/* False: it may use memory that is no longer there. */
bool co_comm_captured_is_current(const co_comm_captured *captured);

/* *give becomes what all ranks can do in this step. `batch`: a number that tells batches apart
   whose work is not the same, equal on all ranks; `captured`: what the rank would replay, or NULL.
   Collective; CO_E_MISMATCH: ranks are at different steps. */
co_status co_comm_agree(co_comm_give *give, co_comm *comm, uint64_t step, uint64_t batch,
                        const co_comm_captured *captured);

#endif
