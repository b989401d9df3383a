/* run_data.h - data.json of a run directory: what a trained network needs to know of its data where
   that is not there: the form of samples, and the names of classes. */
#ifndef CO_TRAIN_RUN_DATA_H
#define CO_TRAIN_RUN_DATA_H

#include "data/data.h"

#define CO_RUN_DATA_NAME "data.json"

typedef struct co_run_data {
    bool encoded;            /* samples are image files */
    co_shape stored, sample; /* as stored (C, H, W), encoded: (C, 0, 0); as the network gets it */
    int64_t classes;
    char **name; /* owned: (classes), each one a name or NULL */
} co_run_data;

/* Of images with a label; of other data nothing is written. */
co_status co_run_data_write(const char *run_dir, const co_dataset *data);
/* Of an open data set; CO_E_USAGE unless it has images with a label. */
co_status co_run_data_of(co_run_data *out, const co_dataset *data);
/* `name` is the file, for messages: CO_E_DATA. */
co_status co_run_data_parse(co_run_data *out, const char *text, size_t size, const char *name);
co_status co_run_data_read(co_run_data *out, const char *path);
void co_run_data_free(co_run_data *data);
/* Warn of the first class that has another name in the file than in the data. */
co_status co_run_data_compare(const char *path, const co_dataset *data);

#endif
