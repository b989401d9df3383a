/*
 * fuzz_weights.c - weights for a network out of any safetensors file.
 *
 * A file that is refused must leave every weight as it was, and its message is one line; one that
 * is taken has put a value into each.
 */
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static co_model *fuzz_make_model(void)
{
    const co_model_options options = {
        .model =
            "[conv2d: {name: conv, out: 1, kernel: 2}, batchnorm: {name: bn}, flatten, linear: "
            "{name: fc, out: 2}]",
        .sample = {3, {1, 2, 2}},
        .classes = 2};
    co_model *model;

    return co_model_create(&model, &options) == CO_OK ? model : NULL;
}

static void fuzz_load(co_model *model, const co_safetensors *file, const co_layer_names *fresh)
{
    co_store *store = model->store;

    /* A value that no file brings by chance stays only where nothing was loaded. */
    for (size_t i = 0; i < store->n; i++)
        store->param[i] = 1234.5f;
    for (size_t i = 0; i < store->n_buffer; i++)
        store->buffer[i] = 1234.5f;
    if (co_model_load_from(model, file, "input", fresh) == CO_OK)
        return;
    if (co_error_status() != CO_E_DATA || strchr(co_error_message(), '\n'))
        abort();
    for (size_t i = 0; i < store->n; i++)
        if (store->param[i] != 1234.5f)
            abort();
    for (size_t i = 0; i < store->n_buffer; i++)
        if (store->buffer[i] != 1234.5f)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const skip[] = {"fc"};
    co_model *model = NULL;
    co_safetensors *file = NULL;

    if (co_safetensors_parse(&file, data, size, "input") == CO_OK)
        model = fuzz_make_model();
    if (model) {
        fuzz_load(model, file, NULL);
        fuzz_load(model, file, &(co_layer_names){1, skip});
    }
    co_model_destroy(model);
    co_safetensors_close(file);
    return 0;
}
