/* evaluate.h - measure the test split, on all ranks. */
#ifndef CO_TRAIN_EVALUATE_H
#define CO_TRAIN_EVALUATE_H

#include "model/model.h"
#include "train/loader_setup.h"

/* Ranks have seen different samples, so their running statistics differ: the mean, on every rank.
   Collective. */
co_status co_trainer_average_buffers(co_comm *comm, co_model *model);
/* Counts over the test split, each sample once, the same on every rank; `own` (NULL: not wanted)
   are those of this rank's part. Collective. */
co_status co_trainer_evaluate(co_result *out, co_result *own, co_comm *comm, co_model *model,
                              const co_feed *feed);

#endif
