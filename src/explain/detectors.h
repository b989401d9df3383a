/* detectors.h - the detectors, one file for each group of causes. */
#ifndef CO_EXPLAIN_DETECTORS_H
#define CO_EXPLAIN_DETECTORS_H

#include "explain/explain.h"

/* --- detect_data.c --- */
extern const co_detector co_detect_normalisation, co_detect_labels, co_detect_duplicates,
    co_detect_imbalance;
/* --- detect_layers.c --- */
extern const co_detector co_detect_frozen, co_detect_dead;
/* --- detect_learning.c --- */
extern const co_detector co_detect_rate, co_detect_gradient, co_detect_augmentation, co_detect_loss;
/* --- detect_ranks.c --- */
extern const co_detector co_detect_late, co_detect_cores, co_detect_busy;
/* --- detect_input.c --- */
extern const co_detector co_detect_disk, co_detect_reader;
/* --- detect_batch.c --- */
extern const co_detector co_detect_batch;

/* Set the texts of a finding, each by a printf format. */
#define DETECT_TITLE(out, ...)    snprintf((out)->title, sizeof((out)->title), __VA_ARGS__)
#define DETECT_EVIDENCE(out, ...) snprintf((out)->evidence, sizeof((out)->evidence), __VA_ARGS__)
#define DETECT_REMEDY(out, ...)   snprintf((out)->remedy, sizeof((out)->remedy), __VA_ARGS__)

#endif
