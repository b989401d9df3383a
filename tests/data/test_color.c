/* test_color.c - colour changes equal torchvision's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "draws.h"
#include "image/color.h"

#define SIZE ((size_t)72) /* (3, 4, 6) */

/* F.adjust_*(image, factor) on tensors, from torchvision 0.14. */
static const uint8_t image[] = {
    0,   255, 77,  189, 230, 118, 200, 10,  8,   228, 231, 190, 155, 112, 158, 208, 7,   204,
    143, 113, 181, 231, 80,  27,  0,   255, 77,  65,  175, 30,  200, 200, 125, 146, 254, 121,
    137, 106, 41,  233, 190, 129, 210, 103, 144, 206, 5,   58,  0,   255, 77,  110, 164, 105,
    10,  200, 31,  2,   68,  38,  105, 211, 147, 18,  113, 245, 135, 100, 108, 109, 158, 190};
static const uint8_t brighter[] = {
    0,   255, 100, 245, 255, 153, 255, 13,  10,  255, 255, 246, 201, 145, 205, 255, 9,   255,
    185, 146, 235, 255, 104, 35,  0,   255, 100, 84,  227, 39,  255, 255, 162, 189, 255, 157,
    178, 137, 53,  255, 246, 167, 255, 133, 187, 255, 6,   75,  0,   255, 100, 143, 213, 136,
    13,  255, 40,  2,   88,  49,  136, 255, 191, 23,  146, 255, 175, 130, 140, 141, 205, 246};
static const uint8_t darker[] = {0,  114, 34, 85, 103, 53,  90,  4,  3,  102, 103, 85, 69, 50, 71,
                                 93, 3,   91, 64, 50,  81,  103, 36, 12, 0,   114, 34, 29, 78, 13,
                                 90, 90,  56, 65, 114, 54,  61,  47, 18, 104, 85,  58, 94, 46, 64,
                                 92, 2,   26, 0,  114, 34,  49,  73, 47, 4,   90,  13, 0,  30, 17,
                                 47, 94,  66, 8,  50,  110, 60,  45, 48, 49,  71,  85};
static const uint8_t contrast[] = {
    0,   255, 43,  222, 255, 109, 240, 0,   0,   255, 255, 224, 168, 99,  173, 253, 0,   246,
    149, 101, 210, 255, 48,  0,   0,   255, 43,  24,  200, 0,   240, 240, 120, 154, 255, 114,
    139, 90,  0,   255, 224, 126, 255, 85,  150, 250, 0,   13,  0,   255, 43,  96,  182, 88,
    0,   240, 0,   0,   29,  0,   88,  255, 155, 0,   101, 255, 136, 80,  93,  94,  173, 224};
static const uint8_t flat[] = {
    92,  169, 115, 149, 161, 128, 152, 95,  95,  161, 162, 149, 139, 126, 140, 155, 94,  154,
    135, 126, 147, 162, 116, 100, 92,  169, 115, 112, 145, 101, 152, 152, 130, 136, 169, 129,
    133, 124, 105, 162, 149, 131, 155, 123, 136, 154, 94,  110, 92,  169, 115, 125, 142, 124,
    95,  152, 102, 93,  113, 104, 124, 156, 136, 98,  126, 166, 133, 122, 125, 125, 140, 149};
static const uint8_t saturated[] = {
    0,   255, 77,  255, 255, 166, 219, 0,   0,   255, 236, 242, 170, 105, 220, 215, 0,   240,
    108, 120, 208, 255, 112, 0,   0,   255, 77,  27,  161, 0,   219, 251, 166, 138, 255, 111,
    136, 94,  0,   255, 247, 97,  236, 101, 138, 209, 0,   53,  0,   255, 77,  112, 140, 141,
    0,   251, 0,   0,   0,   0,   75,  255, 200, 0,   101, 255, 93,  95,  70,  25,  255, 255};
static const uint8_t pale[] = {
    0,   254, 76,  123, 198, 74,  182, 116, 64,  168, 226, 143, 141, 117, 102, 201, 102, 172,
    173, 106, 156, 207, 51,  55,  0,   254, 76,  98,  187, 57,  182, 154, 88,  152, 230, 129,
    137, 116, 78,  206, 138, 157, 186, 104, 148, 202, 36,  62,  0,   254, 76,  107, 184, 72,
    144, 154, 69,  123, 193, 113, 131, 137, 99,  163, 123, 180, 171, 104, 141, 183, 66,  88};
static const uint8_t hue_up[] = {
    0,   255, 77,  189, 230, 118, 51,  10,  8,   133, 85,  140, 133, 193, 158, 40,  7,   245,
    135, 112, 161, 160, 158, 123, 0,   255, 77,  116, 226, 30,  200, 51,  125, 228, 254, 190,
    155, 105, 40,  233, 124, 129, 210, 113, 181, 231, 5,   27,  0,   255, 77,  65,  164, 36,
    10,  200, 122, 2,   68,  37,  104, 211, 55,  18,  190, 195, 185, 100, 107, 109, 116, 190};
static const uint8_t hue_down[] = {
    0,   255, 77,  65,  164, 30,  123, 200, 125, 55,  202, 60,  117, 142, 40,  171, 190, 129,
    210, 100, 114, 157, 5,   123, 0,   255, 77,  159, 179, 118, 10,  124, 8,   2,   68,  37,
    104, 211, 158, 18,  39,  245, 135, 102, 107, 109, 158, 190, 0,   255, 77,  189, 230, 95,
    200, 10,  31,  228, 254, 190, 155, 105, 122, 233, 7,   157, 172, 113, 181, 231, 18,  27};
static const uint8_t grey_contrast[] = {0,   255, 39,  218, 255, 104, 236, 0,  0,   255, 255, 220,
                                        164, 95,  168, 248, 0,   242, 144, 96, 205, 255, 44,  0};

static void assert_near(const uint8_t *got, const uint8_t *want, size_t n, int tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (abs(got[i] - want[i]) > tolerance)
            fail_msg("byte %zu is %d, torchvision has %d", i, got[i], want[i]);
}

static void color_changes_equal_torchvision(void **state)
{
    static const struct {
        co_color_fn *change;
        float factor;
        const uint8_t *want;
    } cases[] = {
        {co_color_brightness, 1.3f, brighter},  {co_color_brightness, 0.45f, darker},
        {co_color_contrast, 1.6f, contrast},    {co_color_contrast, 0.3f, flat},
        {co_color_saturation, 1.9f, saturated}, {co_color_saturation, 0.2f, pale},
        {co_color_hue, 0.13f, hue_up},          {co_color_hue, -0.4f, hue_down},
        {co_color_brightness, 1, image},        {co_color_contrast, 1, image},
        {co_color_saturation, 1, image},        {co_color_hue, 0, image},
    };
    uint8_t out[SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        /* hue is computed in another order, so a byte may be rounded differently */
        const int tolerance = cases[i].change == co_color_hue ? 1 : 0;

        cases[i].change(out, image, 3, SIZE / 3, cases[i].factor);
        assert_near(out, cases[i].want, SIZE, tolerance);
        memcpy(out, image, SIZE);
        cases[i].change(out, out, 3, SIZE / 3, cases[i].factor);
        assert_near(out, cases[i].want, SIZE, tolerance);
    }
    co_color_contrast(out, image, 1, SIZE / 3, 1.6f);
    assert_near(out, grey_contrast, SIZE / 3, 0);
    co_color_hue(out, image, 1, SIZE / 3, 0.3f);
    assert_memory_equal(out, image, SIZE / 3);
    co_color_saturation(out, image, 1, SIZE / 3, 0.3f);
    assert_memory_equal(out, image, SIZE / 3);
}

static void fill(uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(i % 7 == 0 ? 255 : i % 11 == 0 ? 0 : draw_word());
}

/* All instruction sets give the bytes of the first one, plain C. */
static void color_loops_of_every_level_give_same_bytes(void **state)
{
    enum { N = 1001, STEPS = 60 };
    static uint8_t in[3 * N], want[3 * N], got[3 * N];
    const co_color_loops *loops[CO_COLOR_MAX_LOOPS];
    const size_t n = co_color_loops_list(loops);

    (void)state;
    for (int k = 0; k < STEPS * (int)n; k++) {
        const co_color_loops *a = loops[0], *b = loops[k % (int)n];
        const float turn = draw_unit() - 0.5f, factor = 4 * turn + 2;

        fill(in, sizeof(in));
        a->turn(want, N, in, N, N, turn);
        b->turn(got, N, in, N, N, turn);
        assert_memory_equal(got, want, sizeof(want));
        a->scale(want, in, 3 * N, factor, 40 * turn);
        b->scale(got, in, 3 * N, factor, 40 * turn);
        assert_memory_equal(got, want, sizeof(want));
        a->grey(want, in, N, N);
        b->grey(got, in, N, N);
        assert_memory_equal(got, want, N);
        assert_int_equal(b->sum(in, N), a->sum(in, N));
        a->blend(want + N, in, want, N, factor);
        b->blend(got + N, in, got, N, factor);
        assert_memory_equal(got + N, want + N, N);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(color_changes_equal_torchvision),
        cmocka_unit_test(color_loops_of_every_level_give_same_bytes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
