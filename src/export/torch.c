/*
 * torch.c - write weights as a safetensors file that PyTorch's load_state_dict takes with
 * strict=True.
 *
 * Names, shapes and layouts are PyTorch's already; the batch counters of batch norms are added.
 */
#include <string.h>

#include <cohort/safetensors.h>

#include "core/arena.h"
#include "core/mem.h"
#include "export/values.h"
#include "graph/stored.h"

static const int64_t torch_no_batches = 0;

/* "bn1.num_batches_tracked", which follows "bn1.running_var" in PyTorch's state_dict. */
static co_status torch_add_counter(co_named_tensor *out, const co_param *param, co_arena *arena)
{
    const size_t n = strlen(param->name) - strlen(param->spec.name);

    *out = (co_named_tensor){.dtype = CO_I64, .data = &torch_no_batches, .bytes = sizeof(int64_t)};
    out->name = co_arena_printf(arena, "%.*snum_batches_tracked", (int)n, param->name);
    return out->name ? CO_OK : CO_E_NOMEM;
}

static co_status torch_collect(co_named_tensor *out, size_t *n, const co_export *export,
                               const co_export_values *values, co_arena *arena)
{
    const co_graph *graph = export->graph;

    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        const float *from = param->spec.buffer ? values->buffer : values->param;
        float *room = co_arena_alloc(arena, co_param_stored_room(param) + 1, sizeof(*room));

        if (!room)
            return CO_E_NOMEM;
        out[(*n)++] = co_param_stored(param, from + param->offset, room);
        if (strcmp(param->spec.name, "running_var") == 0)
            CO_TRY(torch_add_counter(&out[(*n)++], param, arena));
    }
    return CO_OK;
}

co_status co_export_torch(const char *path, const co_export *export)
{
    co_arena *arena = co_arena_create();
    co_named_tensor *tensors = NULL;
    co_export_values values = {NULL};
    co_status st = CO_E_NOMEM;
    size_t n = 0;

    if (arena)
        tensors = co_arena_alloc(arena, 2 * (size_t) export->graph->n_param, sizeof(*tensors));
    if (tensors)
        st = co_export_open_values(&values, export);
    if (st == CO_OK)
        st = torch_collect(tensors, &n, export, &values, arena);
    if (st == CO_OK)
        st = co_safetensors_write(path, tensors, n, export->metadata);
    co_export_close_values(&values, export);
    co_arena_destroy(arena);
    return st;
}
