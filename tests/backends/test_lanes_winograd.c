/*
 * test_lanes_winograd.c - Winograd's algorithm of the cpu backend, with every instruction set of
 * this machine, against direct correlation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "core/mem.h"
#include "kernels/sample_lanes/sample_lanes.h"

#define ROOM_END 1234.5f

/* Planes with zeros in the padding columns. */
static float *make_planes(const lanes_window *s, int64_t lanes)
{
    const int64_t width = s->w + 2 * s->pad_w;
    float *x = make_numbers(2, s->c * s->h * width * lanes);

    for (int64_t i = 0; i < s->c * s->h * width * lanes; i++)
        if (i / lanes % width < s->pad_w || i / lanes % width >= s->pad_w + s->w)
            x[i] = 0;
    return x;
}

/* Output i by definition; *scale: the sum of the products' magnitudes. */
static double define(const float *x, const float *w, const lanes_window *s, int64_t i, int64_t n,
                     double *scale)
{
    const int64_t width = s->w + 2 * s->pad_w, v = i / n % s->ow, u = i / n / s->ow % s->oh;
    const int64_t o = i / n / s->ow / s->oh, taps = s->c * s->kh * s->kw;
    double sum = 0;

    *scale = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t row = u - s->pad_h + t / s->kw % s->kh, column = v + t % s->kw;
        const int64_t c = t / s->kw / s->kh;
        double term;

        if (row < 0 || row >= s->h)
            continue;
        term = (double)w[o * taps + t] * (double)x[((c * s->h + row) * width + column) * n + i % n];
        sum += term;
        *scale += fabs(term);
    }
    return sum;
}

static void check(const lanes_loops *lanes, const lanes_window *s)
{
    const int64_t n = lanes->lanes, count = s->o * s->oh * s->ow * n;
    const int64_t size = lanes->wino_room(s), form = 64 * lanes_winograd_stride(s);
    float *x = make_planes(s, n), *w = make_numbers(3, s->o * s->c * 25),
          *bias = make_numbers(4, s->o);
    float *room = make_numbers(5, size + 1), *u = make_numbers(6, form + 1),
          *y = make_numbers(7, count + 1);

    room[size] = u[form] = y[count] = ROOM_END;
    lanes->wino_weight(u, w, s);
    lanes->wino(y, room, x, u, s->o % 2 ? bias : NULL, s);
    assert_true(room[size] == ROOM_END && u[form] == ROOM_END && y[count] == ROOM_END);
    for (int64_t i = 0; i < count; i++) {
        const int64_t o = i / n / s->ow / s->oh;
        double scale, want = define(x, w, s, i, n, &scale);

        want += s->o % 2 ? (double)bias[o] : 0;
        if (!(fabs((double)y[i] - want) <= 1e-5 * scale + 2e-5))
            fail_msg("%s, %d -> %d channels, %d x %d: output %d is %.8g, not %.8g", lanes->name,
                     (int)s->c, (int)s->o, (int)s->oh, (int)s->ow, (int)i, (double)y[i], want);
    }
    co_free(x);
    co_free(w);
    co_free(bias);
    co_free(room);
    co_free(u);
    co_free(y);
}

/* Output channels part by part, as pooling takes them while they are in L1, give the same bits. */
static void check_parts(const lanes_loops *lanes, const lanes_window *s)
{
    const int64_t n = lanes->lanes, plane = s->oh * s->ow * n, part = lanes->wino_part(s);
    float *x = make_planes(s, n), *w = make_numbers(3, s->o * 25), *bias = make_numbers(4, s->o);
    float *room = make_numbers(5, lanes->wino_room(s));
    float *u = make_numbers(6, 64 * lanes_winograd_stride(s));
    float *whole = make_numbers(7, s->o * plane), *y = make_numbers(8, s->o * plane + 1);
    lanes_window some = *s;

    assert_true(part > 0 && part < s->o);
    lanes->wino_weight(u, w, s);
    lanes->wino(whole, room, x, u, bias, s);
    for (some.begin = 0; some.begin < s->o; some.begin += some.part) {
        some.part = s->o - some.begin < part ? s->o - some.begin : part;
        y[(some.begin + some.part) * plane] = ROOM_END;
        lanes->wino(y + some.begin * plane, room, x, u, bias, &some);
        assert_true(y[(some.begin + some.part) * plane] == ROOM_END);
    }
    assert_memory_equal(y, whole, (size_t)(s->o * plane) * sizeof(float));
    co_free(x);
    co_free(w);
    co_free(bias);
    co_free(room);
    co_free(u);
    co_free(whole);
    co_free(y);
}

static void winograd_in_parts_equals_all_channels(void **state)
{
    (void)state;
    for (const lanes_loops *const *l = lanes_find_all(); *l; l++)
        for (int64_t o = 4; o <= 17; o++) {
            const lanes_window s = {.c = 1,
                                    .h = 12,
                                    .w = 10 + o,
                                    .o = o,
                                    .oh = 1 + o % 4,
                                    .ow = 10 + o,
                                    .kh = 5,
                                    .kw = 5,
                                    .step_h = 1,
                                    .step_w = 1,
                                    .pad_h = 2 - o % 9,
                                    .pad_w = 2};

            check_parts(*l, &s);
        }
}

/* Every tile size, at every edge, with and without padding. */
static void winograd_any_size_equals_correlation(void **state)
{
    (void)state;
    for (const lanes_loops *const *l = lanes_find_all(); *l; l++)
        for (int64_t o = 1; o <= 12; o++)
            for (int64_t ow = 1; ow <= 22; ow += 1 + o % 3) {
                lanes_window s = {.o = o, .ow = ow, .kh = 5, .kw = 5, .step_h = 1, .step_w = 1};

                s.c = 1 + (o + ow) % 6;
                s.oh = 1 + (o * 5 + ow) % 9;
                s.pad_h = (o + ow / 2) % 5;
                s.pad_w = ow % 5;
                s.h = s.oh - 2 * s.pad_h + 4;
                s.w = s.ow - 2 * s.pad_w + 4;
                if (s.h > 0 && s.w > 0)
                    check(*l, &s);
            }
}

/* Rows of a larger output, as a following pooling requests them. */
static void winograd_rows_of_larger_output_are_strided(void **state)
{
    (void)state;
    for (const lanes_loops *const *l = lanes_find_all(); *l; l++)
        for (int64_t u = 0; u < 12; u++) {
            const lanes_window s = {.c = 1 + u % 2,
                                    .h = 12,
                                    .w = 12,
                                    .o = 3,
                                    .oh = u < 10 ? 3 : 12 - u,
                                    .ow = 12,
                                    .kh = 5,
                                    .kw = 5,
                                    .step_h = 1,
                                    .step_w = 1,
                                    .pad_h = 2 - u,
                                    .pad_w = 2};

            check(*l, &s);
        }
}

static void winograd_is_chosen_for_shared_transforms(void **state)
{
    lanes_window s = {.c = 10,
                      .h = 12,
                      .w = 12,
                      .o = 20,
                      .oh = 8,
                      .ow = 8,
                      .kh = 5,
                      .kw = 5,
                      .step_h = 1,
                      .step_w = 1};

    (void)state;
    assert_true(lanes_winograd_pays(&s));
    s.kw = 3;
    assert_false(lanes_winograd_pays(&s));
    s.kw = 5;
    s.step_w = 2;
    assert_false(lanes_winograd_pays(&s));
    s.step_w = 1;
    s.c = 1;
    assert_true(lanes_winograd_pays(&s));
    s.o = 1;
    assert_false(lanes_winograd_pays(&s));
    s.c = 2;
    assert_false(lanes_winograd_pays(&s));
    s.o = s.c = 20;
    assert_true(lanes_winograd_pays(&s));
    s.oh = s.ow = 1;
    assert_false(lanes_winograd_pays(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winograd_any_size_equals_correlation),
        cmocka_unit_test(winograd_in_parts_equals_all_channels),
        cmocka_unit_test(winograd_rows_of_larger_output_are_strided),
        cmocka_unit_test(winograd_is_chosen_for_shared_transforms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
