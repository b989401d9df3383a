/*
 * gemm.cu - matrix products and convolutions as such, where no library has them: src/backends/ref
 * has the equations. A block makes a tile of the product from tiles of A and B in its SHARED
 * memory, a thread 4 x 4 elements of it in registers. Sums over k have one order, which depends on
 * the shape alone.
 */
#include "kernels/cuda/gemm.h"

#include "kernels/cuda/grid.h"

#define TILE  CUDA_TILE
#define DEPTH 16
#define SIDE  4 /* rows and columns of a thread */
#define LINE  (TILE / SIDE)
#define LOADS (TILE * DEPTH / CUDA_BLOCK)

typedef enum gemm_form { GEMM_MATRIX, GEMM_FORWARD, GEMM_INPUT, GEMM_WEIGHT } gemm_form;

/* The tile that a block makes. */
typedef struct gemm_place {
    uint32_t group, split, m, n, begin, end; /* k from begin to end */
} gemm_place;

static inline uint32_t gemm_tiles(uint32_t n)
{
    return (n + TILE - 1) / TILE;
}

static inline uint32_t gemm_work(const cuda_gemm *g)
{
    return gemm_tiles(g->m) * gemm_tiles(g->n) * g->groups * g->splits;
}

static inline gemm_place gemm_find(const cuda_gemm *g, uint32_t work)
{
    const uint32_t rows = gemm_tiles(g->m), cols = gemm_tiles(g->n);
    gemm_place p;

    p.m = work % rows * TILE;
    p.n = work / rows % cols * TILE;
    p.group = work / rows / cols % g->groups;
    p.split = work / rows / cols / g->groups;
    p.begin = p.split * g->each;
    p.end = p.begin + g->each < g->k ? p.begin + g->each : g->k;
    return p;
}

/* ---- elements of A and B; 0 outside ---- */

/* Element of a tensor (N, channels, H, W) at tap `tap` of a window; 0 in the padding. */
INLINE float gemm_window(const float *x, const cuda_gemm *g, uint32_t plane, uint32_t pixel,
                         uint32_t tap)
{
    const int32_t r = (int32_t)(pixel / (uint32_t)g->w.out) * g->h.stride - g->h.padding +
                      (int32_t)(tap / (uint32_t)g->w.kernel) * g->h.dilation;
    const int32_t q = (int32_t)(pixel % (uint32_t)g->w.out) * g->w.stride - g->w.padding +
                      (int32_t)(tap % (uint32_t)g->w.kernel) * g->w.dilation;

    if (r < 0 || r >= g->h.in || q < 0 || q >= g->w.in)
        return 0;
    return x[(size_t)plane * (uint32_t)(g->h.in * g->w.in) + (uint32_t)(r * g->w.in + q)];
}

/* Where in the output the window is whose tap `tap` falls on r; -1: nowhere. */
INLINE int32_t gemm_output_at(const cuda_axis *axis, int32_t r, int32_t tap)
{
    const int32_t t = r + axis->padding - tap * axis->dilation;

    return t >= 0 && t % axis->stride == 0 && t / axis->stride < axis->out ? t / axis->stride : -1;
}

INLINE float gemm_a(const cuda_gemm *g, gemm_form form, const gemm_place *p, uint32_t m, uint32_t k)
{
    const uint32_t taps = (uint32_t)(g->h.kernel * g->w.kernel);
    const uint32_t out = (uint32_t)(g->h.out * g->w.out);

    if (m >= g->m || k >= p->end)
        return 0;
    if (form == GEMM_MATRIX)
        return g->a[(size_t)m * g->a_row + (size_t)k * g->a_col];
    if (form == GEMM_FORWARD) /* w (o, k) */
        return g->a[((size_t)p->group * g->o + m) * g->k + k];
    if (form == GEMM_INPUT) /* w (k / taps, m, k % taps) */
        return g->a[((size_t)(p->group * g->o + k / taps) * g->c + m) * taps + k % taps];
    return g->a[((size_t)(k / out * g->groups + p->group) * g->o + m) * out + k % out]; /* dy */
}

INLINE float gemm_b(const cuda_gemm *g, gemm_form form, const gemm_place *p, uint32_t k, uint32_t n)
{
    const uint32_t taps = (uint32_t)(g->h.kernel * g->w.kernel);
    const uint32_t in = (uint32_t)(g->h.in * g->w.in), out = (uint32_t)(g->h.out * g->w.out);
    int32_t u, v;

    if (n >= g->n || k >= p->end)
        return 0;
    if (form == GEMM_MATRIX)
        return g->b[(size_t)k * g->b_row + (size_t)n * g->b_col];
    if (form == GEMM_FORWARD) /* n: (sample, pixel), k: (channel, tap) */
        return gemm_window(g->b, g, (n / out * g->groups + p->group) * g->c + k / taps, n % out,
                           k % taps);
    if (form == GEMM_WEIGHT) /* k: (sample, pixel), n: (channel, tap) */
        return gemm_window(g->b, g, (k / out * g->groups + p->group) * g->c + n / taps, k % out,
                           n % taps);
    u = gemm_output_at(&g->h, (int32_t)(n % in / (uint32_t)g->w.in),
                       (int32_t)(k % taps / (uint32_t)g->w.kernel));
    v = gemm_output_at(&g->w, (int32_t)(n % in % (uint32_t)g->w.in),
                       (int32_t)(k % taps % (uint32_t)g->w.kernel));
    if (u < 0 || v < 0)
        return 0;
    return g->b[((size_t)(n / in * g->groups + p->group) * g->o + k / taps) * out +
                (uint32_t)(u * g->w.out + v)];
}

/* ---- the product ---- */

/* Of a tile's elements, the one that a thread loads at its i-th time: neighbours along the
   direction in which memory runs. */
INLINE void gemm_element(uint32_t *line, uint32_t *depth, uint32_t i, bool along_depth)
{
    const uint32_t e = i * CUDA_BLOCK + THREAD;

    *line = along_depth ? e / DEPTH : e % TILE;
    *depth = along_depth ? e % DEPTH : e / TILE;
}

INLINE void gemm_store(const cuda_gemm *g, gemm_form form, const gemm_place *p, uint32_t m,
                       uint32_t n, float value)
{
    const uint32_t plane =
        form == GEMM_INPUT ? (uint32_t)(g->h.in * g->w.in) : (uint32_t)(g->h.out * g->w.out);
    size_t at = ((size_t)(p->split * g->groups + p->group) * g->m + m) * g->n + n;

    if (m >= g->m || n >= g->n)
        return;
    if (form == GEMM_FORWARD || form == GEMM_INPUT)
        at = ((size_t)(n / plane * g->groups + p->group) * g->m + m) * plane + n % plane;
    if (g->bias)
        value += g->bias[form == GEMM_FORWARD ? p->group * g->m + m : n];
    g->out[at] = g->accumulate ? g->out[at] + value : value;
}

/* A thread's sums, with one more term each: of SIDE rows and as many columns, LINE apart. */
INLINE void gemm_add(float *sum, const float *a, const float *b)
{
    for (uint32_t i = 0; i < SIDE; i++)
        for (uint32_t j = 0; j < SIDE; j++)
            sum[i * SIDE + j] = FMA(a[i], b[j * LINE], sum[i * SIDE + j]);
}

/* Of a whole block; a, b (DEPTH, TILE) are SHARED, sum (SIDE, SIDE) is a thread's OWN. */
#define GEMM_TILES(g, form, p, a_along, b_along)                                                   \
    PHASE                                                                                          \
        for (int e = 0; e < SIDE * SIDE; e++)                                                      \
            MINE(sum)[e] = 0;                                                                      \
    for (uint32_t first = (p).begin; first < (p).end; first += DEPTH) {                            \
        PHASE                                                                                      \
            for (uint32_t i = 0; i < LOADS; i++) {                                                 \
                uint32_t line, depth;                                                              \
                                                                                                   \
                gemm_element(&line, &depth, i, a_along);                                           \
                a[depth][line] = gemm_a(&(g), form, &(p), (p).m + line, first + depth);            \
                gemm_element(&line, &depth, i, b_along);                                           \
                b[depth][line] = gemm_b(&(g), form, &(p), first + depth, (p).n + line);            \
            }                                                                                      \
        PHASE                                                                                      \
            for (uint32_t d = 0; d < DEPTH; d++)                                                   \
                gemm_add(MINE(sum), &a[d][THREAD / LINE * SIDE], &b[d][THREAD % LINE]);            \
    }                                                                                              \
    PHASE                                                                                          \
        for (uint32_t i = 0; i < SIDE; i++)                                                        \
            for (uint32_t j = 0; j < SIDE; j++)                                                    \
    gemm_store(&(g), form, &(p), (p).m + THREAD / LINE * SIDE + i,                                 \
               (p).n + THREAD % LINE + j * LINE, MINE(sum)[i * SIDE + j])

#define GEMM_KERNEL(name, form, a_along, b_along)                                                  \
    KERNEL(name, cuda_gemm)                                                                        \
    {                                                                                              \
        SHARED float a[DEPTH][TILE + 1], b[DEPTH][TILE + 1];                                       \
        OWN(float, sum, SIDE *SIDE);                                                               \
                                                                                                   \
        for (uint32_t work = BLOCK; work < gemm_work(&arg); work += BLOCKS) {                      \
            const gemm_place place = gemm_find(&arg, work);                                        \
                                                                                                   \
            GEMM_TILES(arg, form, place, a_along, b_along);                                        \
        }                                                                                          \
    }

GEMM_KERNEL(gemm_matrix, GEMM_MATRIX, arg.a_col == 1, arg.b_row == 1)
GEMM_KERNEL(gemm_conv, GEMM_FORWARD, true, false)
GEMM_KERNEL(gemm_conv_input, GEMM_INPUT, true, false)
GEMM_KERNEL(gemm_conv_weight, GEMM_WEIGHT, true, true)

KERNEL(gemm_sum_parts, cuda_parts)
{
    EACH (i, arg.n) {
        float sum = arg.part[i];

        for (uint32_t p = 1; p < arg.parts; p++)
            sum += arg.part[p * arg.n + i];
        arg.out[i] = arg.accumulate ? arg.out[i] + sum : sum;
    }
}
