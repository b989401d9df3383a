/*
 * ext/vector.h - arithmetic on the arrays of the store: what the author of a device fills in.
 *
 * Weights, gradients, running statistics, averages, and what waits to be sent are in memory of a
 * device. Strategies, compressors, averages, clipping, rounding and the sums of shards never look
 * at an element of them: they call the table of the store (`store->vector`).
 *
 * - Work is put on `queue`, in order; NULL: the caller does it, at once. Operands may be touched
 *   until the queue has passed, and a result (`out`) is there from then on, in the device's memory.
 * - What fails on a device is kept by its queue, and comes up where the host waits for it.
 * - Arrays are aligned as their elements are, no more. An output may be an input where it says so;
 *   else arrays do not overlap. n may be 0.
 * - Each operation is rounded by itself, in the order that is written here (no fused multiply-add),
 *   so that a table gives the same bits whatever instructions or threads it uses. Which NaN comes
 *   out of several is not said.
 *
 * An optimizer's update is not here: it is a kernel of its own, which goes over gradient, state and
 * weights once (ext/optim.h).
 */
#ifndef COHORT_EXT_VECTOR_H
#define COHORT_EXT_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/ext/device.h>
#include <cohort/ext/step.h>
#include <cohort/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct co_rng;

/** Most columns of P and Q. */
#define CO_VECTOR_MAX_RANK 64

/** Room for measure_squares. */
#define CO_VECTOR_PARTS 256
/* Elements of a block of sum_squares. */
#define CO_VECTOR_SQUARES 1024

/** M is (rows, cols), row by row; P (rank, rows) and Q (rank, cols): vectors one after another. */
typedef struct co_vector_matrix {
    size_t rows, cols, rank;
} co_vector_matrix;

typedef struct co_vector_ops {
    const char *name;

    /* ---- whole arrays ---- */

    void (*copy)(co_queue *queue, float *out, const float *x, size_t n);
    void (*zero)(co_queue *queue, float *out, size_t n);
    void (*swap)(co_queue *queue, float *x, float *y, size_t n);
    /** out = x if *flag, which is in the device's memory, is not 0. */
    void (*copy_if)(co_queue *queue, const int32_t *flag, float *out, const float *x, size_t n);
    /** y += x */
    void (*add)(co_queue *queue, float *y, const float *x, size_t n);
    /** out = a x, the product rounded from double. `out` may be x. */
    void (*scale)(co_queue *queue, float *out, double a, const float *x, size_t n);
    /** x = x / by */
    void (*divide)(co_queue *queue, float *x, float by, size_t n);
    /** out = a x + b y. `out` may be x or y. */
    void (*axpby)(co_queue *queue, float *out, float a, const float *x, float b, const float *y,
                  size_t n);
    /** y = y + a (x - z). z may be y: then y goes the part a of its way to x. */
    void (*add_difference)(co_queue *queue, float *y, float a, const float *x, const float *z,
                           size_t n);
    /** The same for x and y with the part (float)*a, which is in the device's memory: y goes to x;
     *  nothing is done where it is 0. */
    void (*average)(co_queue *queue, float *y, const double *a, const float *x, size_t n);
    /** out = x where *most, a result of max_abs in the device's memory, is 0 or not finite; with x
     *  NULL zeros, and only where it is not finite. */
    void (*copy_unless)(co_queue *queue, const float *most, float *out, const float *x, size_t n);
    /** Zeros in place of infinities and NaNs. */
    void (*drop_nonfinite)(co_queue *queue, float *x, size_t n);

    /* ---- one result ---- */

    /** Of co_grad_use(x, *rule), which is in the device's memory; NULL: of x. In double, in blocks
     *  of CO_VECTOR_SQUARES: element i goes to sum i mod 8 of its block, the last n mod 8 ones to
     *  sum 0; the sums of a block are added up from 0 to 7, then blocks from first to last.
     *  `most`: what max_abs gives of x, in the same pass; NULL: not wanted. */
    void (*sum_squares)(co_queue *queue, double *out, float *most, const float *x, size_t n,
                        const co_grad_rule *rule);
    /** The sum of sum_squares, for a figure that is shown: in an order that depends on n alone, and
     * is each device's own. `room`: (CO_VECTOR_PARTS). */
    void (*measure_squares)(co_queue *queue, double *out, double *room, const float *x, size_t n,
                            const co_grad_rule *rule);
    /** The largest |x|; 0 of none. A NaN counts as larger than all numbers, so that the result is
     *  finite only if every element is. */
    void (*max_abs)(co_queue *queue, float *out, const float *x, size_t n);

    /* ---- 16 bits: CO_BF16, CO_F16 ---- */

    /** x = the nearest number that `dtype` has, ties to even. */
    void (*round_nearest)(co_queue *queue, float *x, size_t n, co_dtype dtype);
    /** x = the number of `dtype` below or above x, by chance, so that the mean is x: a function of
     *  x, of `rng` and of first + i alone (core/half.h). `rng` is copied, but for its step, which
     *  is *step, in the device's memory; NULL: that too. */
    void (*round_stochastic)(co_queue *queue, float *x, size_t n, co_dtype dtype,
                             const struct co_rng *rng, const uint64_t *step, uint64_t first);
    /** out = x rounded to nearest, but what is finite not to infinity. What that loses goes to
     *  `kept` (NULL: it is lost), which may be x: added to what is there if `more`, else in its
     *  place; 0 where x is not finite. */
    void (*narrow)(co_queue *queue, uint16_t *out, const float *x, float *kept, bool more, size_t n,
                   co_dtype dtype);
    /** out = x[0] + x[1] ... of `terms` arrays, each (n), that begin `stride` elements apart; added
     *  up in float. */
    void (*widen_sum)(co_queue *queue, float *out, const uint16_t *x, size_t stride, int terms,
                      size_t n, co_dtype dtype);

    /* ---- few of many; positions are distinct ---- */

    /** Words of room that top_k needs. */
    size_t (*top_k_room)(size_t k);
    /** Positions of the k largest |x|, 1 <= k <= n < 2^32, rising, into `index` (k); of equal ones
     *  the first. NaN is larger than infinity. `room`: (top_k_room(k)). */
    void (*top_k)(co_queue *queue, uint32_t *index, uint32_t *room, const float *x, size_t n,
                  size_t k);
    /** out[i] = x[index[i]], i < k */
    void (*gather)(co_queue *queue, float *out, const float *x, const uint32_t *index, size_t k);
    /** y[index[i]] = value[i]; NULL: 0 */
    void (*scatter)(co_queue *queue, float *y, const uint32_t *index, const float *value, size_t k);
    /** y[index[i]] += value[i] */
    void (*scatter_add)(co_queue *queue, float *y, const uint32_t *index, const float *value,
                        size_t k);

    /* ---- a large matrix and a few vectors, rank <= CO_VECTOR_MAX_RANK ---- */

    /** P = M Q, in an order of sums that depends on the shape alone. */
    void (*matrix_times)(co_queue *queue, float *p, const float *m, const float *q,
                         const co_vector_matrix *shape);
    /** Q = M^T P; likewise. */
    void (*matrix_transposed_times)(co_queue *queue, float *q, const float *m, const float *p,
                                    const co_vector_matrix *shape);
    /** M = M + sign P Q^T, vector after vector. sign: 1 or -1. */
    void (*matrix_add_outer)(co_queue *queue, float *m, float sign, const float *p, const float *q,
                             const co_vector_matrix *shape);
    /** The vectors of P made orthonormal, from the first on; one that the ones before it span
     *  becomes 0. Each becomes NaN where any was not finite. */
    void (*matrix_orthonormalize)(co_queue *queue, float *p, const co_vector_matrix *shape);

    /* ---- the values of a step ---- */

    /** co_step_do of ext/step.h, with a block in the device's memory. `rules`, needed for
     *  CO_STEP_END alone, is copied. */
    void (*step)(co_queue *queue, co_step_values *values, co_step_stage stage,
                 const co_loss_scale_rules *rules);

    /* ---- sum_squares in two parts, so that several ranks can have blocks of one array ---- */

    /** out[b] is that of block b alone: as many as CO_VECTOR_SQUARES goes into n, rounded up. */
    void (*block_squares)(co_queue *queue, double *out, const float *x, size_t n,
                          const co_grad_rule *rule);
    /** The sum of block[0 .. n - 1], from first to last. */
    void (*sum_blocks)(co_queue *queue, double *out, const double *block, size_t n);
} co_vector_ops;

#ifdef __cplusplus
}
#endif

#endif
