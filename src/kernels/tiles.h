/*
 * tiles.h - products of BF16 in tiles of 16 rows of 64 bytes, as AMX has them.
 *
 * Eight tiles: the sums 0 to 3, 16 floats a row; 4 and 5, whose rows are 32 numbers; 6 and 7, whose
 * rows are 16 pairs of numbers. Those of 0 to 5 have as many rows as tiles_begin says.
 *
 * A file that defines TILES_PLAIN gets the same operations in plain C, with the order of sums that
 * Intel's manual gives; others are compiled with -mamx-tile -mamx-bf16. The tiles belong to the
 * thread from tiles_begin to tiles_end.
 */
#ifndef CO_KERNELS_TILES_H
#define CO_KERNELS_TILES_H

#include <stdint.h>
#include <string.h>

#define TILES_COUNT   8
#define TILES_ROWS    16
#define TILES_BYTES   64 /* of a row */
#define TILES_FLOATS  16 /* of a row */
#define TILES_NUMBERS 32 /* of a row; what one product sums up */

#ifdef TILES_PLAIN

typedef struct tiles {
    int rows[TILES_COUNT];
    _Alignas(TILES_BYTES) uint8_t cell[TILES_COUNT][TILES_ROWS][TILES_BYTES];
} tiles;

static inline void tiles_begin(tiles *t, int rows)
{
    memset(t, 0, sizeof(*t));
    for (int i = 0; i < TILES_COUNT; i++)
        t->rows[i] = i < 6 ? rows : TILES_ROWS;
}

static inline void tiles_end(tiles *t)
{
    (void)t;
}

static inline void tiles_copy_in(tiles *t, int i, const void *from, int64_t stride)
{
    for (int r = 0; r < t->rows[i]; r++)
        memcpy(t->cell[i][r], (const char *)from + r * stride, TILES_BYTES);
}

static inline void tiles_copy_out(const tiles *t, int i, void *to, int64_t stride)
{
    for (int r = 0; r < t->rows[i]; r++)
        memcpy((char *)to + r * stride, t->cell[i][r], TILES_BYTES);
}

/* Of each row 32 numbers as floats. */
static inline void tiles_widen(float (*out)[TILES_NUMBERS], const tiles *t, int i)
{
    for (int r = 0; r < t->rows[i]; r++)
        for (int k = 0; k < TILES_NUMBERS; k++) {
            const uint8_t *from = t->cell[i][r] + 2 * k;
            const uint32_t bits = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 24;

            memcpy(&out[r][k], &bits, sizeof(bits));
        }
}

/* First and second numbers of pairs have a sum each, which are added up at the end. */
static inline void tiles_product(tiles *t, int sum, int a, int b)
{
    float rows[TILES_ROWS][TILES_NUMBERS], pairs[TILES_ROWS][TILES_NUMBERS];

    tiles_widen(rows, t, a);
    tiles_widen(pairs, t, b);
    for (int m = 0; m < t->rows[a]; m++) {
        float part[TILES_NUMBERS] = {0}, all[TILES_FLOATS];

        for (int k = 0; k < TILES_NUMBERS; k += 2)
            for (int n = 0; n < TILES_NUMBERS; n++)
                part[n] += rows[m][k + n % 2] * pairs[k / 2][n];
        memcpy(all, t->cell[sum][m], sizeof(all));
        for (int n = 0; n < TILES_FLOATS; n++)
            all[n] += part[2 * n] + part[2 * n + 1];
        memcpy(t->cell[sum][m], all, sizeof(all));
    }
}

#define TILES_ZERO(t, i)               memset((t)->cell[i], 0, sizeof((t)->cell[i]))
#define TILES_LOAD(t, i, from, stride) tiles_copy_in(t, i, from, stride)
#define TILES_PASS(t, i, from, stride) tiles_copy_in(t, i, from, stride)
#define TILES_STORE(t, i, to, stride)  tiles_copy_out(t, i, to, stride)
#define TILES_MULTIPLY(t, sum, a, b)   tiles_product(t, sum, a, b)

#else
#include <immintrin.h>

/* What _tile_loadconfig reads. */
typedef struct tiles {
    _Alignas(TILES_BYTES) uint8_t palette;
    uint8_t start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles;

static inline void tiles_begin(tiles *t, int rows)
{
    memset(t, 0, sizeof(*t));
    t->palette = 1;
    for (int i = 0; i < TILES_COUNT; i++) {
        t->row_bytes[i] = TILES_BYTES;
        t->rows[i] = (uint8_t)(i < 6 ? rows : TILES_ROWS);
    }
    _tile_loadconfig(t);
    /* The compiler does not know what loads of tiles read. */
    __asm__ volatile("" ::: "memory");
}

static inline void tiles_end(tiles *t)
{
    (void)t;
    _tile_release();
}

/* Statements of the compiler's, for which the number of a tile is part of the text. */
#define TILES_DO(t, what)                                                                          \
    do {                                                                                           \
        (void)(t);                                                                                 \
        what;                                                                                      \
    } while (0)
#define TILES_ZERO(t, i)               TILES_DO(t, _tile_zero(i))
#define TILES_LOAD(t, i, from, stride) TILES_DO(t, _tile_loadd(i, from, stride))
/* Past the first-level cache, which keeps what it has. */
#define TILES_PASS(t, i, from, stride) TILES_DO(t, _tile_stream_loadd(i, from, stride))
#define TILES_STORE(t, i, to, stride)  TILES_DO(t, _tile_stored(i, to, stride))
#define TILES_MULTIPLY(t, sum, a, b)   TILES_DO(t, _tile_dpbf16ps(sum, a, b))

#endif

/* Sums 0 to 3, two tiles by two, from a bias of 32 numbers, the same in all rows; NULL: from 0. */
static inline void tiles_start(tiles *t, const float *bias)
{
    if (bias) {
        TILES_LOAD(t, 0, bias, 0);
        TILES_LOAD(t, 1, bias + TILES_FLOATS, 0);
        TILES_LOAD(t, 2, bias, 0);
        TILES_LOAD(t, 3, bias + TILES_FLOATS, 0);
    } else {
        TILES_ZERO(t, 0);
        TILES_ZERO(t, 1);
        TILES_ZERO(t, 2);
        TILES_ZERO(t, 3);
    }
}

#endif
