/*
 * buffer.c - co_buffer, a block of bytes that grows and is reused.
 */
#include "core/mem.h"
#include "data/data.h"

co_status co_buffer_reserve(uint8_t **out, co_buffer *buffer, size_t n)
{
    if (n > buffer->size) {
        /* Headroom: the next request is often slightly larger. */
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
