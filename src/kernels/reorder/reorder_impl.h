/*
 * reorder_impl.h - the loops of reorder.h, for LANES lanes. Included once for each type of element,
 * CELL, by files that define that, LANES and NAME(x): tiles of LANES channels by LANES pixels,
 * where both layouts have such, and the rest one by one.
 */
#include "kernels/reorder/reorder.h"
#include "kernels/simd.h"

typedef CELL NAME(cells)
    __attribute__((vector_size(LANES * sizeof(CELL)), may_alias, aligned(sizeof(CELL))));

SIMD_INLINE int64_t NAME(at)(const reorder_places *s, int64_t c, int64_t p)
{
    return c / s->block * s->group + c % s->block + p * s->pixel;
}

/* Whether neighbouring channels of a tile are neighbours in memory. */
SIMD_INLINE bool NAME(is_across)(const reorder_places *s)
{
    return s->block > 1 || s->group == 1;
}

SIMD_INLINE uvec NAME(load)(const CELL *from)
{
    return __builtin_convertvector(*(const NAME(cells) *)from, uvec);
}

SIMD_INLINE void NAME(store)(CELL *to, uvec value)
{
    *(NAME(cells) *)to = __builtin_convertvector(value, NAME(cells));
}

/* LANES vectors, `from_step` apart, turned: element l of the i-th becomes element i of the l-th. */
SIMD_INLINE void NAME(turn)(CELL *to, int64_t to_step, const CELL *from, int64_t from_step)
{
    vec v[LANES];

    SIMD_UNROLL(16) for (int i = 0; i < LANES; i++) v[i] = (vec)NAME(load)(from + i * from_step);
    simd_transpose(v);
    SIMD_UNROLL(16) for (int i = 0; i < LANES; i++) NAME(store)(to + i * to_step, (uvec)v[i]);
}

/* Channels from `c` on, at `pixels` pixels. */
static void NAME(move_tile)(CELL *to, const reorder_places *tos, const CELL *from,
                            const reorder_places *froms, int64_t c)
{
    const bool in = NAME(is_across)(froms), out = NAME(is_across)(tos);
    const int64_t in_step = in ? froms->pixel : froms->group;
    const int64_t out_step = out ? tos->pixel : tos->group;
    int64_t p = 0;

    to += NAME(at)(tos, c, 0);
    from += NAME(at)(froms, c, 0);
    for (; in && out && p < froms->plane; p++)
        *(NAME(cells) *)(to + p * out_step) = *(const NAME(cells) *)(from + p * in_step);
    for (; in != out && p + LANES <= froms->plane; p += LANES)
        NAME(turn)(to + p * tos->pixel, out_step, from + p * froms->pixel, in_step);
    for (; p < froms->plane; p++)
        for (int64_t l = 0; l < LANES; l++)
            to[p * tos->pixel + (out ? l : l * tos->group)] =
                from[p * froms->pixel + (in ? l : l * froms->group)];
}

static void NAME(move_channel)(CELL *to, const reorder_places *tos, const CELL *from,
                               const reorder_places *froms, int64_t c)
{
    to += NAME(at)(tos, c, 0);
    from += NAME(at)(froms, c, 0);
    for (int64_t p = 0; p < froms->plane; p++)
        to[p * tos->pixel] = from[p * froms->pixel];
}

static void NAME(move)(void *to, const reorder_places *tos, const void *from,
                       const reorder_places *froms)
{
    const bool tiles = (tos->block == 1 || tos->block % LANES == 0) &&
                       (froms->block == 1 || froms->block % LANES == 0);
    const int64_t end = (tos->c + tos->block - 1) / tos->block * tos->block;
    int64_t c = 0;

    for (; tiles && c + LANES <= tos->c; c += LANES)
        NAME(move_tile)(to, tos, from, froms, c);
    for (; c < tos->c; c++)
        NAME(move_channel)(to, tos, from, froms, c);
    for (; c < end; c++)
        for (int64_t p = 0; p < tos->plane; p++)
            ((CELL *)to)[NAME(at)(tos, c, p)] = 0;
}

#undef CELL
#undef NAME
