/*
 * torch_random.c - the order that torch.randperm gives on a CPU.
 *
 * Fisher-Yates from the front; a draw is one word modulo the number of elements left. From 2^32 /
 * 20 elements on, where that would be biased, the inside-out variant with two words per draw.
 */
#include "data/torch_random.h"

#include "data/mt19937.h"

#define TORCH_RANDOM_MANY (UINT32_MAX / 20)

static void torch_random_few(uint32_t *order, uint32_t n, co_mt19937 *r)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const uint32_t j = i + co_mt19937_next(r) % (n - i), swap = order[i];

        order[i] = order[j];
        order[j] = swap;
    }
}

static void torch_random_many(uint32_t *order, uint32_t n, co_mt19937 *r)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t high = co_mt19937_next(r), low = co_mt19937_next(r);
        const uint32_t j = (uint32_t)((high << 32 | low) % ((uint64_t)i + 1));

        order[i] = i;
        order[i] = order[j];
        order[j] = i;
    }
}

void co_torch_permutation(uint32_t *order, uint32_t n, uint64_t seed)
{
    co_mt19937 r;

    co_mt19937_seed(&r, (uint32_t)seed); /* only its low 32 bits count */
    if (n < TORCH_RANDOM_MANY)
        torch_random_few(order, n, &r);
    else
        torch_random_many(order, n, &r);
}
