/* shard_pattern.h - names of shards as a range: "train-{0000..0127}.tar". */
#ifndef CO_DATA_SHARD_PATTERN_H
#define CO_DATA_SHARD_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#define CO_SHARD_MAX_NAME 256

typedef struct co_shard_pattern {
    char before[CO_SHARD_MAX_NAME], after[CO_SHARD_MAX_NAME];
    uint32_t first, count;
    int width; /* digits at least, zeros in front */
} co_shard_pattern;

/* Whether a name is one: it has a brace. */
bool co_shard_pattern_is(const char *name);
/* CO_E_USAGE: not one range of numbers, backwards, or more than CO_SHARD_MAX_SHARDS. */
co_status co_shard_pattern_parse(co_shard_pattern *out, const char *name);
/* Name k < count. */
void co_shard_pattern_name(char out[CO_SHARD_MAX_NAME], const co_shard_pattern *pattern,
                           uint32_t k);

#endif
