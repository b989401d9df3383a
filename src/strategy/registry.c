/*
 * registry.c - every strategy, and every compressor of gradients, by name.
 */
#include <string.h>

#include "strategy/compress.h"
#include "strategy/strategy.h"

const co_strategy_ops *const co_strategies[] = {
    &co_strategy_sync,    &co_strategy_local,   &co_strategy_one_shot, &co_strategy_stale,
    &co_strategy_hogwild, &co_strategy_threads, &co_strategy_ssp,      NULL,
};

const co_compressor_ops *const co_compressors[] = {
    &co_compressor_bf16, &co_compressor_fp16, &co_compressor_topk, &co_compressor_powersgd, NULL,
};

const co_strategy_ops *co_strategy_find(const char *name)
{
    for (const co_strategy_ops *const *ops = co_strategies; *ops; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return *ops;
    return NULL;
}
