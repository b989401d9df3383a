/*
 * arena.c - a list of blocks from which memory is taken in order.
 *
 * Ranks that are threads read keys of one config, which allocates from its arena, so a lock
 * protects the list.
 */
#include "core/arena.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/number.h"

#define ARENA_ALIGN ((size_t)16)
#define ARENA_BLOCK ((size_t)16 << 10)

typedef struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) char data[];
} arena_block;

struct co_arena {
    pthread_mutex_t lock;
    arena_block *blocks; /* newest first */
};

co_arena *co_arena_create(void)
{
    co_arena *arena = co_calloc(1, sizeof(*arena));

    if (arena)
        pthread_mutex_init(&arena->lock, NULL);
    return arena;
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
    pthread_mutex_destroy(&arena->lock);
    co_free(arena);
}

static void *arena_take(co_arena *arena, size_t bytes)
{
    arena_block *block = arena->blocks;
    void *out;

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

void *co_arena_alloc(co_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    void *out;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX / 2)
        return co_calloc(count, size ? PTRDIFF_MAX : 0); /* fails, and says so */
    pthread_mutex_lock(&arena->lock);
    out = arena_take(arena, (bytes + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1));
    pthread_mutex_unlock(&arena->lock);
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
    n = co_number_vprint(NULL, 0, fmt, args);
    va_end(args);
    out = n < 0 ? NULL : co_arena_alloc(arena, (size_t)n + 1, 1);
    if (!out)
        return NULL;
    va_start(args, fmt);
    (void)co_number_vprint(out, (size_t)n + 1, fmt, args);
    va_end(args);
    return out;
}
