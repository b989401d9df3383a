/*
 * test_lanes_picked.c - the weight's gradient under 2 x 2 max pooling from inputs that are picked
 * by the places of the maxima, with every instruction set of this machine that picks them, against
 * the sums it computes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "kernels/sample_lanes/sample_lanes.h"

#define BEFORE 0.5f /* sums are added to what was there */

typedef struct picked_case {
    lanes_window s;
    lanes_pooled dy;
    float *x;
} picked_case;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Places of all kinds, and planes with columns of zeros. With more than one row or column of
   windows, the last is without gradient and left out. */
static picked_case make_case(const lanes_window *s, int lanes)
{
    const int64_t width = s->w + 2 * s->pad_w;
    const int64_t oh = s->oh / 2, ow = s->ow / 2, n = s->o * oh * ow * lanes;
    picked_case c = {.s = *s,
                     .dy = {.oh = oh, .ow = ow, .rows = oh - (oh > 1), .columns = ow - (ow > 1)}};
    float *choice = make_numbers(3, n);
    uint8_t *place = co_calloc_aligned((size_t)n, 1);

    assert_non_null(place);
    for (int64_t i = 0; i < n; i++) {
        const int k = (int)((choice[i] + 1) * 2.5f);

        place[i] = (uint8_t)(k < 4 ? k : LANES_NOWHERE);
    }
    co_free(choice);
    c.dy.value = make_numbers(2, n);
    c.dy.place = place;
    c.dy.zeros = co_calloc_aligned((size_t)(width * lanes), sizeof(float));
    assert_non_null(c.dy.zeros);
    c.x = make_numbers(1, s->h * width * lanes);
    for (int64_t i = 0; i < s->h * width * lanes; i++) {
        const int64_t column = i / lanes % width;

        if (column < s->pad_w || column >= s->pad_w + s->w)
            c.x[i] = 0;
    }
    return c;
}

/* Of tap (i, j) of channel o in a lane; i < 0: of the bias. */
static double define(const picked_case *c, int lanes, int64_t o, int64_t i, int64_t j, int lane)
{
    const int64_t width = c->s.w + 2 * c->s.pad_w;
    double sum = (double)BEFORE;

    for (int64_t v = 0; v < c->dy.oh * c->dy.ow; v++) {
        const int64_t at = (o * c->dy.oh * c->dy.ow + v) * lanes + lane;
        const int place = c->dy.place[at];
        const int64_t row = v / c->dy.ow * 2 + place / 2 + i - c->s.pad_h;
        const int64_t column = v % c->dy.ow * 2 + place % 2 + j;

        if (place == LANES_NOWHERE || v / c->dy.ow >= c->dy.rows || v % c->dy.ow >= c->dy.columns)
            continue;
        if (i < 0)
            sum += (double)c->dy.value[at];
        else if (row >= 0 && row < c->s.h)
            sum += (double)c->dy.value[at] * (double)c->x[(row * width + column) * lanes + lane];
    }
    return sum;
}

static void assert_sum(const char *name, const picked_case *c, float got, double want)
{
    if (!(fabs((double)got - want) <= 1e-4))
        fail_msg("%s, %d x %d taps: %.8g, not %.8g", name, (int)c->s.kh, (int)c->s.kw, (double)got,
                 want);
}

/* Channel o, which is computed, or stays as it was. */
static void check_channel(const lanes_loops *loops, const picked_case *c, int64_t o, bool mine,
                          const float *sum, const float *bias)
{
    for (int64_t t = -1; t < c->s.kh * c->s.kw; t++)
        for (int l = 0; l < loops->lanes; l++) {
            const int64_t i = t < 0 ? -1 : t / c->s.kw, j = t < 0 ? 0 : t % c->s.kw;

            assert_sum(loops->name, c, t < 0 ? bias[l] : sum[t * loops->lanes + l],
                       mine ? define(c, loops->lanes, o, i, j, l) : (double)BEFORE);
        }
}

static void check(const lanes_loops *loops, const lanes_window *s, int64_t begin, int64_t end)
{
    const int lanes = loops->lanes;
    const picked_case c = make_case(s, lanes);
    const int64_t taps = s->kh * s->kw * lanes;
    float *sum = make_numbers(4, s->o * taps), *bias = make_numbers(5, s->o * lanes);

    for (int64_t i = 0; i < s->o * taps; i++)
        sum[i] = BEFORE;
    for (int64_t i = 0; i < s->o * lanes; i++)
        bias[i] = BEFORE;
    loops->correlate_picked(sum, bias, &c.dy, c.x, s, begin, end);
    for (int64_t o = 0; o < s->o; o++)
        check_channel(loops, &c, o, o >= begin && o < end, sum + o * taps, bias + o * lanes);
    co_free(sum);
    co_free(bias);
    co_free(c.x);
    co_free((void *)(uintptr_t)c.dy.value);
    co_free((void *)(uintptr_t)c.dy.place);
    co_free((void *)(uintptr_t)c.dy.zeros);
}

/* Padding up to the taps' reach and without, and odd sizes whose last row and column no window
   has. */
static lanes_window describe(int64_t kh, int64_t kw)
{
    lanes_window s = {.c = 1, .o = 1 + (kh + kw) % 4, .kh = kh, .kw = kw, .step_h = 1, .step_w = 1};

    s.pad_h = kh * kw % 3 ? least(kh - 1, kw % 4) : kh - 1;
    s.pad_w = kw * kh % 2 ? least(kw - 1, kh % 3) : 0;
    s.h = kh + 1 + kw % 5;
    s.w = kw + 1 + kh % 6;
    s.oh = s.h + 2 * s.pad_h - kh + 1;
    s.ow = s.w + 2 * s.pad_w - kw + 1;
    return s;
}

/* Every number of taps up to more than fit the registers; all channels, and some. */
static void picked_sums_equal_definition(void **state)
{
    bool any = false;

    (void)state;
    for (const lanes_loops *const *l = lanes_find_all(); *l; l++)
        for (int64_t k = 0; (*l)->correlate_picked && k < 11 * 8; k++) {
            const lanes_window s = describe(1 + k / 8, 1 + k % 8);

            check(*l, &s, k % 3 == 0 && s.o > 1 ? 1 : 0, s.o);
            any = true;
        }
    if (!any)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picked_sums_equal_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
