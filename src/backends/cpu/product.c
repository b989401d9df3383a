/*
 * product.c - blocks of a product: PRODUCT_COLUMNS columns of b at a time, of them `depth` elements
 * of each sum; then for some rows of a at a time, which stay in L2, the tiles of c.
 */
#include "backends/cpu/product.h"

#include <string.h>

#include "core/parallel.h"

#define PRODUCT_COLUMNS 1536 /* columns of b that are packed at once: with them it stays in L3 */
#define PRODUCT_DEPTH   512  /* maximum number of elements of a sum at once */
#define PRODUCT_TILES   6    /* tiles of rows of a that stay in L2 */
#define PRODUCT_CHUNK   32   /* rows of a factor whose columns are packed at once, of one page */

static int64_t product_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t product_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Elements of a sum at once: parts of nearly the same length, whole vectors. */
static int64_t product_depth(int64_t k)
{
    const int64_t parts = product_divide_up(k, PRODUCT_DEPTH);

    return parts == 1 ? k : product_divide_up(product_divide_up(k, parts), 16) * 16;
}

/* Floats from a packed tile of rows of a to the next: bias takes an element more, and packing
   writes beyond its rows. */
static int64_t product_tile(const gemm_loops *loops, int64_t k)
{
    return product_divide_up((product_depth(k) + 1) * loops->rows + loops->width, 16) * 16;
}

static int64_t product_panel(const gemm_loops *loops, int64_t k)
{
    return (product_depth(k) + 1) * loops->width;
}

size_t product_room_bytes(const gemm_loops *loops, int64_t n, int64_t k)
{
    const int64_t columns = product_least(n, PRODUCT_COLUMNS);
    const int64_t panels = product_divide_up(columns, loops->width);

    return (size_t)(panels * product_panel(loops, k)) * sizeof(float);
}

size_t product_own_bytes(const gemm_loops *loops, int64_t k)
{
    return (size_t)(PRODUCT_TILES * product_tile(loops, k)) * sizeof(float);
}

/* Elements [from, from + depth) of the sums of the columns of b from `column`. */
typedef struct product_block {
    const product *p;
    int64_t column, columns, from, depth;
    float *room;
    bool first; /* of the sums */
} product_block;

/* `lines` lines of a side, from `begin`, in strips of `width`, each `step` floats after the last.
 */
static void product_pack(const product_block *b, const product_side *side, float *to, int64_t width,
                         int64_t step, int64_t begin, int64_t lines)
{
    const gemm_loops *loops = b->p->loops;
    const int64_t chunk = side->columns ? PRODUCT_CHUNK : b->depth;

    for (int64_t l = 0; l < b->depth; l += chunk) {
        const int64_t some = product_least(chunk, b->depth - l), at = b->from + l;

        for (int64_t i = 0; i < lines; i += width) {
            const int64_t n = product_least(width, lines - i), strip = side == &b->p->a ? n : width;
            float *place = to + i / width * step + l * strip;

            if (side->columns) {
                const gemm_rows from = {(float *)side->at + at * side->step + begin + i, some,
                                        side->step};

                loops->pack(place, strip, &from, n);
            } else {
                const gemm_rows from = {(float *)side->at + (begin + i) * side->step + at, n,
                                        side->step};

                loops->turn(place, strip, &from, some);
            }
        }
    }
}

static bool product_has_bias(const product_block *b)
{
    return b->p->bias && b->first;
}

/* Panels `mine` of b. The bias is one element more of each sum, times 1. */
static void product_pack_panels(const product_block *b, const co_range *mine)
{
    const product *p = b->p;
    const int64_t width = p->loops->width, step = product_panel(p->loops, p->k);
    const int64_t begin = mine->begin * width, end = product_least(mine->end * width, b->columns);

    product_pack(b, &p->b, b->room + mine->begin * step, width, step, b->column + begin,
                 end - begin);
    if (!product_has_bias(b))
        return;
    for (int64_t i = begin; i < end; i += width) {
        float *last = b->room + i / width * step + b->depth * width;
        const int64_t n = product_least(width, end - i);

        memset(last, 0, (size_t)width * sizeof(float));
        memcpy(last, p->bias + b->column + i, (size_t)n * sizeof(float));
    }
}

/* sums (+)= the packed elements of each of n rows of a. */
static void product_sum(const product_block *b, float *sums, const float *tile, int64_t n)
{
    if (b->first && !b->p->add_sums)
        memset(sums, 0, (size_t)n * sizeof(float));
    b->p->loops->sum(sums, n, tile, b->depth);
}

/* Rows [begin, end) of a, of which `own` has room. */
static void product_pack_tiles(const product_block *b, float *own, int64_t begin, int64_t end)
{
    const product *p = b->p;
    const int64_t rows = p->loops->rows, step = product_tile(p->loops, p->k);

    product_pack(b, &p->a, own, rows, step, begin, end - begin);
    for (int64_t i = begin; i < end; i += rows, own += step) {
        const int64_t n = product_least(rows, end - i);

        for (int64_t r = 0; product_has_bias(b) && r < n; r++)
            own[b->depth * n + r] = 1;
        if (p->sums && b->column == 0)
            product_sum(b, p->sums + i, own, n);
    }
}

static void product_multiply(const product_block *b, float *own, int64_t begin, int64_t end)
{
    const product *p = b->p;
    const gemm_loops *loops = p->loops;
    const int64_t step = product_tile(loops, p->k), panel = product_panel(loops, p->k);
    const int64_t depth = b->depth + product_has_bias(b);

    product_pack_tiles(b, own, begin, end);
    for (int64_t j = 0; j < b->columns; j += loops->width)
        for (int64_t i = begin; i < end; i += loops->rows) {
            const gemm_rows to = {p->c + i * p->b.n + b->column + j,
                                  product_least(loops->rows, end - i), p->b.n};

            loops->add_up(&to, product_least(loops->width, b->columns - j),
                          own + (i - begin) / loops->rows * step,
                          b->room + j / loops->width * panel, depth, p->add || !b->first);
        }
}

static void product_run_block(const product_block *b, char *own, size_t own_step)
{
    const product *p = b->p;
    const int threads = p->threads;
    const int64_t rows = p->loops->rows, tiles = product_divide_up(p->a.n, rows);
    const int64_t panels = product_divide_up(b->columns, p->loops->width);

    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(panels, t, threads);

        product_pack_panels(b, &mine);
    }
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(tiles, t, threads);
        float *place = (float *)(void *)(own + (size_t)t * own_step);
        const int64_t n = mine.end - mine.begin, groups = product_divide_up(n, PRODUCT_TILES);

        /* Groups of nearly the same size: each brings the panels of b into L2 once. */
        for (int64_t g = 0; g < groups; g++)
            product_multiply(b, place, (mine.begin + n * g / groups) * rows,
                             product_least((mine.begin + n * (g + 1) / groups) * rows, p->a.n));
    }
}

void product_run(const product *p, void *room, void *own, size_t own_step)
{
    const int64_t depth = product_depth(p->k);

    for (int64_t j = 0; j < p->b.n; j += PRODUCT_COLUMNS)
        for (int64_t l = 0; l < p->k; l += depth) {
            const product_block block = {.p = p,
                                         .column = j,
                                         .columns = product_least(PRODUCT_COLUMNS, p->b.n - j),
                                         .from = l,
                                         .depth = product_least(depth, p->k - l),
                                         .room = room,
                                         .first = l == 0};

            product_run_block(&block, own, own_step);
        }
}
