/*
 * ext/store.h - the flat store as strategies and compressors see it.
 *
 * All parameters are one array, all gradients another, each state of the optimizer another, with
 * the same offsets: tensors in the order in which backward finishes them, each from a multiple of
 * 16 elements on. The gaps between them are 0 in every array and must stay so.
 */
#ifndef COHORT_EXT_STORE_H
#define COHORT_EXT_STORE_H

#include <cohort/ext/vector.h>
#include <cohort/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct co_store;

/** Pointers into a store, for the host: good until the hook of the plugin that asked returns, as
 *  arrays may move from step to step. */
typedef struct co_store_view {
    size_t n;            /* elements of each array but `buffer`, with gaps */
    float *param, *grad; /* (n) */
    int n_state;
    float *const *state; /* (n_state) arrays of (n): the optimizer's */
    size_t n_buffer;
    float *buffer;               /* (n_buffer): running statistics, kept and not trained */
    size_t n_tensor;             /* 0: nobody has said what is in the store */
    const co_vector_ops *vector; /* arithmetic on these arrays, to be given `queue` */
    co_queue *queue;
} co_store_view;

/** One tensor as a matrix: its first dimension, and the others. */
typedef struct co_tensor_range {
    size_t begin, rows, cols; /* rows * cols elements from `begin` on */
} co_tensor_range;

CO_API co_store_view co_store_look(const struct co_store *store);
/** Tensor i < n_tensor, by rising `begin`. */
CO_API co_tensor_range co_store_tensor_at(const struct co_store *store, size_t i);

#ifdef __cplusplus
}
#endif
#endif
