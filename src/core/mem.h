/*
 * mem.h - the one way to allocate memory, from the heap or as pages.
 *
 * Every call sets the error message and returns NULL when it fails; the caller returns CO_E_NOMEM.
 * Tests make the k-th allocation fail with co_mem_fail_at.
 *
 * Core dumps leave out large blocks: tensors and shared memory explain no crash, and dumping pages
 * that were never touched takes memory for them.
 */
#ifndef CO_CORE_MEM_H
#define CO_CORE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* count * size zeroed bytes, overflow-checked. Free with co_free. */
void *co_calloc(size_t count, size_t size);
/* Grow or shrink to count * size bytes; new bytes are not zeroed. */
void *co_realloc(void *ptr, size_t count, size_t size);
char *co_strdup(const char *text);
/* Zeroed bytes aligned to 64, for tensors; large blocks ask for huge pages. Free with co_free. */
void *co_calloc_aligned(size_t count, size_t size);
void co_free(void *ptr);
/* mmap, left out of core dumps; NULL, and errno, where it fails. Free with munmap. */
void *co_map(size_t bytes, int protection, int flags, int file);
/* The values of `bytes` bytes of a block are no longer needed: whole pages go back to the system
   until they are written again. Reading them until then is undefined. */
void co_mem_forget(void *ptr, size_t bytes);

/* Tests only: let the k-th allocation from now on (1 = the next) fail; 0 turns it off. */
void co_mem_fail_at(uint64_t k);
/* Tests only: allocations since the last co_mem_fail_at. */
uint64_t co_mem_count(void);

#endif
