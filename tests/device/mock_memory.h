/* mock_memory.h - memory of the mock device, which the host may not touch. */
#ifndef TESTS_DEVICE_MOCK_MEMORY_H
#define TESTS_DEVICE_MOCK_MEMORY_H

#include <pthread.h>

#include <cohort/types.h>

/* How memory is kept from the host. */
typedef enum mock_way {
    /* A protection key, whose rights each thread has of its own: only workers have them. Not on
       every machine. */
    MOCK_KEYS,
    /* Addresses that nobody may touch; a worker knows where else the same memory lies. */
    MOCK_TWICE
} mock_way;

typedef struct mock_block mock_block;

typedef struct mock_memory {
    mock_way way;
    int key; /* of MOCK_KEYS */
    pthread_mutex_t lock;
    mock_block *blocks; /* owned, under lock */
} mock_memory;

co_status mock_memory_open(mock_memory *out, mock_way way);
/* No block is left. */
void mock_memory_close(mock_memory *memory);
/* `bytes` zeroed bytes at the begin of a page, and more up to the end of one. */
co_status mock_memory_take(void **out, mock_memory *memory, size_t bytes);
void mock_memory_give(mock_memory *memory, void *at);
/* The calling thread is a worker from now on. */
void mock_memory_enter(const mock_memory *memory);
/* Where a worker finds what is known as `at`, which may be the host's. */
void *mock_memory_reach(mock_memory *memory, const void *at);

#endif
