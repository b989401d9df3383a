/* session_internal.h - shared by session.c, session_rank.c and session_requests.c. */
#ifndef CO_CONTROL_SESSION_INTERNAL_H
#define CO_CONTROL_SESSION_INTERNAL_H

#include <stdatomic.h>

#include "control/answers.h"
#include "control/session.h"
#include "state/state.h"

/* Requests of the launcher to ranks. */
typedef enum session_ask {
    SESSION_ASK_NOTHING = 0,
    SESSION_ASK_SAVE,  /* a checkpoint, and continue */
    SESSION_ASK_LEAVE, /* to continue as another number of ranks */
    SESSION_ASK_STOP   /* a checkpoint, and end the run */
} session_ask;

/* State of one rank; written only by it while it is alive. */
typedef struct session_rank {
    _Alignas(64) _Atomic uint64_t entered; /* steps of the run begun */
    _Atomic uint64_t agreed;               /* request << 40 | 1 + steps made when it saw it */
    _Atomic uint64_t handled;              /* the last request that has been handled */
    _Atomic uint64_t committed;            /* commits of the run so far */
} session_rank;

typedef struct session_shared {
    _Atomic uint64_t asked; /* number of the request << 8 | session_ask */
    _Atomic bool left;      /* set by rank 0: this generation has left cleanly */
    co_shown shown;
    _Atomic uint64_t commit_ns[2]; /* of each slot */
    session_rank rank[];
} session_shared;

/* Fields that ranks read; not changed while any rank is alive. */
struct co_session {
    co_session_options options;
    session_shared *shared;
    size_t shared_bytes;
    co_state *slot[2];     /* owned; commit k is in slot k % 2 */
    co_state *snapshot;    /* owned; NULL: none */
    const co_state *state; /* state that this generation begins with; NULL: the beginning */
    int capacity;          /* maximum number of ranks */
    bool commits;          /* after each step, or after each epoch */
    uint64_t committed;    /* commits when this generation began */

    /* used by the launcher only */
    co_launch_policy policy;
    co_control *control; /* owned */
    const co_shm *shm;   /* of the running generation; NULL: none; borrowed */
    int ranks, wanted;   /* running; requested, 0: no change */
    int restarts, resizes;
    int lost_rank;        /* of the last restart */
    char cause[512];      /* why this generation was started after a failure; "" otherwise */
    uint64_t failed_at;   /* 1 + how far ranks had come at the last failure; 0: none yet */
    co_status stopped_by; /* CO_OK: nobody; CO_E_INTERRUPTED, CO_E_TERMINATED */
    const char *stopping; /* why the run is to end; NULL: it is not */
    bool leave, save;     /* to be requested once no other request is pending */
    co_shown_rate rate;
};

/* Commits that all ranks have made. */
uint64_t session_committed(const co_session *s);
/* Request that ranks leave, to end the run or to continue as another number of ranks. */
void session_ask_leave(co_session *s);
/* CO_OK if the run can continue with that many ranks; else an error with the reason. */
co_status session_can_resize(const co_session *s, int ranks);
/* Answers requests over the socket. */
void session_answer(void *arg, char *reply, size_t size, const char *request);

#endif
