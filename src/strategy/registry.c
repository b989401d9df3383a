/* registry.c - the strategies and gradient compressors, by name. */
#include "strategy/compress.h"
#include "strategy/strategy.h"

const co_strategy_ops *const co_strategies[] = {
    &co_strategy_sync,    &co_strategy_local,   &co_strategy_one_shot, &co_strategy_stale,
    &co_strategy_hogwild, &co_strategy_threads, &co_strategy_ssp,      NULL,
};

const co_compressor_ops *const co_compressors[] = {
    &co_compressor_bf16, &co_compressor_fp16, &co_compressor_topk, &co_compressor_powersgd, NULL,
};

const co_plugins co_strategy_plugins = {"strategy", "strategy", co_strategies, CO_PLUGIN_STRATEGY,
                                        NULL};
const co_plugins co_compressor_plugins = {"compressor", "compress", co_compressors,
                                          CO_PLUGIN_COMPRESSOR, co_compressor_common_keys};

CO_PLUGIN_CHECK(co_strategy_ops, self_size);
CO_PLUGIN_CHECK(co_compressor_ops, self_size);
