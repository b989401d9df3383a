/*
 * buffer.c - blocks of bytes that grow and are kept.
 */
#include "core/mem.h"
#include "data/data.h"

co_status co_buffer_reserve(uint8_t **out, co_buffer *buffer, size_t n)
{
    if (n > buffer->size) {
        /* The next larger one may fit as well. */
        const size_t size = n <= PTRDIFF_MAX / 2 ? n + n / 4 : n;

        co_buffer_free(buffer);
        buffer->at = co_calloc(size, 1);
        if (!buffer->at)
            return CO_E_NOMEM;
        buffer->size = size;
    }
    *out = buffer->at;
    return CO_OK;
}

void co_buffer_free(co_buffer *buffer)
{
    co_free(buffer->at);
    *buffer = (co_buffer){0};
}
