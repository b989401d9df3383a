/* torch_random.h - the random order of PyTorch's samplers, bit for bit. */
#ifndef CO_DATA_TORCH_RANDOM_H
#define CO_DATA_TORCH_RANDOM_H

#include <stdint.h>

/* `order` becomes torch.randperm(n) of a CPU generator after manual_seed(seed), which is what
   DistributedSampler deals and RandomSampler takes. */
void co_torch_permutation(uint32_t *order, uint32_t n, uint64_t seed);

#endif
