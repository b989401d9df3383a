/* torch_random.h - the random order of PyTorch's samplers, bit for bit. */
#ifndef CO_DATA_TORCH_RANDOM_H
#define CO_DATA_TORCH_RANDOM_H

#include <stdint.h>

/* Fill `order` (n) as torch.randperm(n) with a CPU generator after manual_seed(seed), as
   DistributedSampler and RandomSampler do. */
void co_torch_permutation(uint32_t *order, uint32_t n, uint64_t seed);

#endif
