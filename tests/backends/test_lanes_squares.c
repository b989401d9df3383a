/*
 * test_lanes_squares.c - the input's gradient from the nonzero elements of the output's, by squares
 * of outputs, with every instruction set of this machine, against the sums it computes.
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

static void *make_room(int64_t n, size_t size)
{
    void *room = co_calloc_aligned((size_t)n, size);

    assert_non_null(room);
    return room;
}

/* The spots of one sample: every `every`-th output in the order of channels. */
static lanes_spots make_spots(const lanes_sparse *s, int64_t kw, int64_t every)
{
    const int64_t oh = s->h + 2 * s->pad_h - s->kh + 1, ow = s->w + 2 * s->pad_w - kw + 1;
    const lanes_spots spots = {make_numbers(1, s->o * oh * ow),
                               make_room(s->o * oh * ow, sizeof(int32_t)),
                               make_room(s->o, sizeof(int32_t))};
    int32_t n = 0;

    for (int64_t e = 0; e < s->o * oh * ow; e++) {
        if (e % every == 0)
            spots.at[n++] = (int32_t)(e / ow % oh * s->row + e % ow * s->c);
        spots.end[e / (oh * ow)] = n;
    }
    return spots;
}

/* dx (h, w, c) by the definition, with weights (o, c, kh, kw). */
static double *define(const lanes_spots *spots, const float *weight, const lanes_sparse *s,
                      int64_t kw)
{
    double *dx = make_room((s->h + 2 * s->pad_h) * s->row, sizeof(*dx));

    for (int64_t o = 0, p = 0; o < s->o; o++)
        for (; p < spots->end[o]; p++)
            for (int64_t t = 0; t < s->c * s->kh * kw; t++) {
                const int64_t c = t / s->kh / kw, i = t / kw % s->kh, j = t % kw;

                dx[spots->at[p] + i * s->row + j * s->c + c] +=
                    (double)spots->value[p] * (double)weight[o * s->c * s->kh * kw + t];
            }
    return dx;
}

static void check(const lanes_loops *lanes, const lanes_sparse *s, int64_t kw, int64_t every)
{
    const lanes_squares q = lanes_describe_squares(s, kw, lanes->lanes);
    const lanes_spots spots = make_spots(s, kw, every);
    const int64_t size = q.ahead + s->o * q.channel, all = (s->h + 2 * s->pad_h) * s->row;
    float *weight = make_numbers(2, s->o * s->c * s->kh * kw), *spread = make_numbers(3, size + 1);
    float *dx = make_room(q.sample + 1, sizeof(*dx));
    lanes_place *place = make_room(q.places, sizeof(*place));
    double *want = define(&spots, weight, s, kw);
    const lanes_sorting by = {place, spread, make_room(q.n * q.room, sizeof(lanes_sorted)),
                              make_room(q.n, sizeof(int32_t))};

    spread[size] = dx[q.sample] = ROOM_END;
    lanes_find_places(place, s, &q);
    lanes_spread_weight(spread, weight, s, kw, &q);
    lanes->sparse_data(dx, &spots, &by, s, &q);
    assert_true(spread[size] == ROOM_END && dx[q.sample] == ROOM_END);
    for (int64_t e = 0; e < q.sample; e++)
        if (!(fabs((double)dx[e] - (e < all ? want[e] : 0)) <= 1e-5))
            fail_msg("%s, %d channels, %d x %d taps: %d is %.8g, not %.8g", lanes->name, (int)s->c,
                     (int)s->kh, (int)kw, (int)e, (double)dx[e], e < all ? want[e] : 0);
    co_free(spots.value);
    co_free(spots.at);
    co_free(spots.end);
    co_free(weight);
    co_free(spread);
    co_free(dx);
    co_free(place);
    co_free(want);
    co_free(by.sorted);
    co_free(by.count);
}

/* Every number of rows, more than fit the registers, and of vectors; even and odd numbers of
   outputs; a square of many spots, of few, and of none. */
static void squares_of_any_size_equal_definition(void **state)
{
    (void)state;
    for (const lanes_loops *const *l = lanes_find_all(); *l; l++)
        for (int64_t kh = 1; kh <= 8; kh++)
            for (int64_t c = 1; c <= 23; c += 1 + kh % 3) {
                const int64_t kw = 1 + (kh + c) % 5;
                lanes_sparse s = {.c = c, .o = 1 + c % 4, .kh = kh, .pad_h = kh % 2, .fold = 1};

                s.h = kh + c % 5;
                s.w = kw + kh % 4;
                s.pad_w = kw > 1 ? c % 2 : 0;
                s.row = (s.w + 2 * s.pad_w) * c;
                for (int64_t every = 1; every <= 16; every *= 4)
                    check(*l, &s, kw, every);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares_of_any_size_equal_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
