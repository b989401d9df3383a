/*
 * values.c - map weights and running statistics for export.
 */
#include "export/values.h"

co_status co_export_open_values(co_export_values *out, const co_export *export)
{
    co_status st;

    *out = (co_export_values){NULL};
    CO_TRY(co_store_map(&out->param, export->store, CO_STORE_PARAM));
    st = co_store_map(&out->buffer, export->store, CO_STORE_BUFFER);
    if (st != CO_OK)
        co_export_close_values(out, export);
    return st;
}

void co_export_close_values(co_export_values *values, const co_export *export)
{
    (void)co_store_unmap(export->store, CO_STORE_PARAM, values->param, false);
    (void)co_store_unmap(export->store, CO_STORE_BUFFER, values->buffer, false);
    *values = (co_export_values){NULL};
}
