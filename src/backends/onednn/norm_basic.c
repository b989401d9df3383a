/* norm_basic.c - batch norm's loops on 8 channels at once, for any processor. */
#include "backends/onednn/norm.h"

#define LANES      8
#define NORM_TABLE norm_loops_basic

#include "backends/onednn/norm_float.h"

static inline uint16_t norm_is_kept(vec v)
{
    unsigned bits = 0;

    for (int l = 0; l < LANES; l++)
        bits |= (unsigned)!(v[l] <= 0) << l;
    return (uint16_t)bits;
}

static inline vec norm_keep(vec v, uint16_t bits)
{
    for (int l = 0; l < LANES; l++)
        v[l] = bits >> l & 1 ? v[l] : 0;
    return v;
}

#include "backends/onednn/norm_impl.h"
