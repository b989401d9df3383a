/* shard_pattern.c - one range of numbers in braces, as shells expand it. */
#include "data/shard_pattern.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "data/shard_index.h"

#define PATTERN_MAX_DIGITS 9

bool co_shard_pattern_is(const char *name)
{
    return strchr(name, '{') != NULL;
}

/* Digits up to `stop`; returns their number, 0 for none or too many. */
static size_t pattern_number(uint32_t *out, const char *at, char stop)
{
    size_t n = 0;

    *out = 0;
    for (; at[n] >= '0' && at[n] <= '9' && n < PATTERN_MAX_DIGITS; n++)
        *out = 10 * *out + (uint32_t)(at[n] - '0');
    return at[n] == stop ? n : 0;
}

co_status co_shard_pattern_parse(co_shard_pattern *out, const char *name)
{
    const char *open = strchr(name, '{');
    const size_t before = open ? (size_t)(open - name) : 0;
    uint32_t last = 0;
    size_t n, m = 0;

    *out = (co_shard_pattern){.count = 0};
    n = open ? pattern_number(&out->first, open + 1, '.') : 0;
    if (n > 0 && open[n + 2] == '.')
        m = pattern_number(&last, open + n + 3, '}');
    if (m == 0 || strlen(name) >= CO_SHARD_MAX_NAME || strpbrk(open + n + m + 4, "{}"))
        return co_fail(CO_E_USAGE,
                       "%s: expected one range of numbers in braces, as in train-{0000..0127}.tar",
                       CO_SHOW(name));
    if (last < out->first || last - out->first >= CO_SHARD_MAX_SHARDS)
        return co_fail(CO_E_USAGE,
                       "%s: a range of 1 to %d numbers, the lower one first, is possible",
                       CO_SHOW(name), CO_SHARD_MAX_SHARDS);
    memcpy(out->before, name, before);
    snprintf(out->after, sizeof(out->after), "%s", open + n + m + 4);
    out->count = last - out->first + 1;
    out->width = (int)n;
    return CO_OK;
}

void co_shard_pattern_name(char out[CO_SHARD_MAX_NAME], const co_shard_pattern *pattern, uint32_t k)
{
    char number[16];

    (void)snprintf(number, sizeof(number), "%0*u", pattern->width, pattern->first + k);
    /* Not longer than the pattern, which has two numbers in place of one. */
    stpcpy(stpcpy(stpcpy(out, pattern->before), number), pattern->after);
}
