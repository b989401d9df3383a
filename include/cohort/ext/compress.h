/*
 * ext/compress.h - what the author of a gradient compressor fills in.
 *
 * The store is cut into pieces. In every step each rank brings its gradient, to which it has added
 * what it could not send before, its memory; all ranks end with the same sum of what was sent:
 *
 *   post (a piece's gradient is final, during backward) -> take, once for each message
 *
 * All ranks post and take the same pieces in the same order, whatever became final when.
 */
#ifndef COHORT_EXT_COMPRESS_H
#define COHORT_EXT_COMPRESS_H

#include <cohort/comm.h>
#include <cohort/ext/plugin.h>
#include <cohort/ext/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A range of the store that is compressed in one go. */
typedef struct co_piece {
    size_t index;
    size_t begin, end;
    size_t first_tensor, n_tensor; /* tensors of the store in it; set with `whole_tensors` alone */
    co_request *request; /* posted by post or take; waited for and destroyed by the caller; NULL:
                            the piece is done */
    int round;           /* messages of this step that have been taken */
} co_piece;

typedef struct co_compressor_ops co_compressor_ops;

typedef struct co_compressor {
    const co_compressor_ops *ops;
    void *self;             /* owned; the compressor's keys, then its state */
    co_comm *comm;          /* borrowed */
    struct co_store *store; /* borrowed: the gradients, and where each tensor is */
    float *memory; /* owned; of the length of the store: what this rank has not sent yet, or, once
                      post has added the gradient, what it is to send. NULL: without error feedback,
                      and then the gradient itself is sent */
    size_t n_piece;
    co_piece *piece; /* owned */
    uint64_t step;   /* steps before this one */
} co_compressor;

struct co_compressor_ops {
    const char *name;
    const char *summary;
    const co_key *keys; /* its own, besides those of every compressor: start, error_feedback */
    size_t self_size;
    bool whole_tensors; /* no piece ends in the middle of a tensor */
    bool queued; /* all that it does is on the store's queue; else refused where that is a device's
                  */
    /** Keys have been read, the pieces are known, the store may have no tensors; allocate memory.
     *  fini follows, even after a failure. NULL: nothing. */
    co_status (*init)(co_compressor *compressor);
    /** The gradient of a piece is final: add it to the memory, post the first message. What is
     *  sent is subtracted from the memory, here or in take; values that are not finite do not
     *  stay in it. */
    co_status (*post)(co_compressor *compressor, co_piece *piece);
    /** The piece's message is complete: post the next one, or leave the sum in the gradient. */
    co_status (*take)(co_compressor *compressor, co_piece *piece);
    /** Array i, of the length of the store, of the state that is kept between steps besides the
     *  memory; NULL after the last. *share: it is this rank's part of a sum over ranks, in the unit
     *  of gradients, as the memory is; else it is the same on all ranks, and has no unit. NULL:
     *  there are none. */
    float *(*persistent)(bool *share, const co_compressor *compressor, size_t i);
    /** Free what init allocated; may be called in the middle of a step, after a failure. NULL:
     *  nothing. */
    void (*fini)(co_compressor *compressor);
};

#ifdef __cplusplus
}
#endif
#endif
