/*
 * store.h - the flat store: all parameters in one array, all gradients in another, each optimizer
 * state in another, all with the same offsets, in the order in which backward finishes them.
 *
 * Knows offsets, shapes and memory; not layers, names or ranks.
 */
#ifndef CO_TENSOR_STORE_H
#define CO_TENSOR_STORE_H

#include <cohort/ext/store.h>

#define CO_STORE_ALIGN      16 /* elements between tensor starts; the gap stays 0 */
#define CO_STORE_MAX_STATES 4

/* A tensor of the store as a matrix: its first dimension, and the others. */
typedef struct co_store_tensor {
    size_t begin, rows, cols; /* rows * cols elements from `begin` on */
} co_store_tensor;

typedef enum co_store_array {
    CO_STORE_PARAM,
    CO_STORE_GRAD,
    CO_STORE_BUFFER,
    CO_STORE_STATE /* the first; + i is state[i] */
} co_store_array;

typedef struct co_store {
    co_device *device; /* borrowed; has the arrays. NULL: the host */
    size_t n;          /* elements with gaps; the length of each array below */
    float *param;      /* own_param, or what co_store_lend_param has put in its place */
    float *own_param;  /* owned */
    float *grad;       /* own_grad, or what co_store_lend_grad has put in its place */
    float *own_grad;   /* owned */
    int n_state;
    float *state[CO_STORE_MAX_STATES]; /* owned; optimizer state */
    struct co_store_kept {
        size_t begin, end; /* elements of the state that there is memory for */
    } kept[CO_STORE_MAX_STATES];
    size_t n_buffer;
    float *buffer;               /* owned; running statistics: kept and saved, not trained */
    size_t n_tensor;             /* 0: nobody has said what is in the store */
    co_store_tensor *tensor;     /* owned; (n_tensor), by rising `begin` */
    const co_vector_ops *vector; /* arithmetic on the arrays, done on `queue`; NULL: the device
                                    cannot compute */
    co_queue *queue;             /* owned; of arithmetic and copies. NULL: the caller, at once */
    void *result;                /* owned; where a device that is not the host leaves a max_abs */
    co_step_values *values; /* owned; of the step under way (tensor/values.h), where arrays are */
    struct co_values_ring *ring; /* owned; NULL where all is done at once */
} co_store;

/* Zeroed arrays of n and n_buffer elements, aligned to 64 bytes, in the memory of `device`, which
   is borrowed; NULL: of the host. */
co_status co_store_create_on(co_store **out, co_device *device, size_t n, size_t n_buffer);
co_status co_store_create(co_store **out, size_t n, size_t n_buffer); /* on the host */
void co_store_destroy(co_store *store);
/* Zeroed state arrays; called once, by the optimizer. */
co_status co_store_add_states(co_store *store, int n_state);

/* Weights and running statistics into memory of another device; all else is zero there, and
   pointers into the store go stale. Only before anyone has put something beside them: no
   optimizer's state, nothing lent. */
co_status co_store_move(co_store *store, co_device *device);

/* Zeroed memory for n elements beside the store's own arrays, where `vector` computes; and back,
   NULL allowed, before the store is destroyed. */
co_status co_store_take_array(float **out, const co_store *store, size_t n);
void co_store_give_array(const co_store *store, float *array);

/* What is in the store; copied. Called once. */
co_status co_store_set_tensors(co_store *store, const co_store_tensor *tensor, size_t n);

/* Elements begin .. begin + n of an array, to or from the host's memory, wherever the array is.
   They may be used when the call returns. A device that fails, or takes too long, fails the call.
 */
co_status co_store_read(const co_store *store, co_store_array array, size_t begin, size_t n,
                        void *host);
co_status co_store_write(co_store *store, co_store_array array, size_t begin, size_t n,
                         const void *host);
/* Until all is done that the queue has been given. CO_E_TIMEOUT after `timeout_ms`. */
co_status co_store_wait(const co_store *store, uint32_t timeout_ms);
/* max_abs of ext/vector.h for the host, which waits for all that was to be done before. A device
   that fails, or takes too long, fails the call. */
co_status co_store_max_abs(float *out, const co_store *store, const float *x, size_t n);
/* All of an array for code that needs it in the host's memory: the array itself where the host may
   touch it, else a copy, which unmap puts back if it has been changed. */
co_status co_store_map(float **out, co_store *store, co_store_array array);
co_status co_store_unmap(co_store *store, co_store_array array, float *values, bool changed);

/* Only on the host: let the weights be in `param` (n elements), which is borrowed: memory that
   ranks share. No value is copied, those of the old array are lost, and pointers into it go stale.
 */
void co_store_lend_param(co_store *store, float *param);
/* Back into own memory, values and all; nothing if they are there. */
void co_store_take_param(co_store *store);
/* The same for gradients, whose values do not outlive a step: lent, and with NULL taken back. */
void co_store_lend_grad(co_store *store, float *grad);

/* Give the memory of all states but [begin, end) back; the values there are lost. On a device they
   are in other memory from then on, and nobody may access the rest. */
co_status co_store_forget_state(co_store *store, size_t begin, size_t end);

/* Only on the host: give the memory of [begin, end) of all states back; the values are lost. */
void co_store_forget_range(co_store *store, size_t begin, size_t end);

/* Part `part` of `parts` of a store of n elements, nearly equal and a whole number of cache lines
   each, or of blocks whose squares are summed (CO_VECTOR_SQUARES) where there are many: begin, and
   the begin of the next. */
size_t co_store_slice(size_t n, int part, int parts);

/* Next start for a tensor of `count` elements at `*end`; moves *end. */
size_t co_store_place(size_t *end, size_t count);

#endif
