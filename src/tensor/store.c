/*
 * store.c - memory of the flat store.
 *
 * Every tensor starts at a multiple of CO_STORE_ALIGN elements and the gaps stay zero in every
 * array, so a range of the store can be summed, clipped or updated without knowing its tensors.
 */
#include "tensor/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "device/device.h"
#include "tensor/values.h"
#include "tensor/vector.h"

#define STORE_SLICE_BLOCKS 16 /* in a slice at least, where slices are of whole blocks */

static co_status store_take(float **out, const co_store *store, size_t n, co_memory kind)
{
    void *array = NULL;
    char why[512];
    co_status st;

    if (n > SIZE_MAX / sizeof(float))
        n = SIZE_MAX / sizeof(float); /* more than there is */
    st = co_device_alloc(&array, store->device, n * sizeof(float), kind);
    *out = array;
    if (st != CO_E_NOMEM || co_device_is_host(store->device))
        return st;
    snprintf(why, sizeof(why), "%s", co_error_message());
    return co_fail(st,
                   "weights, gradients, averages and states of the optimizer, each of %zu numbers: "
                   "%s",
                   store->n, why);
}

co_status co_store_take_array(float **out, const co_store *store, size_t n)
{
    return store_take(out, store, n, CO_MEMORY_DEVICE);
}

void co_store_give_array(const co_store *store, float *array)
{
    co_device_free(store->device, array, CO_MEMORY_DEVICE);
}

static co_status store_fill(co_store *store)
{
    CO_TRY(co_store_take_array(&store->own_param, store, store->n));
    CO_TRY(store_take(&store->own_grad, store, store->n, CO_MEMORY_EXCHANGED));
    CO_TRY(co_store_take_array(&store->buffer, store, store->n_buffer));
    store->param = store->own_param;
    store->grad = store->own_grad;
    if (!co_device_is_host(store->device))
        CO_TRY(co_device_alloc(&store->result, store->device, sizeof(float), CO_MEMORY_DEVICE));
    CO_TRY(co_queue_create(&store->queue, store->device));
    return co_values_open(store);
}

co_status co_store_create_on(co_store **out, co_device *device, size_t n, size_t n_buffer)
{
    co_store *store = co_calloc(1, sizeof(*store));
    co_status st;

    if (!store)
        return CO_E_NOMEM;
    store->device = device;
    store->n = n;
    store->n_buffer = n_buffer;
    store->vector = device && !co_device_is_host(device) ? device->ops->vector : co_vector_host();
    st = store_fill(store);
    if (st != CO_OK) {
        co_store_destroy(store);
        return st;
    }
    *out = store;
    return CO_OK;
}

co_status co_store_create(co_store **out, size_t n, size_t n_buffer)
{
    return co_store_create_on(out, NULL, n, n_buffer);
}

void co_store_destroy(co_store *store)
{
    if (!store)
        return;
    co_queue_destroy(store->queue);
    co_values_close(store);
    co_device_free(store->device, store->result, CO_MEMORY_DEVICE);
    for (int i = 0; i < store->n_state; i++)
        co_store_give_array(store, store->state[i] + store->kept[i].begin);
    co_store_give_array(store, store->buffer);
    co_device_free(store->device, store->own_grad, CO_MEMORY_EXCHANGED);
    co_store_give_array(store, store->own_param);
    co_free(store->tensor);
    co_free(store);
}

static co_status store_copy_to(co_store *to, const co_store *from)
{
    CO_TRY(co_queue_wait(from->queue, CO_DEVICE_WAIT_MS));
    CO_TRY(co_queue_copy_now(to->queue, to->param, from->param, to->n * sizeof(float)));
    return co_queue_copy_now(to->queue, to->buffer, from->buffer, to->n_buffer * sizeof(float));
}

co_status co_store_move(co_store *store, co_device *device)
{
    co_store *moved = NULL, left;
    co_status st;

    assert(store->n_state == 0 && store->param == store->own_param);
    assert(store->grad == store->own_grad && co_device_is_host(store->device));
    CO_TRY(co_store_create_on(&moved, device, store->n, store->n_buffer));
    st = store_copy_to(moved, store);
    if (st == CO_OK) {
        left = *store;
        *store = *moved;
        store->tensor = left.tensor;
        store->n_tensor = left.n_tensor;
        left.tensor = NULL;
        *moved = left;
    }
    co_store_destroy(moved);
    return st;
}

co_status co_store_add_states(co_store *store, int n_state)
{
    for (int i = 0; i < n_state; i++) {
        CO_TRY(co_store_take_array(&store->state[store->n_state], store, store->n));
        store->kept[store->n_state] = (struct co_store_kept){0, store->n};
        store->n_state++;
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

/* ---- to and from the host ---- */

static float *store_array(const co_store *store, co_store_array array)
{
    switch (array) {
    case CO_STORE_PARAM:
        return store->param;
    case CO_STORE_GRAD:
        return store->grad;
    case CO_STORE_BUFFER:
        return store->buffer;
    default:
        return store->state[array - CO_STORE_STATE];
    }
}

static size_t store_length(const co_store *store, co_store_array array)
{
    return array == CO_STORE_BUFFER ? store->n_buffer : store->n;
}

co_status co_store_read(const co_store *store, co_store_array array, size_t begin, size_t n,
                        void *host)
{
    assert(begin <= store_length(store, array) && n <= store_length(store, array) - begin);
    return co_queue_copy_now(store->queue, host, store_array(store, array) + begin,
                             n * sizeof(float));
}

co_status co_store_write(co_store *store, co_store_array array, size_t begin, size_t n,
                         const void *host)
{
    assert(begin <= store_length(store, array) && n <= store_length(store, array) - begin);
    return co_queue_copy_now(store->queue, store_array(store, array) + begin, host,
                             n * sizeof(float));
}

co_status co_store_wait(const co_store *store, uint32_t timeout_ms)
{
    return co_queue_wait(store->queue, timeout_ms);
}

co_status co_store_max_abs(float *out, const co_store *store, const float *x, size_t n)
{
    float *at = store->result ? store->result : out;

    store->vector->max_abs(store->queue, at, x, n);
    return at == out ? CO_OK : co_queue_copy_now(store->queue, out, at, sizeof(*out));
}

co_status co_store_map(float **out, co_store *store, co_store_array array)
{
    const size_t n = store_length(store, array);
    void *values = NULL;
    co_status st;

    if (co_device_is_host(store->device)) {
        *out = store_array(store, array);
        return CO_OK;
    }
    CO_TRY(co_device_alloc(&values, store->device, n * sizeof(float), CO_MEMORY_PINNED));
    st = co_store_read(store, array, 0, n, values);
    if (st == CO_OK)
        *out = values;
    else
        co_device_free(store->device, values, CO_MEMORY_PINNED);
    return st;
}

co_status co_store_unmap(co_store *store, co_store_array array, float *values, bool changed)
{
    co_status st = CO_OK;

    if (!values || co_device_is_host(store->device))
        return CO_OK;
    if (changed)
        st = co_store_write(store, array, 0, store_length(store, array), values);
    co_device_free(store->device, values, CO_MEMORY_PINNED);
    return st;
}

/* ---- memory that others have ---- */

void co_store_lend_param(co_store *store, float *param)
{
    assert(co_device_is_host(store->device));
    store->param = param;
    co_device_forget(store->device, store->own_param, store->n * sizeof(float));
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
    assert(co_device_is_host(store->device));
    store->grad = grad ? grad : store->own_grad;
    if (grad)
        co_device_forget(store->device, store->own_grad, store->n * sizeof(float));
}

/* Memory of a device stays taken until its block is freed: let [begin, end) have a smaller one. */
static co_status store_shrink_state(co_store *store, int i, size_t begin, size_t end)
{
    struct co_store_kept *kept = &store->kept[i];
    float *part = NULL;
    co_status st;

    if (begin < kept->begin || end > kept->end || end - begin == kept->end - kept->begin)
        return CO_OK;
    CO_TRY(co_store_take_array(&part, store, end - begin));
    st = co_queue_copy_now(store->queue, part, store->state[i] + begin,
                           (end - begin) * sizeof(float));
    if (st != CO_OK) {
        co_store_give_array(store, part);
        return st;
    }
    co_store_give_array(store, store->state[i] + kept->begin);
    store->state[i] = part - begin;
    *kept = (struct co_store_kept){begin, end};
    return CO_OK;
}

void co_store_forget_range(co_store *store, size_t begin, size_t end)
{
    assert(co_device_is_host(store->device));
    for (int i = 0; i < store->n_state && begin < end; i++)
        co_device_forget(store->device, store->state[i] + begin, (end - begin) * sizeof(float));
}

co_status co_store_forget_state(co_store *store, size_t begin, size_t end)
{
    if (co_device_is_host(store->device)) {
        co_store_forget_range(store, 0, begin);
        co_store_forget_range(store, end, store->n);
        return CO_OK;
    }
    for (int i = 0; i < store->n_state; i++)
        CO_TRY(store_shrink_state(store, i, begin, end));
    return CO_OK;
}

size_t co_store_slice(size_t n, int part, int parts)
{
    const size_t many = STORE_SLICE_BLOCKS * (size_t)parts;
    const size_t unit = n / CO_VECTOR_SQUARES < many ? CO_STORE_ALIGN : CO_VECTOR_SQUARES;

    return part < parts ? n / unit / (size_t)parts * (size_t)part * unit : n;
}

size_t co_store_place(size_t *end, size_t count)
{
    size_t start = *end;

    *end = start + (count + CO_STORE_ALIGN - 1) / CO_STORE_ALIGN * CO_STORE_ALIGN;
    return start;
}

co_store_view co_store_look(const co_store *store)
{
    return (co_store_view){.n = store->n,
                           .param = store->param,
                           .grad = store->grad,
                           .n_state = store->n_state,
                           .state = store->state,
                           .n_buffer = store->n_buffer,
                           .buffer = store->buffer,
                           .n_tensor = store->n_tensor,
                           .vector = store->vector,
                           .queue = store->queue};
}

co_tensor_range co_store_tensor_at(const co_store *store, size_t i)
{
    const co_store_tensor *tensor = &store->tensor[i];

    return (co_tensor_range){tensor->begin, tensor->rows, tensor->cols};
}
