/* evaluate.h - measure the test split, on all ranks. */
#ifndef CO_TRAIN_EVALUATE_H
#define CO_TRAIN_EVALUATE_H

#include "model/model.h"
#include "train/loader_setup.h"

/* Ranks have seen different samples, so their running statistics differ: the mean, on every rank.
   Collective. */
co_status co_trainer_average_buffers(co_comm *comm, co_model *model);
/* Of the test split, each sample once. */
typedef struct co_tested {
    co_result all, own;           /* counts: of all ranks; of this rank's part */
    double value[CO_METRICS_MAX]; /* of model->metrics, over all */
} co_tested;

/* The same on every rank, but for `own`. Collective. */
co_status co_trainer_evaluate(co_tested *out, co_comm *comm, co_model *model, const co_feed *feed);

#endif
