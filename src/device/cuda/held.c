/*
 * held.c - counts the bytes of the GPU's memory that blocks have, and the most that they had.
 *
 * Does not know what the driver and NVIDIA's libraries take for themselves.
 */
#include "core/mem.h"
#include "device/cuda/internal.h"

#define HELD_FIRST 64

bool cuda_held_add(cuda_held *held, void *at, size_t bytes)
{
    if (held->n == held->room) {
        const size_t room = 2 * held->room + HELD_FIRST;
        cuda_block *block = co_realloc(held->block, room, sizeof(*block));

        if (!block)
            return false;
        held->block = block;
        held->room = room;
    }
    held->block[held->n++] = (cuda_block){at, bytes};
    held->bytes += bytes;
    if (held->bytes > held->peak)
        held->peak = held->bytes;
    return true;
}

void cuda_held_remove(cuda_held *held, const void *at)
{
    for (size_t i = held->n; i > 0; i--)
        if (held->block[i - 1].at == at) {
            held->bytes -= held->block[i - 1].bytes;
            held->block[i - 1] = held->block[--held->n];
            return;
        }
}
