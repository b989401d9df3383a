/*
 * store.c - memory of the flat store.
 *
 * Every tensor starts at a multiple of CO_STORE_ALIGN elements and the gaps stay zero in every
 * array, so a range of the store can be summed, clipped or updated without knowing its tensors.
 */
#include "tensor/store.h"

#include <string.h>

#include "core/mem.h"
#include "tensor/vector.h"

co_status co_store_create(co_store **out, size_t n, size_t n_buffer)
{
    co_store *store = co_calloc(1, sizeof(*store));

    if (!store)
        return CO_E_NOMEM;
    store->n = n;
    store->n_buffer = n_buffer;
    store->vector = co_vector_host();
    store->param = store->own_param = co_calloc_aligned(n, sizeof(float));
    store->grad = store->own_grad = co_calloc_aligned(n, sizeof(float));
    store->buffer = co_calloc_aligned(n_buffer, sizeof(float));
    if (!store->param || !store->grad || !store->buffer) {
        co_store_destroy(store);
        return CO_E_NOMEM;
    }
    *out = store;
    return CO_OK;
}

void co_store_destroy(co_store *store)
{
    if (!store)
        return;
    for (int i = 0; i < store->n_state; i++)
        co_free(store->state[i]);
    co_free(store->tensor);
    co_free(store->buffer);
    co_free(store->own_grad);
    co_free(store->own_param);
    co_free(store);
}

co_status co_store_add_states(co_store *store, int n_state)
{
    for (int i = 0; i < n_state; i++) {
        float *state = co_calloc_aligned(store->n, sizeof(float));

        if (!state)
            return CO_E_NOMEM;
        store->state[store->n_state++] = state;
    }
    return CO_OK;
}

co_status co_store_set_tensors(co_store *store, const co_store_tensor *tensor, size_t n)
{
    store->tensor = co_calloc(n ? n : 1, sizeof(*tensor));
    if (!store->tensor)
        return CO_E_NOMEM;
    if (n)
        memcpy(store->tensor, tensor, n * sizeof(*tensor));
    store->n_tensor = n;
    return CO_OK;
}

void co_store_lend_param(co_store *store, float *param)
{
    store->param = param;
    co_mem_forget(store->own_param, store->n * sizeof(float));
}

void co_store_take_param(co_store *store)
{
    if (store->param == store->own_param)
        return;
    memcpy(store->own_param, store->param, store->n * sizeof(float));
    store->param = store->own_param;
}

void co_store_lend_grad(co_store *store, float *grad)
{
    store->grad = grad ? grad : store->own_grad;
    if (grad)
        co_mem_forget(store->own_grad, store->n * sizeof(float));
}

size_t co_store_slice(size_t n, int part, int parts)
{
    const size_t lines = n / CO_STORE_ALIGN;

    return part < parts ? lines * (size_t)part / (size_t)parts * CO_STORE_ALIGN : n;
}

size_t co_store_place(size_t *end, size_t count)
{
    size_t start = *end;

    *end = start + (count + CO_STORE_ALIGN - 1) / CO_STORE_ALIGN * CO_STORE_ALIGN;
    return start;
}
