/*
 * product_half.c - blocks of a product: some columns of b, of them `group` elements of each sum,
 * which stay in L2; then for some panels of a at a time the tiles of c.
 */
#include "backends/cpu/product_half.h"

#include <string.h>

#include "core/isa.h"
#include "core/parallel.h"

#define PRODUCT_HALF_BLOCK   (5 << 18) /* bytes of b that stay in L2 beside what else is there */
#define PRODUCT_HALF_GROUP   2048      /* maximum elements of a sum at once, where c is rounded, */
#define PRODUCT_HALF_COLUMNS 768       /* of columns of b, where it is not */
#define PRODUCT_HALF_ALIGN   64

/* How a product is cut: whole panels and steps. */
typedef struct product_half_cut {
    int64_t columns, group;
} product_half_cut;

const gemm_half_loops *product_half_choose(void)
{
#ifdef CO_KERNELS_X86
    return co_isa_has(CO_ISA_AMX)     ? &gemm_half_loops_amx
           : co_isa_multiplies_bf16() ? &gemm_half_loops_bf16
                                      : &gemm_half_loops_widened;
#else
    return NULL; /* never asked */
#endif
}

static int64_t product_half_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t product_half_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* The size of nearly equal parts of n, multiples of `unit`, with `most` at most. */
static int64_t product_half_part(int64_t n, int64_t most, int64_t unit)
{
    const int64_t units = product_half_divide_up(n, unit);
    const int64_t parts = product_half_divide_up(units, most < unit ? 1 : most / unit);

    return product_half_divide_up(units, parts) * unit;
}

static product_half_cut product_half_find_cut(const product_half *p)
{
    const int64_t bytes = p->half ? PRODUCT_HALF_BLOCK : (int64_t)p->loops->block << 10;
    const int64_t block = bytes / (int64_t)p->loops->cell;
    product_half_cut cut;

    if (p->half) {
        cut.group = product_half_part(p->k, PRODUCT_HALF_GROUP, GEMM_HALF_STEP);
        cut.columns = product_half_part(p->b.n, block / cut.group, GEMM_HALF_PANEL);
    } else {
        cut.columns = product_half_part(p->b.n, PRODUCT_HALF_COLUMNS, GEMM_HALF_PANEL);
        cut.group = product_half_part(p->k, block / cut.columns, GEMM_HALF_STEP);
    }
    return cut;
}

/* Sums of all rows are kept from group to group where c is rounded in the end. */
static bool product_half_keeps(const product_half *p, const product_half_cut *cut)
{
    return p->half && cut->group < p->k;
}

static int64_t product_half_panels(int64_t n)
{
    return product_half_divide_up(n, GEMM_HALF_PANEL);
}

/* In room: panels of b, bias, sums. */
typedef struct product_half_room {
    size_t bias, sums, all; /* bytes from its begin */
} product_half_room;

static size_t product_half_round_up(size_t bytes)
{
    return (bytes + PRODUCT_HALF_ALIGN - 1) / PRODUCT_HALF_ALIGN * PRODUCT_HALF_ALIGN;
}

static product_half_room product_half_find_room(const product_half *p, const product_half_cut *cut)
{
    const int64_t rows = product_half_panels(p->a.n) * GEMM_HALF_PANEL;
    product_half_room room;

    room.bias = (size_t)(cut->columns * cut->group) * p->loops->cell;
    room.sums = product_half_round_up(room.bias + (size_t)cut->columns * sizeof(float));
    room.all = room.sums;
    if (product_half_keeps(p, cut))
        room.all += (size_t)(rows * cut->columns) * sizeof(float);
    return room;
}

size_t product_half_room_bytes(const product_half *p)
{
    const product_half_cut cut = product_half_find_cut(p);

    return product_half_find_room(p, &cut).all;
}

/* Panels of a, sums of the elements of one. */
size_t product_half_own_bytes(const product_half *p)
{
    const product_half_cut cut = product_half_find_cut(p);

    return (size_t)(p->loops->panels * GEMM_HALF_PANEL * cut.group) * p->loops->cell +
           GEMM_HALF_PANEL * sizeof(float);
}

/* Elements [from, from + elements) of the sums of the columns of b from `column`. */
typedef struct product_half_block {
    const product_half *p;
    const product_half_cut *cut;
    int64_t column, columns, from, elements;
    char *b;
    float *bias, *sums; /* NULL: none; no sums are kept */
    bool first, last;   /* of the sums */
} product_half_block;

/* The lines of a panel of a side, for elements [from, from + elements). */
static gemm_half_from product_half_find(const product_half_side *side, int64_t line, int64_t from,
                                        int64_t elements)
{
    const int64_t at = side->columns ? from * side->step + line : line * side->step + from;
    const char *begin = side->at;

    return (gemm_half_from){begin + (size_t)at * (side->floats ? sizeof(float) : sizeof(uint16_t)),
                            side->step, product_half_least(side->n - line, GEMM_HALF_PANEL),
                            elements};
}

/* Numbers of a packed panel, */
static int64_t product_half_panel(const product_half_block *b)
{
    return product_half_divide_up(b->elements, GEMM_HALF_STEP) * GEMM_HALF_CELLS;
}

/* and where number `i` is from the first. */
static size_t product_half_place(const product_half_block *b, int64_t i)
{
    return (size_t)i * b->p->loops->cell;
}

/* Panels `mine` of b, of columns some rows at a time, which are neighbours in memory. */
static void product_half_pack_b(const product_half_block *b, const co_range *mine)
{
    const product_half *p = b->p;
    const int64_t chunk = p->b.columns ? GEMM_HALF_STEP : b->elements;
    void (*pack)(void *to, const gemm_half_from *from) = !p->b.columns ? p->loops->float_rows
                                                         : p->b.floats ? p->loops->float_columns
                                                                       : p->loops->half_columns;

    for (int64_t k = 0; k < b->elements; k += chunk)
        for (int64_t i = mine->begin; i < mine->end; i++) {
            const gemm_half_from from =
                product_half_find(&p->b, b->column + i * GEMM_HALF_PANEL, b->from + k,
                                  product_half_least(chunk, b->elements - k));

            pack(b->b + product_half_place(b, i * product_half_panel(b) + k * GEMM_HALF_PANEL),
                 &from);
        }
}

/* The rows of a panel of a from `row`, and their sums. */
static void product_half_pack_a(const product_half_block *b, char *to, float *own, int64_t row,
                                int64_t k)
{
    const product_half *p = b->p;
    const int64_t chunk = p->a.columns ? GEMM_HALF_STEP : b->elements;
    const gemm_half_from from =
        product_half_find(&p->a, row, b->from + k, product_half_least(chunk, b->elements - k));
    const bool sums = p->sums && b->column == 0;
    const size_t bytes = (size_t)from.lines * sizeof(float);

    if (!p->a.columns) {
        p->loops->rows(to, &from);
        return;
    }
    memset(own, 0, GEMM_HALF_PANEL * sizeof(float));
    if (sums && (k > 0 || !b->first || p->add_sums))
        memcpy(own, p->sums + row, bytes);
    p->loops->columns(to + product_half_place(b, k * GEMM_HALF_PANEL), &from, sums ? own : NULL);
    if (sums)
        memcpy(p->sums + row, own, bytes);
}

/* A panel of a, packed, from `row`, times the block of b. */
static void product_half_multiply(const product_half_block *b, const char *a, int64_t row)
{
    const product_half *p = b->p;
    const size_t cell = p->half ? sizeof(uint16_t) : sizeof(float);

    p->loops->multiply(
        &(gemm_half_job){.a = a,
                         .b = b->b,
                         .b_panel = product_half_panel(b),
                         .steps = product_half_divide_up(b->elements, GEMM_HALF_STEP),
                         .rows = product_half_least(p->a.n - row, GEMM_HALF_PANEL),
                         .columns = b->columns,
                         .first = b->first || !b->sums,
                         .last = b->last || !b->sums,
                         .bias = b->first ? b->bias : NULL,
                         .sums = b->sums ? b->sums + row * b->cut->columns : NULL,
                         .y = (char *)p->c + (size_t)(row * p->b.n + b->column) * cell,
                         .step = p->b.n,
                         .half = p->half,
                         .add = p->add || (!p->half && !b->first)});
}

/* Panels `mine` of a. */
static void product_half_run_part(const product_half_block *b, const co_range *mine, void *own)
{
    const size_t each = product_half_place(b, product_half_panel(b));
    const int64_t most = b->p->loops->panels * GEMM_HALF_PANEL * b->cut->group;
    const int64_t at_once = b->p->a.columns ? b->p->loops->panels : 1;
    const int64_t chunk = b->p->a.columns ? GEMM_HALF_STEP : b->elements;
    char *a = own;
    float *line = (float *)(void *)(a + product_half_place(b, most));

    for (int64_t i = mine->begin; i < mine->end; i += at_once) {
        const int64_t n = product_half_least(at_once, mine->end - i);

        for (int64_t k = 0; k < b->elements; k += chunk)
            for (int64_t j = 0; j < n; j++)
                product_half_pack_a(b, a + (size_t)j * each, line, (i + j) * GEMM_HALF_PANEL, k);
        for (int64_t j = 0; j < n; j++)
            product_half_multiply(b, a + (size_t)j * each, (i + j) * GEMM_HALF_PANEL);
    }
}

static void product_half_run_block(const product_half_block *b, char *own, size_t own_step)
{
    const int threads = b->p->threads;
    const int64_t rows = product_half_panels(b->p->a.n), panels = product_half_panels(b->columns);

    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(panels, t, threads);

        product_half_pack_b(b, &mine);
    }
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(rows, t, threads);

        product_half_run_part(b, &mine, own + (size_t)t * own_step);
    }
}

void product_half_run(const product_half *p, void *room, void *own, size_t own_step)
{
    const product_half_cut cut = product_half_find_cut(p);
    const product_half_room at = product_half_find_room(p, &cut);
    float *bias = p->bias ? (float *)(void *)((char *)room + at.bias) : NULL;

    for (int64_t j = 0; j < p->b.n; j += cut.columns) {
        const int64_t columns = product_half_least(cut.columns, p->b.n - j);

        if (bias) {
            memset(bias, 0, (size_t)cut.columns * sizeof(float));
            memcpy(bias, p->bias + j, (size_t)columns * sizeof(float));
        }
        for (int64_t k = 0; k < p->k; k += cut.group) {
            const product_half_block block = {
                .p = p,
                .cut = &cut,
                .column = j,
                .columns = columns,
                .from = k,
                .elements = product_half_least(cut.group, p->k - k),
                .b = room,
                .bias = bias,
                .sums =
                    product_half_keeps(p, &cut) ? (float *)(void *)((char *)room + at.sums) : NULL,
                .first = k == 0,
                .last = k + cut.group >= p->k};

            product_half_run_block(&block, own, own_step);
        }
    }
}
