/* mock_memory.h - memory of the mock device, which the host may not touch. */
#ifndef TESTS_DEVICE_MOCK_MEMORY_H
#define TESTS_DEVICE_MOCK_MEMORY_H

#include <pthread.h>

#include <cohort/types.h>

/* How host access is prevented. */
typedef enum mock_way {
    /* A protection key, enabled in worker threads only. Needs support by the CPU and the kernel. */
    MOCK_KEYS,
    /* Inaccessible addresses, and a second mapping for workers. */
    MOCK_TWICE
} mock_way;

typedef struct mock_block mock_block;

typedef struct mock_memory {
    mock_way way;
    int key; /* MOCK_KEYS only */
    pthread_mutex_t lock;
    mock_block *blocks; /* owned, under lock */
} mock_memory;

co_status mock_memory_open(mock_memory *out, mock_way way);
/* All blocks must have been returned. */
void mock_memory_close(mock_memory *memory);
/* `bytes` zeroed bytes, page-aligned, rounded up to whole pages. */
co_status mock_memory_take(void **out, mock_memory *memory, size_t bytes);
void mock_memory_give(mock_memory *memory, void *at);
/* Makes the calling thread a worker. */
void mock_memory_enter(const mock_memory *memory);
/* The address a worker uses for `at`, which may also be host memory. */
void *mock_memory_reach(mock_memory *memory, const void *at);

#endif
