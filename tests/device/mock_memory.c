/*
 * mock_memory.c - memory that crashes the host on access: pages with a protection key that only
 * workers hold, or inaccessible pages that workers reach through a second mapping.
 */
#include "device/mock_memory.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/mem.h"

struct mock_block {
    char *at, *open; /* the device's address, and the one a worker uses */
    size_t bytes;
    mock_block *next;
};

co_status mock_memory_open(mock_memory *out, mock_way way)
{
    *out = (mock_memory){.way = way, .key = -1};
    if (way == MOCK_KEYS) {
        out->key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
        if (out->key < 0)
            return co_fail(CO_E_UNSUPPORTED, "this machine has no protection keys");
    }
    pthread_mutex_init(&out->lock, NULL);
    return CO_OK;
}

void mock_memory_close(mock_memory *memory)
{
    if (memory->key >= 0)
        pkey_free(memory->key);
    pthread_mutex_destroy(&memory->lock);
}

static size_t memory_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return bytes ? (bytes + page - 1) / page * page : page;
}

static bool memory_map_keyed(mock_block *block, int key)
{
    void *at = mmap(NULL, block->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return false;
    block->at = block->open = at;
    if (pkey_mprotect(at, block->bytes, PROT_READ | PROT_WRITE, key) == 0)
        return true;
    munmap(at, block->bytes);
    return false;
}

static bool memory_map_twice(mock_block *block)
{
    const int file = memfd_create("mock", MFD_CLOEXEC);
    void *open = MAP_FAILED, *at = MAP_FAILED;

    if (file < 0)
        return false;
    if (ftruncate(file, (off_t)block->bytes) == 0)
        open = mmap(NULL, block->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (open != MAP_FAILED)
        at = mmap(NULL, block->bytes, PROT_NONE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED && open != MAP_FAILED)
        munmap(open, block->bytes);
    close(file);
    block->open = open;
    block->at = at;
    return at != MAP_FAILED;
}

static co_status memory_refuse(size_t bytes)
{
    return co_fail(CO_E_NOMEM, "the mock device has no %zu bytes", bytes);
}

co_status mock_memory_take(void **out, mock_memory *memory, size_t bytes)
{
    mock_block *block;
    bool mapped;

    if (bytes > PTRDIFF_MAX)
        return memory_refuse(bytes);
    block = co_calloc(1, sizeof(*block));
    if (!block)
        return CO_E_NOMEM;
    block->bytes = memory_pages(bytes);
    mapped =
        memory->way == MOCK_KEYS ? memory_map_keyed(block, memory->key) : memory_map_twice(block);
    if (!mapped) {
        co_free(block);
        return memory_refuse(bytes);
    }
    pthread_mutex_lock(&memory->lock);
    block->next = memory->blocks;
    memory->blocks = block;
    pthread_mutex_unlock(&memory->lock);
    *out = block->at;
    return CO_OK;
}

void mock_memory_give(mock_memory *memory, void *at)
{
    mock_block **link = &memory->blocks, *block;

    pthread_mutex_lock(&memory->lock);
    while (*link && (*link)->at != at)
        link = &(*link)->next;
    block = *link;
    if (block)
        *link = block->next;
    pthread_mutex_unlock(&memory->lock);
    if (!block)
        return;
    munmap(block->at, block->bytes);
    if (block->open != block->at)
        munmap(block->open, block->bytes);
    co_free(block);
}

void mock_memory_enter(const mock_memory *memory)
{
    if (memory->way == MOCK_KEYS)
        (void)pkey_set(memory->key, 0);
}

void *mock_memory_reach(mock_memory *memory, const void *at)
{
    const uintptr_t address = (uintptr_t)at;
    void *found = (void *)at;

    pthread_mutex_lock(&memory->lock);
    for (const mock_block *b = memory->blocks; b; b = b->next)
        if (address >= (uintptr_t)b->at && address - (uintptr_t)b->at < b->bytes)
            found = b->open + (address - (uintptr_t)b->at);
    pthread_mutex_unlock(&memory->lock);
    return found;
}
