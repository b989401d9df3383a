/*
 * fuzz_safetensors.c - the safetensors reader over any bytes.
 *
 * Tensors of a file that it accepts must lie inside it (but those that were widened, whose bytes
 * are all readable), have the bytes that their types and shapes say, stand in name order and be
 * found by name.
 */
#include <stdlib.h>
#include <string.h>

#include <cohort/safetensors.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_check(const co_named_tensor *tensor, const char *stored, const uint8_t *data,
                       size_t size)
{
    const uint8_t *at = tensor->data;
    const size_t count = (size_t)co_shape_count(&tensor->shape);
    const bool widened = strcmp(stored, "F16") == 0 || strcmp(stored, "BF16") == 0;

    if (widened && tensor->dtype != CO_F32)
        abort();
    if (!widened && (at < data || tensor->bytes > size || at > data + size - tensor->bytes))
        abort();
    if (tensor->bytes != count * co_dtype_size(tensor->dtype))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_safetensors *file = NULL;
    char hash[65];

    if (co_safetensors_parse(&file, data, size, "input") != CO_OK)
        return 0;
    for (size_t i = 0; i < co_safetensors_count(file); i++) {
        const co_named_tensor *tensor = co_safetensors_tensor(file, i);

        fuzz_check(tensor, co_safetensors_stored(file, i), data, size);
        if (co_safetensors_find(file, tensor->name) != tensor)
            abort();
        if (i > 0 && strcmp(co_safetensors_tensor(file, i - 1)->name, tensor->name) >= 0)
            abort();
        co_safetensors_sha256(hash, tensor, 1); /* reads every byte */
    }
    (void)co_safetensors_metadata(file, "format");
    co_safetensors_close(file);
    return 0;
}
