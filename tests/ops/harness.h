/*
 * harness.h - a small network built from one line of text, with access to all its tensors.
 *
 * The network starts with the op `source`, whose parameter is the whole input batch: so the
 * gradient of the input is a range of the store like any other, and a difference quotient can
 * change inputs like weights. It ends with `project`, a loss: each sample's output times a random
 * row. Both are test ops with their own kernels, so graph and plan run as in training. A network
 * that begins with `embedding` gets tokens instead, one that begins with `data` numbers that have
 * no gradient.
 */
#ifndef CO_TESTS_OPS_HARNESS_H
#define CO_TESTS_OPS_HARNESS_H

#include "backends/backends.h"
#include "core/config.h"
#include "graph/plan.h"

typedef struct harness {
    co_config *config; /* owned: attributes */
    co_graph *graph;   /* owned */
    co_store *store;   /* owned */
    int64_t batch;
    int layers;        /* in the text */
    uint32_t *sample;  /* owned (batch): indices in a data set */
    int32_t *label;    /* owned (batch), or of each position; -1: none */
    void *input;       /* owned (batch, ...): zeros, or tokens (I32) */
    float *target;     /* owned (batch, outputs), 0 to 1 */
    const float *row;  /* (batch, outputs) factors of project; NULL: random */
    double projection; /* the objective in double precision, if project is the loss */
    co_step_values values;
    const co_backend *backend[8]; /* of the last plan; the last entry is harness_backend */
} harness;

extern const co_backend harness_backend; /* of the test ops, on the host */

/* `net` is a list of layers separated by ';': "conv2d {out: 3, kernel: 5}; relu". `keep` marks the
   current tensor, and `add` later adds it to the current one; `tie` gives the last layer the weight
   of the embedding. */
co_status harness_create(harness **out, const co_shape *sample, int64_t batch, const char *net);
void harness_destroy(harness *h);

/* Sets all values from `seed`. Input elements differ from each other by at least 2 / count and from
   zero by at least 0.5 / count, so that max and relu have no ties. */
void harness_fill(harness *h, uint64_t seed);
/* A parameter or buffer by name, e.g. "source.value", and its values or gradients. */
const co_param *harness_param(const harness *h, const char *name);
float *harness_values(const harness *h, const co_param *param);
float *harness_gradients(const harness *h, const co_param *param);

typedef struct harness_mode {
    const co_backend *const *backends; /* as in co_plan_options; NULL: ref only */
    bool training;
    bool no_reuse;
    bool direct; /* convolutions by their definition only */
    int threads; /* as in co_plan_options */
    co_plan_precision precision;
} harness_mode;
co_status harness_plan(co_plan **out, harness *h, const harness_mode *mode);
co_run harness_run(const harness *h);
/* Sets inputs and labels and runs forward. *objective (may be NULL): the sum of the losses. */
co_status harness_forward(double *objective, harness *h, co_plan *plan);

/* Results of a run. Free with harness_result_free. */
typedef struct harness_result {
    size_t n_out, n_loss, n_grad, n_buffer;
    float *out, *loss, *grad, *buffer;
} harness_result;
/* Runs forward, and in training backward, from the store's values; with `twice` both again,
   accumulating. Gradients hold NaN before; buffers are restored afterwards. */
co_status harness_measure(harness_result *out, harness *h, const harness_mode *mode, bool twice);
void harness_result_free(harness_result *result);

#endif
