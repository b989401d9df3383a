/*
 * vector.cu - arithmetic on the store (ext/vector.h), with the bits of the host's tables: the same
 * operations in the same order. Compiled without fused multiply-adds.
 */
#include "kernels/cuda/vector.h"

#include <math.h>

#include "core/half_impl.h"
#include "kernels/cuda/grid.h"

#define MAX_FLOAT 3.402823466e38F
#define MAX_F16   65504.0F
#define MAX_BF16  3.38953139e38F

/* ---- whole arrays ---- */

KERNEL(vector_swap, cuda_arrays)
{
    EACH (i, arg.n) {
        const float kept = arg.out[i];

        arg.out[i] = arg.other[i];
        arg.other[i] = kept;
    }
}

KERNEL(vector_copy_if, cuda_arrays)
{
    const bool wanted = *arg.flag != 0;

    EACH (i, wanted ? arg.n : 0)
        arg.out[i] = arg.x[i];
}

/* y[0] is the largest absolute value. */
KERNEL(vector_copy_unless, cuda_arrays)
{
    const float most = arg.y[0];
    const bool wanted = !(most <= MAX_FLOAT) || (arg.x && most == 0);

    EACH (i, wanted ? arg.n : 0)
        arg.out[i] = arg.x ? arg.x[i] : 0;
}

KERNEL(vector_add, cuda_arrays)
{
    EACH (i, arg.n)
        arg.out[i] += arg.x[i];
}

KERNEL(vector_scale, cuda_arrays)
{
    EACH (i, arg.n)
        arg.out[i] = (float)(arg.scale * (double)arg.x[i]);
}

KERNEL(vector_divide, cuda_arrays)
{
    EACH (i, arg.n)
        arg.out[i] /= arg.a;
}

KERNEL(vector_axpby, cuda_arrays)
{
    EACH (i, arg.n)
        arg.out[i] = arg.a * arg.x[i] + arg.b * arg.y[i];
}

KERNEL(vector_add_difference, cuda_arrays)
{
    EACH (i, arg.n)
        arg.out[i] += arg.a * (arg.x[i] - arg.y[i]);
}

KERNEL(vector_average, cuda_arrays)
{
    const double part = *arg.part;

    EACH (i, part != 0 ? arg.n : 0)
        arg.out[i] += (float)part * (arg.x[i] - arg.out[i]);
}

KERNEL(vector_drop_nonfinite, cuda_arrays)
{
    EACH (i, arg.n)
        arg.out[i] = fabsf(arg.out[i]) <= MAX_FLOAT ? arg.out[i] : 0;
}

/* ---- one result ---- */

/* Bits without the sign are ordered as numbers are. */
static inline uint32_t vector_key(float x)
{
    return half_bits(x) & 0x7fffffffu;
}

/* `out` is 0 before. */
KERNEL(vector_max_abs, cuda_arrays)
{
    uint32_t most = 0;

    EACH (i, arg.n) {
        const uint32_t key = vector_key(arg.x[i]);

        most = key > most ? key : most;
    }
    ATOMIC_MAX((uint32_t *)(void *)arg.out, most);
}

/* ---- 16 bits ---- */

static inline uint16_t vector_round(float x, bool f16)
{
    return f16 ? half_round_f16(x) : half_round_bf16(x);
}

static inline float vector_widen(uint16_t x, bool f16)
{
    return f16 ? half_widen_f16(x) : half_widen_bf16(x);
}

KERNEL(vector_round_nearest, cuda_halves)
{
    EACH (i, arg.n)
        arg.out[i] = vector_widen(vector_round(arg.out[i], arg.f16), arg.f16);
}

/* core/half.h says which bits are an element's. */
KERNEL(vector_round_stochastic, cuda_halves)
{
    co_rng rng = arg.rng;

    if (arg.step)
        rng.step = *arg.step;
    EACH (i, arg.n) {
        const uint64_t at = arg.first + i;
        const uint32_t block = (uint32_t)(at / 128) * 16 + (uint32_t)(at % 16);
        uint32_t word[4], bits;

        co_rng_philox(word, &rng, block);
        bits = word[at % 64 / 16] >> (at % 128 / 64 * 16) & 0xffff;
        arg.out[i] =
            arg.f16 ? half_random_f16(arg.out[i], bits) : half_random_bf16(arg.out[i], bits);
    }
}

KERNEL(vector_narrow, cuda_halves)
{
    const float most = arg.f16 ? MAX_F16 : MAX_BF16;

    EACH (i, arg.n) {
        const float x = arg.x[i];
        const float v = x > most && x < INFINITY ? most : x < -most && x > -INFINITY ? -most : x;
        const uint16_t sent = vector_round(v, arg.f16);
        const float lost = x - vector_widen(sent, arg.f16);

        arg.narrow[i] = sent;
        if (arg.kept) {
            const float before = arg.more ? arg.kept[i] : 0;

            arg.kept[i] = fabsf(lost) <= MAX_FLOAT ? before + lost : 0;
        }
    }
}

KERNEL(vector_widen_sum, cuda_halves)
{
    EACH (i, arg.n) {
        float sum = vector_widen(arg.half[i], arg.f16);

        for (int t = 1; t < arg.terms; t++)
            sum += vector_widen(arg.half[(size_t)t * arg.stride + i], arg.f16);
        arg.out[i] = sum;
    }
}

/* ---- few of many ---- */

#define SELECT_DIGITS CUDA_SELECT_DIGITS

/* Rounds take 11, 10 and 10 bits. */
static inline int vector_digit_bits(int round)
{
    return round == 0 ? 11 : 10;
}

static inline int vector_digit_shift(int round)
{
    return 20 - 10 * round;
}

/* Of a whole block: *prefix becomes the k-th key, *above how many are larger. These and `count` are
   SHARED. */
static inline void vector_find_kth(uint32_t *count, uint32_t *prefix, uint32_t *above,
                                   const float *x, size_t n, size_t k)
{
    PHASE
        if (THREAD == 0)
            *prefix = *above = 0;
    for (int round = 0; round < CUDA_SELECT_ROUNDS; round++) {
        const int bits = vector_digit_bits(round), shift = vector_digit_shift(round);

        PHASE
            for (uint32_t d = THREAD; d < SELECT_DIGITS; d += THREADS)
                count[d] = 0;
        PHASE
            for (size_t i = THREAD; i < n; i += THREADS) {
                const uint32_t key = vector_key(x[i]);

                if (key >> (shift + bits) == *prefix)
                    ATOMIC_ADD(&count[key >> shift & ((1u << bits) - 1)], 1u);
            }
        PHASE {
            uint32_t value = (1u << bits) - 1;

            if (THREAD > 0)
                continue;
            for (; *above + count[value] < k; value--)
                *above += count[value];
            *prefix = *prefix << bits | value;
        }
    }
}

/* Of a whole block: the picks among elements [from, to) of x, which are the larger ones and the
   first `left` of those that equal the k-th, from found[next] on. */
static inline void vector_pick(const cuda_selection *arg, uint32_t *begin, uint32_t *equal,
                               size_t from, size_t to, uint32_t kth, uint32_t next, uint32_t left)
{
    const size_t part = (to - from + THREADS - 1) / THREADS;

    PHASE { /* larger keys of this thread's part, and equal ones */
        const size_t first = from + THREAD * part, end = first + part < to ? first + part : to;
        uint32_t larger = 0, same = 0;

        for (size_t i = first; i < end; i++) {
            const uint32_t key = vector_key(arg->x[i]);

            larger += key > kth;
            same += key == kth;
        }
        begin[THREAD] = larger;
        equal[THREAD] = same;
    }
    PHASE { /* where its picks begin, and how many equal ones are among them */
        uint32_t at = next, rest = left;

        if (THREAD > 0)
            continue;
        for (uint32_t t = 0; t < THREADS; t++) {
            const uint32_t larger = begin[t];

            equal[t] = equal[t] < rest ? equal[t] : rest;
            rest -= equal[t];
            begin[t] = at;
            at += larger + equal[t];
        }
    }
    PHASE {
        const size_t first = from + THREAD * part, end = first + part < to ? first + part : to;
        uint32_t at = begin[THREAD], rest = equal[THREAD];

        for (size_t i = first; i < end; i++) {
            const uint32_t key = vector_key(arg->x[i]);

            if (key < kth || (key == kth && rest == 0))
                continue;
            rest -= key == kth;
            arg->found[at++] = (uint32_t)i;
        }
    }
}

/* One block: the k-th key, then each thread's picks among its part of x. */
KERNEL(vector_top_k, cuda_selection)
{
    SHARED uint32_t count[SELECT_DIGITS], begin[CUDA_BLOCK], equal[CUDA_BLOCK];
    SHARED uint32_t kth, above;

    vector_find_kth(count, &kth, &above, arg.x, arg.n, arg.k);
    vector_pick(&arg, begin, equal, 0, arg.n, kth, 0, (uint32_t)arg.k - above);
}

/* Several blocks: each counts the digits of some of the keys. */
KERNEL(vector_select_count, cuda_selection)
{
    SHARED uint32_t count[SELECT_DIGITS];
    const int bits = vector_digit_bits(arg.round), shift = vector_digit_shift(arg.round);
    const size_t step = (size_t)BLOCKS * THREADS;
    const uint32_t prefix = arg.room->prefix;

    PHASE
        for (uint32_t d = THREAD; d < SELECT_DIGITS; d += THREADS)
            count[d] = 0;
    PHASE
        for (size_t i = (size_t)BLOCK * THREADS + THREAD; i < arg.n; i += step) {
            const uint32_t key = vector_key(arg.x[i]);

            if (key >> (shift + bits) == prefix)
                ATOMIC_ADD(&count[key >> shift & ((1u << bits) - 1)], 1u);
        }
    PHASE
        for (uint32_t d = THREAD; d < SELECT_DIGITS; d += THREADS)
            if (count[d])
                ATOMIC_ADD(&arg.room->count[arg.round][d], count[d]);
}

/* One block: the digit of the k-th key. */
KERNEL(vector_select_digit, cuda_selection)
{
    SHARED uint32_t count[SELECT_DIGITS];
    const int bits = vector_digit_bits(arg.round);

    PHASE
        for (uint32_t d = THREAD; d < SELECT_DIGITS; d += THREADS)
            count[d] = arg.room->count[arg.round][d];
    PHASE {
        uint32_t value = (1u << bits) - 1, above = arg.room->above;

        if (THREAD > 0)
            continue;
        for (; above + count[value] < arg.k; value--)
            above += count[value];
        arg.room->above = above;
        arg.room->prefix = arg.room->prefix << bits | value;
    }
}

/* Larger keys of each part, and equal ones. */
KERNEL(vector_select_parts, cuda_selection)
{
    SHARED uint32_t larger, same;
    const size_t each = (arg.n + CUDA_SELECT_PARTS - 1) / CUDA_SELECT_PARTS;
    const uint32_t kth = arg.room->prefix;

    for (uint32_t p = BLOCK; p < CUDA_SELECT_PARTS; p += BLOCKS) {
        const size_t end = (p + 1) * each < arg.n ? (p + 1) * each : arg.n;

        PHASE
            if (THREAD == 0)
                larger = same = 0;
        PHASE {
            uint32_t above = 0, equal = 0;

            for (size_t i = p * each + THREAD; i < end; i += THREADS) {
                const uint32_t key = vector_key(arg.x[i]);

                above += key > kth;
                equal += key == kth;
            }
            ATOMIC_ADD(&larger, above);
            ATOMIC_ADD(&same, equal);
        }
        PHASE
            if (THREAD == 0) {
                arg.room->larger[p] = larger;
                arg.room->same[p] = same;
            }
    }
}

/* The picks of each part. */
KERNEL(vector_select_picks, cuda_selection)
{
    SHARED uint32_t begin[CUDA_BLOCK], equal[CUDA_BLOCK];
    const size_t each = (arg.n + CUDA_SELECT_PARTS - 1) / CUDA_SELECT_PARTS;

    for (uint32_t p = BLOCK; p < CUDA_SELECT_PARTS; p += BLOCKS) {
        const size_t from = p * each < arg.n ? p * each : arg.n;
        const size_t to = from + each < arg.n ? from + each : arg.n;
        uint32_t next = 0, left = (uint32_t)arg.k - arg.room->above;

        for (uint32_t before = 0; before < p; before++) {
            const uint32_t same = arg.room->same[before] < left ? arg.room->same[before] : left;

            next += arg.room->larger[before] + same;
            left -= same;
        }
        vector_pick(&arg, begin, equal, from, to, arg.room->prefix, next, left);
    }
}

KERNEL(vector_gather, cuda_selection)
{
    EACH (i, arg.k)
        arg.out[i] = arg.x[arg.index[i]];
}

KERNEL(vector_scatter, cuda_selection)
{
    EACH (i, arg.k)
        arg.out[arg.index[i]] = arg.x ? arg.x[i] : 0;
}

KERNEL(vector_scatter_add, cuda_selection)
{
    EACH (i, arg.k)
        arg.out[arg.index[i]] += arg.x[i];
}

/* ---- the values of a step ---- */

KERNEL(vector_step, cuda_stage)
{
    PHASE
        if (THREAD == 0)
            co_step_do(arg.values, arg.stage, &arg.rules);
}
