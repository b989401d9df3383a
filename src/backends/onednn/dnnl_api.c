/*
 * dnnl_api.c - memory descriptors of oneDNN 2.x and 3.x, and who destroys them.
 */
#include <stdbool.h>

#include "backends/onednn/dnnl_api.h"
#include "core/mem.h"

/* One of either kind. */
typedef struct onednn_desc {
    struct onednn_desc *next;
    dnnl_primitive_desc_t pd; /* NULL: `md` */
    dnnl_memory_desc_t md;
} onednn_desc;

#if DNNL_VERSION_MAJOR < 3

static const_dnnl_memory_desc_t desc_view(const dnnl_memory_desc_t *md)
{
    return md;
}

static dnnl_status_t desc_init_tag(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndims,
                                   const dnnl_dims_t dim, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(md, ndims, dim, type, tag);
}

static dnnl_status_t desc_init_strides(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndims,
                                       const dnnl_dims_t dim, const dnnl_dims_t stride)
{
    return dnnl_memory_desc_init_by_strides(md, ndims, dim, type, stride);
}

static dnnl_status_t desc_init_type(dnnl_memory_desc_t *md, const_dnnl_memory_desc_t from,
                                    dnnl_data_type_t type)
{
    *md = *from;
    md->data_type = type;
    return dnnl_success;
}

static void desc_clear(dnnl_memory_desc_t *md)
{
    (void)md;
}

onednn_dims onednn_dims_of(const_dnnl_memory_desc_t md)
{
    return md ? (onednn_dims){md->data_type, md->ndims, md->dims} : (onednn_dims){0};
}

dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f);
}

#else

static const_dnnl_memory_desc_t desc_view(const dnnl_memory_desc_t *md)
{
    return *md;
}

static dnnl_status_t desc_init_tag(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndims,
                                   const dnnl_dims_t dim, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(md, ndims, dim, type, tag);
}

static dnnl_status_t desc_init_strides(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndims,
                                       const dnnl_dims_t dim, const dnnl_dims_t stride)
{
    return dnnl_memory_desc_create_with_strides(md, ndims, dim, type, stride);
}

static void desc_clear(dnnl_memory_desc_t *md)
{
    (void)dnnl_memory_desc_destroy(*md);
    *md = NULL;
}

/* The type cannot be changed: find the format's name. */
static dnnl_status_t desc_init_type(dnnl_memory_desc_t *md, const_dnnl_memory_desc_t from,
                                    dnnl_data_type_t type)
{
    const onednn_dims dims = onednn_dims_of(from);

    for (int tag = dnnl_a; tag < dnnl_format_tag_last; tag++) {
        bool same;

        if (desc_init_tag(md, dims.type, dims.ndims, dims.dim, (dnnl_format_tag_t)tag) !=
            dnnl_success)
            continue;
        same = dnnl_memory_desc_equal(*md, from) != 0;
        desc_clear(md);
        if (same)
            return desc_init_tag(md, type, dims.ndims, dims.dim, (dnnl_format_tag_t)tag);
    }
    return dnnl_unimplemented;
}

onednn_dims onednn_dims_of(const_dnnl_memory_desc_t md)
{
    const dnnl_dims_t *dim = NULL;
    onednn_dims out = {0};

    if (!md)
        return out;
    (void)dnnl_memory_desc_query(md, dnnl_query_data_type, &out.type);
    (void)dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &out.ndims);
    (void)dnnl_memory_desc_query(md, dnnl_query_dims, &dim);
    out.dim = *dim;
    return out;
}

dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

#endif

static onednn_desc *desc_add(onednn_descs *d)
{
    onednn_desc *desc = co_calloc(1, sizeof(*desc));

    if (!desc) {
        d->failure = CO_E_NOMEM;
        return NULL;
    }
    desc->next = d->last;
    d->last = desc;
    return desc;
}

/* `md`, if `st` says that it was made: handed over. */
static const_dnnl_memory_desc_t desc_keep(onednn_descs *d, dnnl_memory_desc_t *md, dnnl_status_t st)
{
    onednn_desc *desc = d->last;

    if (st != dnnl_success) {
        d->failure = co_fail(CO_E_FAILED, "oneDNN cannot describe a tensor");
        return NULL;
    }
    while (desc && (desc->pd || !dnnl_memory_desc_equal(desc_view(&desc->md), desc_view(md))))
        desc = desc->next;
    if (desc) {
        desc_clear(md);
        return desc_view(&desc->md);
    }
    desc = desc_add(d);
    if (!desc) {
        desc_clear(md);
        return NULL;
    }
    desc->md = *md;
    return desc_view(&desc->md);
}

static void desc_copy_dims(dnnl_dims_t to, int ndims, const int64_t *from)
{
    for (int i = 0; i < DNNL_MAX_NDIMS; i++)
        to[i] = i < ndims ? from[i] : 0;
}

const_dnnl_memory_desc_t onednn_desc_of_tag(onednn_descs *d, dnnl_data_type_t type, int ndims,
                                            const int64_t *dim, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims;

    desc_copy_dims(dims, ndims, dim);
    return desc_keep(d, &md, desc_init_tag(&md, type, ndims, dims, tag));
}

const_dnnl_memory_desc_t onednn_desc_of_strides(onednn_descs *d, dnnl_data_type_t type, int ndims,
                                                const int64_t *dim, const int64_t *stride)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims, strides;

    desc_copy_dims(dims, ndims, dim);
    desc_copy_dims(strides, ndims, stride);
    return desc_keep(d, &md, desc_init_strides(&md, type, ndims, dims, strides));
}

const_dnnl_memory_desc_t onednn_desc_of_type(onednn_descs *d, const_dnnl_memory_desc_t md,
                                             dnnl_data_type_t type)
{
    dnnl_memory_desc_t out;

    if (!md || onednn_dims_of(md).type == type)
        return md;
    return desc_keep(d, &out, desc_init_type(&out, md, type));
}

dnnl_status_t onednn_desc_own(onednn_descs *d, dnnl_primitive_desc_t pd)
{
    onednn_desc *desc = desc_add(d);

    if (!desc) {
        (void)dnnl_primitive_desc_destroy(pd);
        return dnnl_out_of_memory;
    }
    desc->pd = pd;
    return dnnl_success;
}

void onednn_descs_destroy(onednn_descs *d)
{
    while (d->last) {
        onednn_desc *desc = d->last;

        d->last = desc->next;
        if (desc->pd)
            (void)dnnl_primitive_desc_destroy(desc->pd);
        else
            desc_clear(&desc->md);
        co_free(desc);
    }
}
