/*
 * simd.h - vectors of LANES floats (4, 8 or 16): for files that are compiled once for each
 * instruction set, which define LANES before they include this.
 */
#ifndef CO_KERNELS_SIMD_H
#define CO_KERNELS_SIMD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SIMD_CHECKED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SIMD_CHECKED
#endif
#endif

/* An inlined function has constants for its tile, and an unrolled loop keeps its sums in registers:
   SIMD_UNROLL all of a loop of at most n turns, whose number is a constant, SIMD_UNROLL_BY n turns
   at a time of a longer one. Clang must be told which: given a number that a loop does not reach,
   it unrolls too late to keep sums in registers. With a sanitizer's check at each access that would
   take the compiler minutes. */
#define SIMD_PRAGMA(text) _Pragma(#text)
#ifdef SIMD_CHECKED
#define SIMD_INLINE static __attribute__((unused))
#define SIMD_UNROLL(n)
#define SIMD_UNROLL_BY(n)
#else
#define SIMD_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define SIMD_UNROLL(n)    SIMD_PRAGMA(clang loop unroll(full))
#define SIMD_UNROLL_BY(n) SIMD_PRAGMA(clang loop unroll_count(n))
#else
#define SIMD_UNROLL(n)    SIMD_PRAGMA(GCC unroll n)
#define SIMD_UNROLL_BY(n) SIMD_PRAGMA(GCC unroll n)
#endif
#endif

#define SIMD_LINE  64   /* bytes that a cache fetches at once */
#define SIMD_AHEAD 4096 /* bytes from what is read or written to what is fetched */

/* For loops over memory, as CPUs stop fetching by themselves where a page ends: the line some way
   after `at`, to read it, or to write it. */
SIMD_INLINE void simd_fetch(const void *at)
{
    __builtin_prefetch((const char *)at + SIMD_AHEAD, 0);
}

SIMD_INLINE void simd_fetch_to_write(const void *at)
{
    __builtin_prefetch((const char *)at + SIMD_AHEAD, 1);
}

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), may_alias));
/* The same, unaligned: floats, or pairs of numbers of 16 bits. */
typedef float loose_vec
    __attribute__((vector_size(LANES * sizeof(float)), may_alias, aligned(sizeof(uint16_t))));
typedef int32_t ivec __attribute__((vector_size(LANES * sizeof(int32_t)), may_alias));
typedef uint32_t uvec __attribute__((vector_size(LANES * sizeof(uint32_t)), may_alias));
typedef uint32_t loose_uvec
    __attribute__((vector_size(LANES * sizeof(uint32_t)), may_alias, aligned(sizeof(uint32_t))));

SIMD_INLINE vec simd_load(const float *from)
{
    return *(const vec *)from;
}

SIMD_INLINE void simd_store(float *to, vec value)
{
    *(vec *)to = value;
}

/* The same, unaligned. */
SIMD_INLINE vec simd_load_any(const float *from)
{
    return *(const loose_vec *)from;
}

SIMD_INLINE void simd_store_any(float *to, vec value)
{
    *(loose_vec *)to = value;
}

SIMD_INLINE vec simd_splat(float value)
{
    /* Written out: starting from 0 would be an addition, which changes -0. */
#if LANES == 16
    return (vec){value, value, value, value, value, value, value, value,
                 value, value, value, value, value, value, value, value};
#elif LANES == 8
    return (vec){value, value, value, value, value, value, value, value};
#else
    return (vec){value, value, value, value};
#endif
}

/* The same vector, in a register: GCC reads one from memory again for each of the few products that
   use it, and then loads bound these. */
SIMD_INLINE vec simd_keep(vec value)
{
#if LANES == 16 && defined(__AVX512F__) || LANES == 8 && defined(__AVX2__)
    __asm__("" : "+v"(value));
#endif
    return value;
}

/* Lanes of a where the mask is -1, of b where it is 0. */
SIMD_INLINE vec simd_select(ivec mask, vec a, vec b)
{
#if LANES == 8 && defined(__AVX2__)
    return (vec)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
#endif
}

/* Of two numbers the larger, the smaller; that of b where one of them is none. */
SIMD_INLINE vec simd_max(vec a, vec b)
{
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif LANES == 8 && defined(__AVX2__)
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return simd_select((ivec)(a > b), a, b);
#endif
}

SIMD_INLINE vec simd_min(vec a, vec b)
{
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_min_ps((__m512)a, (__m512)b);
#elif LANES == 8 && defined(__AVX2__)
    return (vec)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return simd_select((ivec)(a < b), a, b);
#endif
}

/* What comparisons give, for simd_pick; AVX-512 has registers of bits for it. */
#if LANES == 16 && defined(__AVX512F__)
typedef __mmask16 simd_mask;

SIMD_INLINE simd_mask simd_equal(ivec a, ivec b)
{
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
}

SIMD_INLINE simd_mask simd_greater_or_nan(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ) |
           _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q);
}

SIMD_INLINE simd_mask simd_at_most(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LE_OQ);
}

SIMD_INLINE ivec simd_pick(simd_mask mask, ivec a, ivec b)
{
    return (ivec)_mm512_mask_blend_epi32(mask, (__m512i)b, (__m512i)a);
}
#else
typedef ivec simd_mask;

SIMD_INLINE simd_mask simd_equal(ivec a, ivec b)
{
    return a == b;
}

/* Where a > b, or a is no number. */
SIMD_INLINE simd_mask simd_greater_or_nan(vec a, vec b)
{
    const vec same = a;

    return (ivec)((a > b) | (a != same));
}

SIMD_INLINE simd_mask simd_at_most(vec a, vec b)
{
    return (ivec)(a <= b);
}

/* Lanes of a where the comparison holds, else of b. */
SIMD_INLINE ivec simd_pick(simd_mask mask, ivec a, ivec b)
{
    return (mask & a) | (~mask & b);
}
#endif

/* The first n floats, unaligned, and zeros; and storing the first n of a vector. n is at most
   LANES. */
#if LANES == 16 && defined(__AVX512F__)
SIMD_INLINE __mmask16 simd_first(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}

SIMD_INLINE vec simd_load_some(const float *from, int64_t n)
{
    return (vec)_mm512_maskz_loadu_ps(simd_first(n), from);
}

SIMD_INLINE void simd_store_some(float *to, vec value, int64_t n)
{
    _mm512_mask_storeu_ps(to, simd_first(n), (__m512)value);
}
#elif LANES == 8 && defined(__AVX2__)
SIMD_INLINE __m256i simd_first(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

SIMD_INLINE vec simd_load_some(const float *from, int64_t n)
{
    return (vec)_mm256_maskload_ps(from, simd_first(n));
}

SIMD_INLINE void simd_store_some(float *to, vec value, int64_t n)
{
    _mm256_maskstore_ps(to, simd_first(n), (__m256)value);
}
#elif LANES == 4
/* Of addresses, so that there is no branch. */
SIMD_INLINE vec simd_load_some(const float *from, int64_t n)
{
    static const float none = 0;

    return (vec){*(n > 0 ? from : &none), *(n > 1 ? from + 1 : &none), *(n > 2 ? from + 2 : &none),
                 *(n > 3 ? from + 3 : &none)};
}

SIMD_INLINE void simd_store_some(float *to, vec value, int64_t n)
{
    for (int l = 0; l < LANES; l++)
        if (l < n)
            to[l] = value[l];
}
#else
SIMD_INLINE vec simd_load_some(const float *from, int64_t n)
{
    vec some = {0};

    memcpy(&some, from, (size_t)n * sizeof(*from));
    return some;
}

SIMD_INLINE void simd_store_some(float *to, vec value, int64_t n)
{
    memcpy(to, &value, (size_t)n * sizeof(*to));
}
#endif

SIMD_INLINE vec simd_splat_at(const float *from)
{
#if LANES == 16 && defined(__AVX512F__)
    return (vec)_mm512_set1_ps(*from);
#elif LANES == 8 && defined(__AVX2__)
    return (vec)_mm256_broadcast_ss(from);
#else
    return simd_splat(*from);
#endif
}

/* sum + *x times w, with *x read by the product where an instruction can. */
SIMD_INLINE vec simd_add_at(vec sum, const float *x, vec w)
{
#if LANES == 16 && defined(__AVX512F__)
    __asm__("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(*x), "v"(w));
    return sum;
#else
    return sum + *x * w;
#endif
}

/* *x times each of `columns` vectors, added to their sums: *x is in a register, or `read` by each
   product. A tile reads half of its numbers, where that takes no instructions for their addresses:
   then loads are fewer than products, and instructions, which bound it where another thread shares
   the core, than with all in registers. */
SIMD_INLINE void simd_add_each(vec *sum, const float *x, const vec *w, const int columns,
                               const bool read)
{
    const vec each = read ? (vec){0} : simd_splat_at(x);

    SIMD_UNROLL(36) for (int q = 0; q < columns; q++)
    {
        if (read)
            sum[q] = simd_add_at(sum[q], x, w[q]);
        else
            sum[q] += each * w[q];
    }
}

/* From two vectors: the elements whose index lacks the bit, with b's moved up by it; or those whose
   index has it, with a's moved down. */
#define SIMD_LACK(bit, l)    ((l) & (bit) ? LANES + (l) - (bit) : (l))
#define SIMD_HAVE(bit, l)    ((l) & (bit) ? LANES + (l) : (l) + (bit))
#define SIMD_FOUR(f, bit, l) f(bit, l), f(bit, l + 1), f(bit, l + 2), f(bit, l + 3)
#if LANES == 16
#define SIMD_ALL(f, bit)                                                                           \
    SIMD_FOUR(f, bit, 0), SIMD_FOUR(f, bit, 4), SIMD_FOUR(f, bit, 8), SIMD_FOUR(f, bit, 12)
#elif LANES == 8
#define SIMD_ALL(f, bit) SIMD_FOUR(f, bit, 0), SIMD_FOUR(f, bit, 4)
#else
#define SIMD_ALL(f, bit) SIMD_FOUR(f, bit, 0)
#endif

#define SIMD_EXCHANGE(bit)                                                                         \
    SIMD_UNROLL(16) for (int i = 0; i < LANES; i++) if (!(i & (bit)))                              \
    {                                                                                              \
        const vec a = v[i], b = v[i + (bit)];                                                      \
                                                                                                   \
        v[i] = __builtin_shufflevector(a, b, SIMD_ALL(SIMD_LACK, bit));                            \
        v[i + (bit)] = __builtin_shufflevector(a, b, SIMD_ALL(SIMD_HAVE, bit));                    \
    }

/* The sum of all lanes, by halves. */
SIMD_INLINE float simd_add_up(vec v)
{
#if LANES > 8
    v += __builtin_shufflevector(v, v, SIMD_ALL(SIMD_HAVE, 8));
#endif
#if LANES > 4
    v += __builtin_shufflevector(v, v, SIMD_ALL(SIMD_HAVE, 4));
#endif
    v += __builtin_shufflevector(v, v, SIMD_ALL(SIMD_HAVE, 2));
    return v[0] + v[1];
}

/* The largest lane; NaN if all are. */
SIMD_INLINE float simd_most(vec v)
{
#if LANES > 8
    v = simd_max(v, __builtin_shufflevector(v, v, SIMD_ALL(SIMD_HAVE, 8)));
#endif
#if LANES > 4
    v = simd_max(v, __builtin_shufflevector(v, v, SIMD_ALL(SIMD_HAVE, 4)));
#endif
    v = simd_max(v, __builtin_shufflevector(v, v, SIMD_ALL(SIMD_HAVE, 2)));
    return v[0] > v[1] ? v[0] : v[1];
}

/* v[i][l] <-> v[l][i] */
SIMD_INLINE void simd_transpose(vec v[LANES])
{
    SIMD_EXCHANGE(1)
    SIMD_EXCHANGE(2)
#if LANES > 4
    SIMD_EXCHANGE(4)
#endif
#if LANES > 8
    SIMD_EXCHANGE(8)
#endif
}

#endif
