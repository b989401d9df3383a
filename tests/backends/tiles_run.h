/*
 * tiles_run.h - each operation of kernels/tiles.h once, for a form of them: included by a file that
 * defines TILES_RUN, the name of a static function, and TILES_PLAIN for plain C.
 */
#include <stdint.h>

typedef void (*tiles_run_fn)(float *sums, const float *begin, const uint16_t *a, const uint16_t *b,
                             int rows, int64_t stride);

/* By AMX, or NULL. */
tiles_run_fn tiles_run_find_amx(void);

#ifdef TILES_RUN
#include "kernels/tiles.h"

/* sums (2 rows, 32) += a (2 rows, 32 numbers) b (16 pairs, 32), whose rows are `stride` bytes
   apart; if `begin` is NULL, 0 + a b. */
static void TILES_RUN(float *sums, const float *begin, const uint16_t *a, const uint16_t *b,
                      int rows, int64_t stride)
{
    const int64_t apart = 2 * TILES_BYTES;
    float *second = sums + rows * 2 * TILES_FLOATS;
    tiles t;

    tiles_begin(&t, rows);
    TILES_ZERO(&t, 0);
    TILES_ZERO(&t, 1);
    TILES_ZERO(&t, 2);
    TILES_ZERO(&t, 3);
    if (begin) {
        TILES_LOAD(&t, 0, begin, apart);
        TILES_LOAD(&t, 1, begin + TILES_FLOATS, apart);
        TILES_LOAD(&t, 2, begin + rows * 2 * TILES_FLOATS, apart);
        TILES_LOAD(&t, 3, begin + (2 * rows + 1) * TILES_FLOATS, apart);
    }
    TILES_LOAD(&t, 4, a, stride);
    TILES_LOAD(&t, 5, (const char *)a + rows * stride, stride);
    TILES_LOAD(&t, 6, b, apart);
    TILES_LOAD(&t, 7, b + TILES_NUMBERS, apart);
    TILES_MULTIPLY(&t, 0, 4, 6);
    TILES_MULTIPLY(&t, 1, 4, 7);
    TILES_MULTIPLY(&t, 2, 5, 6);
    TILES_MULTIPLY(&t, 3, 5, 7);
    TILES_STORE(&t, 0, sums, apart);
    TILES_STORE(&t, 1, sums + TILES_FLOATS, apart);
    TILES_STORE(&t, 2, second, apart);
    TILES_STORE(&t, 3, second + TILES_FLOATS, apart);
    tiles_end(&t);
}
#endif
