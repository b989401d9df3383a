/* values.h - weights and running statistics in memory that the host can read. */
#ifndef CO_EXPORT_VALUES_H
#define CO_EXPORT_VALUES_H

#include "export/export.h"

typedef struct co_export_values {
    float *param, *buffer; /* the store's arrays, or copies of them */
} co_export_values;

co_status co_export_open_values(co_export_values *out, const co_export *export);
/* Takes empty values, too. */
void co_export_close_values(co_export_values *values, const co_export *export);

#endif
