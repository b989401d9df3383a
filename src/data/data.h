/* data.h - what the rest of Cohort needs of src/data beside the public header. */
#ifndef CO_DATA_DATA_H
#define CO_DATA_DATA_H

#include <cohort/data.h>

#include "core/config.h"
#include "data/partition.h"

/* NULL-ended, in the order that `cohort list datasets` prints. */
extern const co_dataset_ops *const co_dataset_formats[];
const co_dataset_ops *co_dataset_find(const char *name);
/* Keys of every data set: path, normalize, resize. */
extern const co_key co_dataset_common_keys[];

/* Open from a config value (`config` owns it and outlives the data set). */
co_status co_dataset_open_value(co_dataset **out, const co_value *value, co_config *config,
                                co_split split);
const char *co_dataset_name(const co_dataset *dataset);
/* As stored, before resizing. */
const co_dataset_info *co_dataset_stored(const co_dataset *dataset);

#endif
