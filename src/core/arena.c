/*
 * arena.c - a list of blocks, bumped through.
 */
#include "core/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"

#define ARENA_ALIGN ((size_t)16)
#define ARENA_BLOCK ((size_t)16 << 10)

typedef struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) char data[];
} arena_block;

struct co_arena {
    arena_block *blocks; /* newest first */
};

co_arena *co_arena_create(void)
{
    return co_calloc(1, sizeof(co_arena));
}

void co_arena_destroy(co_arena *arena)
{
    if (!arena)
        return;
    while (arena->blocks) {
        arena_block *block = arena->blocks;

        arena->blocks = block->next;
        co_free(block);
    }
    co_free(arena);
}

void *co_arena_alloc(co_arena *arena, size_t count, size_t size)
{
    arena_block *block = arena->blocks;
    size_t bytes;
    void *out;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX / 2)
        return co_calloc(count, size ? PTRDIFF_MAX : 0); /* fails, and says so */
    bytes = (bytes + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    if (!block || block->size - block->used < bytes) {
        size_t room = bytes > ARENA_BLOCK ? bytes : ARENA_BLOCK;

        block = co_calloc(1, sizeof(*block) + room);
        if (!block)
            return NULL;
        block->size = room;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    out = block->data + block->used;
    block->used += bytes;
    return out;
}

char *co_arena_strdup(co_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = co_arena_alloc(arena, size, 1);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

char *co_arena_printf(co_arena *arena, const char *fmt, ...)
{
    va_list args;
    char *out;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    out = n < 0 ? NULL : co_arena_alloc(arena, (size_t)n + 1, 1);
    if (!out)
        return NULL;
    va_start(args, fmt);
    vsnprintf(out, (size_t)n + 1, fmt, args);
    va_end(args);
    return out;
}
