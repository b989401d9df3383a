/* registry.c - the detectors, causes before those that only follow from them. */
#include "explain/detectors.h"

const co_detector *const co_detectors[] = {&co_detect_normalisation,
                                           &co_detect_labels,
                                           &co_detect_duplicates,
                                           &co_detect_imbalance,
                                           &co_detect_frozen,
                                           &co_detect_rate,
                                           &co_detect_dead,
                                           &co_detect_gradient,
                                           &co_detect_augmentation,
                                           &co_detect_loss,
                                           &co_detect_cores,
                                           &co_detect_busy,
                                           &co_detect_late,
                                           &co_detect_disk,
                                           &co_detect_reader,
                                           &co_detect_batch,
                                           NULL};
