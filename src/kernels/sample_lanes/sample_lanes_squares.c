/*
 * sample_lanes_squares.c - where the spots of a gradient lie in squares of outputs, and the weight
 * as squares multiply it: what sample_lanes_squares.h reads.
 */
#include <string.h>

#include "kernels/sample_lanes/sample_lanes.h"

/* Outputs of n inputs with padding. */
static int64_t squares_outputs(int64_t n, int64_t pad, int64_t taps)
{
    return n + 2 * pad - taps + 1;
}

lanes_squares lanes_describe_squares(const lanes_sparse *s, int64_t kw, int lanes)
{
    const int64_t oh = squares_outputs(s->h, s->pad_h, s->kh);
    const int64_t ow = squares_outputs(s->w, s->pad_w, kw);
    const int64_t span = (kw + LANES_SQUARE - 1) * s->c;
    lanes_squares q = {.across = (ow + LANES_SQUARE - 1) / LANES_SQUARE};

    q.n = q.across * ((oh + LANES_SQUARE - 1) / LANES_SQUARE);
    q.room = s->o * LANES_SQUARE * LANES_SQUARE;
    q.rows = s->kh + LANES_SQUARE - 1;
    q.span = (span + lanes - 1) / lanes * lanes;
    q.copies = s->c % lanes == 0 ? 1 : LANES_SQUARE;
    q.wide = q.span + (LANES_SQUARE - q.copies) * s->c;
    q.channel = q.copies * q.rows * q.wide;
    q.ahead = (LANES_SQUARE - 1) * q.wide;
    q.sample = (s->h + 2 * s->pad_h + LANES_SQUARE - 1) * s->row + q.span;
    q.places = oh * s->row;
    return q;
}

void lanes_find_places(lanes_place *place, const lanes_sparse *s, const lanes_squares *q)
{
    for (int64_t at = 0; at < q->places; at += s->c) {
        const int64_t y = at / s->row, x = at % s->row / s->c;
        const int64_t column = x % LANES_SQUARE, row = y % LANES_SQUARE;

        place[at].square = (uint32_t)(y / LANES_SQUARE * q->across + x / LANES_SQUARE);
        place[at].weight =
            (int32_t)(q->copies == 1 ? (LANES_SQUARE - 1 - column) * s->c - row * q->wide
                                     : (column * q->rows - row) * q->wide);
    }
}

void lanes_spread_weight(float *to, const float *weight, const lanes_sparse *s, int64_t kw,
                         const lanes_squares *q)
{
    const size_t row = (size_t)(kw * s->c) * sizeof(float);

    memset(to, 0, (size_t)(q->ahead + s->o * q->channel) * sizeof(float));
    to += q->ahead + (LANES_SQUARE - q->copies) * s->c;
    for (int64_t o = 0; o < s->o; o++, to += q->channel) {
        for (int64_t c = 0; c < s->c; c++)
            for (int64_t i = 0; i < s->kh; i++)
                for (int64_t j = 0; j < kw; j++)
                    to[i * q->wide + j * s->c + c] = *weight++;
        for (int64_t i = 0; i < s->kh; i++)
            for (int64_t k = 1; k < q->copies; k++)
                memcpy(to + (k * q->rows + i) * q->wide + k * s->c, to + i * q->wide, row);
    }
}
