/*
 * loader_internal.h - the loader's ring, created by loader_create.c and used by loader.c.
 */
#ifndef CO_DATA_LOADER_INTERNAL_H
#define CO_DATA_LOADER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/loader_slot.h"

/* Samples of one batch that a reader works on. */
typedef struct loader_claim {
    loader_slot *slot;
    uint64_t begin, end;
} loader_claim;

/* A thread that reads. */
typedef struct loader_reader {
    pthread_t thread;
    _Atomic int tid; /* the kernel's; 0: not there yet */
} loader_reader;

struct co_loader {
    const co_dataset *dataset; /* borrowed */
    co_sampler *sampler;       /* borrowed; guarded by plan_lock */
    co_queue *queue;           /* borrowed */
    int rank, shards;
    uint64_t seed;
    size_t sample_size; /* floats */
    bool skip_bad, stream;
    bool labels; /* alone: no image is read */
    double wait_seconds;
    uint64_t bad; /* bad samples of batches that were handed out */
    int warned;
    co_data_scratch scratch; /* of the calling thread, if there are no readers */

    pthread_mutex_t plan_lock; /* guards the position in the plan; taken before queue_lock */
    uint64_t begun;            /* batches begun */
    loader_slot *open;         /* the last batch begun, while it has unclaimed samples; else NULL */
    uint64_t epoch, step;      /* of the next batch */
    bool expects;              /* the data set wants to know which batches come */
    uint64_t expect_epoch, expect_end; /* it knows of this epoch, up to this step */
    uint64_t expect_most;              /* samples of a batch */
    uint32_t *expect_sample;           /* owned: (expect_most) */

    pthread_mutex_t queue_lock;
    pthread_cond_t filled, freed;
    uint64_t freed_up; /* batches whose slots are free again */
    atomic_bool stop;
    size_t n_slot;
    loader_slot *slot; /* batch i is in slot i % n_slot */

    uint64_t taken; /* batches that the consumer has released; used by it alone */
    bool borrowed;  /* the consumer holds batch `taken` */
    uint64_t claim; /* samples of a claim */
    int n_thread;
    atomic_int entered; /* reader threads that have started */
    _Atomic uint64_t read_samples, read_bytes, read_ns;
    uint64_t here_ns; /* without readers: the calling thread's time on a core in reads */
    _Atomic(const co_loader_observer *) observer;
    loader_reader *reader; /* owned, (n_thread) */
};

/* Batches have up to `most` samples. */
co_status loader_expect_begin(co_loader *loader, uint64_t most);
/* Under plan_lock, for the batch that is next. */
void loader_expect(co_loader *loader);
/* Without readers. Ends what the data set does for batches that nobody will take. */
void loader_expect_end(co_loader *loader);

/* Main function of a reader thread; the argument is the loader. */
void *loader_read_ahead(void *arg);

#endif
