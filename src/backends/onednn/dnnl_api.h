/*
 * dnnl_api.h - oneDNN 2.x and 3.x as one library, in 3.x's terms: which of them it is, the rest of
 * the folder does not know.
 *
 * Three things differ: what a memory descriptor is (2.x: a struct; 3.x: an opaque pointer), how a
 * primitive is described (2.x: through a description of the operation), and the post-op that adds.
 */
#ifndef CO_BACKENDS_ONEDNN_DNNL_API_H
#define CO_BACKENDS_ONEDNN_DNNL_API_H

#include <stdint.h>

#include <cohort/status.h>
#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR < 3
#include "backends/onednn/dnnl_v2.h"
#endif

/* Descriptors, of memory and of primitives, that are destroyed together. All zero: none. */
typedef struct onednn_descs {
    struct onednn_desc *last;
    co_status failure; /* of making one: co_fail has been called, and NULL returned for it */
} onednn_descs;

/* Of a tensor in a named format, or with the distance between elements along each dimension, in
   elements. Equal ones are one, owned by `d`. NULL if it cannot be made. */
const_dnnl_memory_desc_t onednn_desc_of_tag(onednn_descs *d, dnnl_data_type_t type, int ndims,
                                            const int64_t *dim, dnnl_format_tag_t tag);
const_dnnl_memory_desc_t onednn_desc_of_strides(onednn_descs *d, dnnl_data_type_t type, int ndims,
                                                const int64_t *dim, const int64_t *stride);
/* The same format for elements of another type; NULL for NULL. */
const_dnnl_memory_desc_t onednn_desc_of_type(onednn_descs *d, const_dnnl_memory_desc_t md,
                                             dnnl_data_type_t type);
/* Hand `pd` over; it is destroyed at once where there is no memory. */
dnnl_status_t onednn_desc_own(onednn_descs *d, dnnl_primitive_desc_t pd);
void onednn_descs_destroy(onednn_descs *d);

/* What a descriptor says of its tensor, all zero for NULL; `dim` lives as long as it does. */
typedef struct onednn_dims {
    dnnl_data_type_t type;
    int ndims;
    const int64_t *dim;
} onednn_dims;

onednn_dims onednn_dims_of(const_dnnl_memory_desc_t md);

/* 2.x wants the shift for batch norm's backward pass, too, on which nothing depends; 3.x refuses
 * it. */
#define ONEDNN_BACKWARD_SHIFT (DNNL_VERSION_MAJOR < 3)

/* Add to what the destination holds. */
dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops);

#endif
