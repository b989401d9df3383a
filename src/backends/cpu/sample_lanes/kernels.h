/* kernels.h - kernels for small networks, one per op, with the loops of kernels/sample_lanes. */
#ifndef CO_BACKENDS_CPU_SAMPLE_LANES_KERNELS_H
#define CO_BACKENDS_CPU_SAMPLE_LANES_KERNELS_H

#include "backends/backends.h"
#include "core/parallel.h"
#include "kernels/sample_lanes/sample_lanes.h"
#include "ops/ops.h"

/* A gradient in blocks; places of maxima, or NULL if it is not of a pooling. */
typedef struct sample_lanes_grad {
    const float *value;
    const uint8_t *place;
} sample_lanes_grad;

/* --- layout.c --- */
/* Elements per sample; blocks in the batch. */
int64_t sample_lanes_count(const co_tensor *tensor);
int64_t sample_lanes_blocks(const co_tensor *tensor);
/* Bytes of the tensor in this layout. */
size_t sample_lanes_bytes(const co_tensor *tensor);
/* Whether the tensor has this layout. */
bool sample_lanes_is_blocked(const co_tensor *tensor);
/* Set the tensor's layout to this one. */
void sample_lanes_block(co_tensor *tensor);
/* `supports` for kernels that require this layout of their inputs. */
bool sample_lanes_supports_blocked(const co_call *call, const char **why);
/* Threads for a call's loops over blocks. Each thread has the same blocks in all loops, so that
   they stay in its core's caches. */
int sample_lanes_threads(const co_call *call);
/* Block `b` of the tensor's values: its own memory, or packed into the same place of `room` if the
   tensor is plain. */
const float *sample_lanes_read_block(const co_tensor *tensor, float *room, int64_t b);
/* The same for all blocks. */
const float *sample_lanes_read(const co_tensor *tensor, float *room, int threads);
/* Bytes of `room` that sample_lanes_read needs. */
size_t sample_lanes_room(const co_tensor *tensor);
/* Convert a tensor in this layout to row-major. */
void sample_lanes_unpack(float *to, const co_tensor *tensor, int threads);
/* Zero the lanes after the last sample. */
void sample_lanes_clear_rest(const co_tensor *tensor);
/* The part of the result of the call's own op, before the fused ones, that anything read depends
 * on.
 */
co_extent sample_lanes_needed(const co_call *call);
/* In each of `n` planes of vectors (rows, columns), each of `vector` bytes: all bytes outside
   `part` become `value`. */
void sample_lanes_fill_rest(void *planes, int value, size_t vector, int64_t n, co_extent plane,
                            co_extent part);
/* plan and plan_backward for kernels whose output and gradients have this layout. */
co_status sample_lanes_plan_alike(co_call *call);
co_status sample_lanes_plan_backward_alike(co_call *call);
/* Gradient of out[0] in blocks; may use scratch. */
const float *sample_lanes_grad_out(const co_call *call);

/* --- sparse.c --- */
/* A backward pass from the nonzero elements of dy. */
typedef struct sample_lanes_sparse {
    bool usable; /* for this call */
    lanes_sparse shape;
    /* only for the gradient of the input: */
    lanes_squares squares;
    lanes_place *place; /* owned */
} sample_lanes_sparse;

/* Plan the pass, in scratch from offset `at`. `pool`: fused after the convolution, or NULL. */
co_status sample_lanes_sparse_plan(sample_lanes_sparse *out, co_call *call, const lanes_pool *pool,
                                   size_t at);
void sample_lanes_sparse_fini(sample_lanes_sparse *self);
/* Whether it can be used, and is faster for this dy than the dense one, which costs `dense` times
   its products. */
bool sample_lanes_sparse_pays(const sample_lanes_sparse *self, const co_call *call,
                              const sample_lanes_grad *dy, double dense);
/* x, grad: in blocks. */
void sample_lanes_sparse_backward(const sample_lanes_sparse *self, co_call *call, const float *x,
                                  const sample_lanes_grad *grad, char *room, int threads,
                                  const co_run *run);

/* --- maxpool.c --- */
/* Pooling windows from planes (h, w) to planes (oh, ow). */
lanes_pool sample_lanes_describe_pool(const co_pool_attr *attr, const int64_t *in,
                                      const int64_t *out);

extern const co_kernel co_cpu_lanes_conv2d, co_cpu_lanes_maxpool, co_cpu_lanes_relu,
    co_cpu_lanes_add, co_cpu_lanes_flatten, co_cpu_lanes_batchnorm, co_cpu_lanes_dropout,
    co_cpu_lanes_dropout2d;

#endif
