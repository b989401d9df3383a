/* vector.h - what the kernels of vector.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_VECTOR_H
#define CO_KERNELS_CUDA_VECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/ext/rng.h>
#include <cohort/ext/step.h>

/* Threads that share a dot product of matrix_times. */
#define CUDA_LANES 16

/* By kernels of whole arrays; not all of it is used by each. */
typedef struct cuda_arrays {
    float *out, *other; /* (n) */
    const float *x, *y; /* (n) */
    const int32_t *flag;
    const double *part;
    double scale;
    float a, b;
    size_t n;
} cuda_arrays;

/* Elements of a block of squares, CO_VECTOR_SQUARES; blocks that are added up at once. */
#define CUDA_SQUARES      1024
#define CUDA_SQUARES_SUMS 8 /* of a block: element i goes to sum i mod 8, the last ones to 0 */
#define CUDA_SQUARES_ROOM 8192

typedef struct cuda_squares {
    double *out;
    const float *x;           /* (n) */
    const double *part;       /* (n) for squares_add, (CO_VECTOR_PARTS) for squares_join */
    const co_grad_rule *rule; /* NULL: none */
    size_t n;
    bool more;
} cuda_squares;

typedef struct cuda_halves {
    float *out;           /* (n) */
    const float *x;       /* (n) */
    uint16_t *narrow;     /* (n) */
    const uint16_t *half; /* `terms` of (n), `stride` apart */
    float *kept;          /* (n); NULL: what is lost is lost */
    const uint64_t *step; /* of rng; NULL: its own */
    size_t n, stride;
    uint64_t first;
    co_rng rng;
    int terms;
    bool f16; /* else BF16 */
    bool more;
} cuda_halves;

/* Digits of a key, of at most 11 bits, and parts of an array that are counted by themselves. */
#define CUDA_SELECT_ROUNDS 3
#define CUDA_SELECT_DIGITS 2048
#define CUDA_SELECT_PARTS  128

/* Between the kernels that select with several blocks; zeroed before them. */
typedef struct cuda_select_room {
    uint32_t count[CUDA_SELECT_ROUNDS][CUDA_SELECT_DIGITS]; /* keys with the prefix found so far */
    uint32_t prefix, above; /* of the k-th key, which it is in the end; how many are larger */
    uint32_t larger[CUDA_SELECT_PARTS], same[CUDA_SELECT_PARTS]; /* of each part */
} cuda_select_room;

typedef struct cuda_selection {
    cuda_select_room *room; /* of select_*; */
    int round;              /* of select_count and select_digit */
    uint32_t *found;        /* (k) by top_k */
    const uint32_t *index;  /* (k) for the others */
    const float *x;         /* (n), or (k) for what is scattered; NULL: zeros */
    float *out;             /* (k) for what is gathered, or the array */
    size_t n, k;
} cuda_selection;

/* M (rows, cols), P (rank, rows), Q (rank, cols); `out` is the one that is written. */
typedef struct cuda_matrix {
    const float *m, *p, *q;
    float *out;
    size_t rows, cols, rank;
    float sign;
} cuda_matrix;

typedef struct cuda_stage {
    co_step_values *values;
    co_step_stage stage;
    co_loss_scale_rules rules;
} cuda_stage;

#endif
