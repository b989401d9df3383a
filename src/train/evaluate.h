/* evaluate.h - evaluation of the test split on all ranks. */
#ifndef CO_TRAIN_EVALUATE_H
#define CO_TRAIN_EVALUATE_H

#include "model/model.h"
#include "train/loader_setup.h"

/* Average the running statistics over ranks, since each has seen different samples; every rank gets
   the mean. A rank whose part of the training split is empty has seen none and does not count.
   Collective. */
co_status co_trainer_average_buffers(co_comm *comm, co_model *model, const co_sampler *train);
/* Results on the test split, each sample counted once. */
typedef struct co_tested {
    co_result all, own;           /* counts: of all ranks; of this rank's part */
    double value[CO_METRICS_MAX]; /* of model->metrics, over all */
} co_tested;

/* The result is the same on every rank, except `own`. Collective. */
co_status co_trainer_evaluate(co_tested *out, co_comm *comm, co_model *model, const co_feed *feed);
/* How long an evaluation of this rank's part takes, from its first batches, for about `most`
   seconds. Not collective. */
co_status co_trainer_time_evaluation(double *seconds, co_comm *comm, co_model *model,
                                     const co_feed *feed, double most);

#endif
