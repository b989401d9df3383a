/*
 * internal.h - the layout of the shared region, and one rank's view of it.
 *
 * region: a failure record, the watch of each rank, then contexts; context 0 is the world's.
 *
 * context: one communicator: a failure record, counters and slots of each rank, a ring per pair.
 *
 * A collective is a number of steps of one chunk each, numbered consecutively over all collectives.
 * In step s a rank puts its chunk into its slot s % SHM_SLOTS; a slot is free again once all ranks
 * have released the step that used it. Words shared by ranks are C11 atomics, released by the
 * writer and acquired by the reader.
 */
#ifndef CO_COMM_SHM_INTERNAL_H
#define CO_COMM_SHM_INTERNAL_H

#include <stdatomic.h>

#include "comm/comm_internal.h"
#include "comm/shm/shm.h"
#include "comm/watch.h"

#define SHM_LINE      128 /* two cache lines, because the prefetcher fetches pairs */
#define SHM_MAX_RANKS 1024
#define SHM_CONTEXTS  32 /* communicators at a time, including the world */
#define SHM_SLOTS     8
#define SHM_TINY      16
#define SHM_SMALL     4096                /* up to here, skipping the reduce phase is faster */
#define SHM_CHUNK     ((size_t)256 << 10) /* bytes of a slot; two stay in an L2 cache */

/* The failure record. Each writer takes its own entry and fills it in before it tries to be first,
   so a writer that dies in between blocks nobody. Ranks and the launcher write at most once each,
   so there are ranks + 1 entries. */
typedef struct shm_failure {
    _Atomic uint32_t entries; /* number taken */
    _Atomic uint32_t first;   /* 1 + the first complete entry; 0: none */
    co_comm_cause cause[];
} shm_failure;

typedef struct shm_context {
    _Atomic uint32_t taken;
    _Atomic uint32_t left;   /* members that destroyed their communicator */
    _Atomic int64_t windows; /* offset of the next window; in the world's context only */
} shm_context;

typedef struct shm_counters {
    _Alignas(SHM_LINE) _Atomic int member; /* 1 + the member's world rank; 0: not attached yet */
    _Alignas(SHM_LINE) _Atomic uint64_t reduced;  /* steps whose slice this rank has reduced */
    _Alignas(SHM_LINE) _Atomic uint64_t released; /* steps that this rank no longer reads */
} shm_counters;

typedef struct shm_slot {
    _Alignas(SHM_LINE) _Atomic uint64_t step; /* 1 + the step whose chunk is here */
    co_coll_descriptor descriptor;
    /* For all-reduce: 1 + offset in the windows of the chunk, and of where its rank wants the sum.
       0: the chunk is in this slot; the rank copies the sum itself. */
    uint64_t in, out;
    _Alignas(16) unsigned char tiny[SHM_TINY];   /* a small chunk that fits in this cache line */
    _Alignas(64) unsigned char small[SHM_SMALL]; /* other small chunks */
    _Alignas(SHM_LINE) unsigned char data[SHM_CHUNK];
} shm_slot;

/* A byte stream from one rank to another. */
typedef struct shm_ring {
    _Alignas(SHM_LINE) _Atomic uint64_t read; /* bytes read so far */
    _Alignas(SHM_LINE) _Atomic uint64_t written;
    _Alignas(SHM_LINE) unsigned char data[];
} shm_ring;

struct co_shm {
    int ranks;
    bool oversubscribed; /* more ranks than cores */
    int file;            /* owned: the region's, if ranks join by address; -1: inherited by fork */
    int windows;         /* owned: memfd of the windows; -1: not supported by this kernel */
    unsigned char *window_base; /* owned mapping of all of it; NULL: none */
    size_t window_bytes;
    _Atomic size_t window_open; /* bytes from its start that this process may access */
    unsigned char *base;        /* owned mapping */
    size_t size;
    size_t context_size, ring_bytes;                   /* of a context; of a ring's data */
    size_t watches_at, contexts;                       /* offsets in the region */
    size_t counters_at, slots_at, rings_at, ring_step; /* offsets in a context */
};

typedef struct shm_request shm_request;
typedef struct shm_comm shm_comm;

enum { SHM_PUT, SHM_REDUCE, SHM_GET, SHM_PHASES };

/* One rank's end of a context. */
struct shm_comm {
    co_comm base;
    co_shm *shm; /* borrowed */
    int context, world_rank;
    unsigned char *at;    /* start of the context */
    shm_failure *failure; /* of the context */
    /* collectives */
    uint32_t sequence;
    uint64_t posted;             /* steps of all collectives so far */
    uint64_t smalls;             /* of these, steps of small operations */
    uint64_t step[SHM_PHASES];   /* the next step of each phase */
    shm_request *on[SHM_PHASES]; /* request of that step; NULL: none posted */
    shm_request *last;
    int arrived, collected; /* ranks seen to have put, and reduced, the current step */
    uint64_t free_until;    /* slots of steps below this are free */
    /* messages, per peer */
    int pending;
    co_comm_queue *sends, *receives; /* owned, [size] */
};

struct shm_request {
    co_comm_link link;
    co_coll_descriptor descriptor;
    const struct shm_coll *coll; /* NULL: a message */
    uint64_t first, steps;
    uint64_t small; /* for small operations: the slot->small of this step is used */
    size_t span;    /* elements that the steps go over */
    size_t chunk;   /* elements per step, of each block */
    size_t esize;
    size_t moved; /* bytes of a message so far, including the header */
    bool shared;  /* ranks write the sum into each other's memory; known once all chunks have
                     arrived */
};

static inline shm_counters *co_shm_counters(const shm_comm *c, int rank)
{
    return (shm_counters *)(c->at + c->shm->counters_at) + rank;
}

static inline shm_slot *co_shm_slot(const shm_comm *c, int rank, uint64_t step)
{
    return (shm_slot *)(c->at + c->shm->slots_at) + (size_t)rank * SHM_SLOTS + step % SHM_SLOTS;
}

static inline shm_ring *co_shm_ring(const shm_comm *c, int from, int to)
{
    const size_t pair = (size_t)from * (size_t)c->shm->ranks + (size_t)to;

    return (shm_ring *)(c->at + c->shm->rings_at + pair * c->shm->ring_step);
}

static inline shm_failure *co_shm_region_failure(const co_shm *shm)
{
    return (shm_failure *)shm->base;
}

/* Create an empty memfd; -1: failed, see errno. EFBIG: file sizes are limited. */
int co_shm_file(void);
/* Map a region. `file`: of the region's size or empty, owned by the region on success; -1:
   anonymous memory for forked children. */
co_status co_shm_map(co_shm **out, int ranks, int file);

shm_failure *co_shm_context_failure(const co_shm *shm, int context);

/* The first cause; NULL: none. */
static inline const co_comm_cause *co_shm_failure(const shm_failure *failure)
{
    const uint32_t first =
        atomic_load_explicit(&((shm_failure *)failure)->first, memory_order_acquire);

    return first ? &failure->cause[first - 1] : NULL;
}

/* `rank`: world rank at fault. */
void co_shm_set_failure(const co_shm *shm, shm_failure *failure, int rank, co_status status,
                        const char *text);

/* A free context; -1: none. */
int co_shm_context_take(co_shm *shm);
/* For a context that nobody has used. */
void co_shm_context_give_back(co_shm *shm, int context);
/* A member leaves; the last one clears and frees the context. */
void co_shm_context_leave(co_shm *shm, int context, int members);
unsigned char *co_shm_context_at(const co_shm *shm, int context);

void co_shm_window_open(co_shm *shm);
/* Use another process's windows. The region owns `file` from now on; -1: none. */
void co_shm_window_join(co_shm *shm, int file);
void co_shm_window_close(co_shm *shm);
/* Reserve unused window addresses on behalf of all ranks; returns an offset, or one of the errors
   below. */
enum { SHM_NO_MEMORY = -1, SHM_NO_ADDRESSES = -2 };
int64_t co_shm_window_take(co_shm *shm, size_t bytes);
/* Make what all ranks have taken so far accessible. */
void co_shm_window_admit(co_shm *shm);
/* An offset that this rank or another one has taken. */
static inline unsigned char *co_shm_window_at(co_shm *shm, size_t offset)
{
    if (offset >= atomic_load_explicit(&shm->window_open, memory_order_relaxed))
        co_shm_window_admit(shm);
    return shm->window_base + offset;
}
/* Allocate zeroed memory for the addresses; false: not enough. */
bool co_shm_window_fill(const co_shm *shm, void *base, size_t bytes);
/* Free the memory; the addresses are not reused. */
void co_shm_window_empty(void *base, size_t bytes);
/* Whether [data, data + bytes) is in a window. */
bool co_shm_window_has(const co_shm *shm, const void *data, size_t bytes);
/* Size to allocate for a window of `bytes` that several ranks release with co_shm_window_leave. */
size_t co_shm_window_size(size_t bytes);
void co_shm_window_leave(void *base, size_t bytes, int members);

/* One step of a collective, as passed to the functions below. */
typedef struct shm_step {
    shm_comm *c;
    const shm_request *request;
    const co_coll_args *args;
    uint64_t step;
    size_t offset, n; /* the chunk's first element in a block, and its length */
    int rank, size;
} shm_step;

typedef void (*shm_step_fn)(const shm_step *s);

typedef struct shm_coll {
    bool small;  /* uses slot->small; `reduce` is skipped unless a rank wants the sum in its
                    buffer */
    bool blocks; /* a slot holds a piece of each rank's block */
    bool parts;  /* a slot holds a piece of each part of a tree */
    bool slices; /* steps go over all slices of a buffer at once, as over blocks */
    shm_step_fn put, reduce, get;
} shm_coll;

/* The algorithm for an operation of `bytes`; the same on all ranks, since their arguments are. */
const shm_coll *co_shm_coll_choose(const co_coll_args *args, size_t bytes, int ranks);

/* That of a half of an all-reduce. */
const shm_coll *co_shm_coll_slices(co_coll coll);

/* Returns whether it is complete; if not, it is in progress as if posted. Recorded in the rank's
   watch in either case. */
bool co_shm_coll_run(shm_comm *c, shm_request *request);
/* Puts the first chunks before it returns. */
void co_shm_coll_post(shm_comm *c, shm_request *request);
co_status co_shm_coll_progress(shm_comm *c);
/* Whether the oldest collective waits for this rank. */
bool co_shm_coll_is_missing(const shm_comm *c, int rank);

void co_shm_p2p_post(shm_comm *c, shm_request *request);
co_status co_shm_p2p_progress(shm_comm *c);

#endif
