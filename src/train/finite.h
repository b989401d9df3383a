/* finite.h - looks for numbers of the data that are not finite, where results are not. */
#ifndef CO_TRAIN_FINITE_H
#define CO_TRAIN_FINITE_H

#include "data/data.h"
#include "model/model.h"
#include "train/spec.h"

/* Bytes and tokens are finite; samples of such data are not read. */
typedef struct co_finite {
    const co_dataset *dataset; /* borrowed */
    const co_graph *graph;     /* borrowed */
    float *value;              /* owned; room for a field; NULL: nothing to read */
} co_finite;

/* Caller closes. */
co_status co_finite_open(co_finite *out, const co_dataset *dataset, const co_graph *graph);
void co_finite_close(co_finite *finite);

/* Read what the network takes of a sample, as drawn for `place`, NULL: as stored. CO_E_DATA names
   the first value that is infinite or NaN, and what follows from it: "the test loss is not a
   number". */
co_status co_finite_check(const co_finite *finite, uint64_t sample, const co_augment_place *place,
                          const char *so);
/* The same of all samples, one after the other, for so many seconds at most. */
co_status co_finite_check_all(const co_finite *finite, const char *so, double seconds);
/* Where the loss of a test split is not finite: CO_E_DATA as above, or a warning that no sample is
   to blame. Of rank 0. */
co_status co_finite_explain(const co_result *tested, const co_dataset *test, const co_graph *graph,
                            const co_spec *spec);

/* How long one rank may look while the others wait for it. */
double co_finite_seconds(const co_spec *spec);

#endif
