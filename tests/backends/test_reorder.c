/*
 * test_reorder.c - layout changes between row-major, channel blocks and channels last, with every
 * instruction set of this machine: each element is where its layout says, padding is 0, and no
 * writes outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "backends/backends_test.h"
#include "kernels/reorder/reorder.h"

#define LAYOUTS 4
#define GUARD   0x5aa5a55au /* in both halves */

static const reorder_loops *const *find_all(void)
{
    static const reorder_loops *const all[] = {
        KERNELS_LIST(reorder_loops, &reorder_loops_basic, NULL)};

    return all + kernels_too_new();
}

static reorder_places find_places(int layout, int64_t c, int64_t plane)
{
    switch (layout) {
    case 0:
        return reorder_plain(c, plane);
    case 1:
        return reorder_last(c, plane);
    default:
        return reorder_blocks(c, plane, layout == 2 ? 8 : 16);
    }
}

static size_t at(const reorder_places *s, int64_t c, int64_t p)
{
    return (size_t)(c / s->block * s->group + c % s->block + p * s->pixel);
}

static uint32_t get(const void *v, size_t i, size_t cell)
{
    return cell == 4 ? ((const uint32_t *)v)[i] : ((const uint16_t *)v)[i];
}

static void put(void *v, size_t i, size_t cell, uint32_t value)
{
    if (cell == 4)
        ((uint32_t *)v)[i] = value;
    else
        ((uint16_t *)v)[i] = (uint16_t)value;
}

static void check(const reorder_loops *loops, const reorder_places *tos,
                  const reorder_places *froms, size_t cell)
{
    const uint32_t mask = cell == 4 ? UINT32_MAX : UINT16_MAX;
    const size_t n = (size_t)tos->sample;
    void *from = co_calloc_aligned((size_t)froms->sample, cell);
    void *to = co_calloc_aligned(n + 1, cell);

    assert_non_null(from);
    assert_non_null(to);
    for (int64_t c = 0; c < froms->c; c++)
        for (int64_t p = 0; p < froms->plane; p++)
            put(from, at(froms, c, p), cell, (uint32_t)(0x9e3779b9u * (c * froms->plane + p + 1)));
    for (size_t i = 0; i <= n; i++)
        put(to, i, cell, GUARD);
    (cell == 4 ? loops->floats : loops->halves)(to, tos, from, froms);
    for (int64_t c = 0; c < (tos->c + tos->block - 1) / tos->block * tos->block; c++)
        for (int64_t p = 0; p < tos->plane; p++) {
            const uint32_t want =
                c < tos->c ? (uint32_t)(0x9e3779b9u * (c * tos->plane + p + 1)) & mask : 0;

            assert_int_equal(get(to, at(tos, c, p), cell), want);
        }
    assert_int_equal(get(to, n, cell), GUARD & mask);
    co_free(from);
    co_free(to);
}

static void check_layouts(const reorder_loops *loops, int to, int from)
{
    static const int64_t channels[] = {1, 3, 8, 16, 21, 48}, planes[] = {1, 4, 9, 49};

    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++)
        for (size_t k = 0; k < sizeof(planes) / sizeof(planes[0]); k++) {
            const reorder_places f = find_places(from, channels[i], planes[k]);
            const reorder_places t = find_places(to, channels[i], planes[k]);

            check(loops, &t, &f, 4);
            check(loops, &t, &f, 2);
        }
}

static void reorder_every_pair_of_layouts_moves_each_element(void **state)
{
    (void)state;
    for (const reorder_loops *const *loops = find_all(); *loops; loops++)
        for (int from = 0; from < LAYOUTS; from++)
            for (int to = 0; to < LAYOUTS; to++)
                check_layouts(*loops, to, from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reorder_every_pair_of_layouts_moves_each_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
