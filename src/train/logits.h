/* logits.h - what a network gives for each sample of the test split, or for images from elsewhere.
 */
#ifndef CO_TRAIN_LOGITS_H
#define CO_TRAIN_LOGITS_H

#include <cohort/train.h>

#include "data/images.h"

#define CO_LOGITS_MAX_BYTES ((uint64_t)4 << 30)

/* Logits, or log-probabilities where the network ends with log_softmax. */
typedef struct co_logits {
    uint64_t samples;
    int64_t classes;
    float *value; /* owned: (samples, classes), in the order of the set */
} co_logits;

/* As co_evaluate_classes, whose `confusion` may be NULL, and is left as it is where the network
   does not classify; also the logits. CO_E_USAGE of networks of tokens, and under MPI. */
co_status co_evaluate_logits(co_eval_summary *out, co_confusion *confusion, co_logits *logits,
                             const co_train_options *options, const char *weights);
/* Of these images instead of the test split, by a network that classifies: every step from a file's
   bytes to logits is that of an evaluation. `full`: in batches as large as its full ones, so that
   the kernels are the same, and so the bits. */
co_status co_predict_images(co_logits *logits, const co_image_files *images, bool full,
                            const co_train_options *options, const char *weights);
void co_logits_free(co_logits *logits);

#endif
