/* arena.h - many small allocations with one lifetime: made one by one, by any thread; freed
   together. */
#ifndef CO_CORE_ARENA_H
#define CO_CORE_ARENA_H

#include <stddef.h>

typedef struct co_arena co_arena;

/* NULL when out of memory, with the message set. */
co_arena *co_arena_create(void);
void co_arena_destroy(co_arena *arena);

/* Zeroed, aligned to 16 bytes, freed with the arena. NULL (message set) when out of memory or
   when count * size overflows. */
void *co_arena_alloc(co_arena *arena, size_t count, size_t size);
char *co_arena_strdup(co_arena *arena, const char *text);
char *co_arena_printf(co_arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
