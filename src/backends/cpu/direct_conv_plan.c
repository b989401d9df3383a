/*
 * direct_conv_plan.c - where the sums of a convolution find their numbers.
 *
 *   y[u]  = sum over taps t of x[u s + t d - p] w[t]
 *   dx[i] = sum over those t for which (i + p - t d) is a multiple of s, of
 *           dy[(i + p - t d) / s] w[t]
 *
 * in each direction. Where pairs of neighbouring pixels are read, a tap reads those that begin at
 * t d / s of the copy of phase t d % s, as u s + t d = (u + t d / s) s + t d % s. Of all i + p with
 * the same rest c the same taps give dx: those with t d % s = c.
 */
#include "backends/cpu/direct_conv.h"

#include "core/mem.h"

#define DIRECT_COPY_WORDS     (1 << 19) /* of images copied at once: a second-level cache or two */
#define DIRECT_FEW_COPY_WORDS (1 << 16) /* where weights are small, too */
#define DIRECT_OWN_COPY_WORDS (1 << 17) /* of a thread with tiles, whose weights are there, too */
#define DIRECT_PHASE_PIXELS   12        /* of a tile's 16 */
#define DIRECT_PARTS_NUMBERS  (1 << 19) /* whose neighbours other parts write soon after */

bool direct_is_few(const co_call *call, const direct_conv_loops *loops)
{
    return call->in[0]->shape.dim[1] <= loops->few;
}

/* How many different rests the taps of one direction leave. */
static int64_t direct_count_phases(const co_conv2d_attr *a, int dim)
{
    int64_t n = 1;

    while (n < a->k[dim] && n * a->d[dim] % a->s[dim] != 0)
        n++;
    return n;
}

static int64_t direct_reach(const co_conv2d_attr *a, int dim)
{
    return (a->k[dim] - 1) * a->d[dim] / a->s[dim];
}

static int64_t direct_round_up(int64_t n, int64_t to)
{
    return direct_divide_up(n, to) * to;
}

/* Words of images of which there are copies at once. */
static int64_t direct_copied_words(const direct_image *image, const co_call *call,
                                   const direct_conv_loops *loops)
{
    if (image->numbers == 1)
        return DIRECT_FEW_COPY_WORDS;
    return loops->lines ? cpu_threads(call) * DIRECT_OWN_COPY_WORDS : DIRECT_COPY_WORDS;
}

static void direct_size_image(direct_pass *pass, const co_call *call,
                              const direct_conv_loops *loops, int64_t dy_sample)
{
    direct_image *image = &pass->image;
    const int64_t most = direct_copied_words(image, call, loops);
    const int64_t n = call->in[0]->shape.dim[0];

    image->row =
        (image->pairs ? direct_divide_up(image->columns, 2) : image->columns) * image->width;
    image->plane = image->phases[0] * image->phases[1] * image->rows * image->row;
    image->plane += image->after * image->width;
    image->sample = image->planes * image->plane;
    pass->group = n;
    if (image->copied)
        pass->group = direct_least(n, image->samples * (1 + most / (image->sample + dy_sample)));
}

/* A rectangle whose rows follow each other without a gap is one row. */
static void direct_join_rows(direct_conv_area *area)
{
    if (area->x_row != area->pixels * area->x_pixel || area->y_row != area->pixels * area->y_pixel)
        return;
    area->pixels *= area->rows;
    area->rows = 1;
}

/* The only part of a pass over all taps. */
static co_status direct_add_steps(direct_pass *out, const co_conv2d_attr *a)
{
    const direct_image *image = &out->image;
    const int64_t taps = a->k[0] * a->k[1];

    out->parts = 1;
    out->steps = image->planes * taps;
    out->part = co_calloc(1, sizeof(*out->part));
    out->at = co_calloc((size_t)out->steps, sizeof(*out->at));
    if (!out->part || !out->at)
        return CO_E_NOMEM;
    for (int64_t s = 0; s < out->steps; s++) {
        const int64_t t[2] = {s % taps / a->k[1], s % taps % a->k[1]};
        const int64_t phase = t[0] % image->phases[0] * image->phases[1] + t[1] % image->phases[1];
        const int64_t row = t[0] * a->d[0] / image->step[0];
        const int64_t column = t[1] * a->d[1] / image->step[1];

        out->at[s] = s / taps * image->plane + (phase * image->rows + row) * image->row;
        if (!image->pairs)
            out->at[s] += (column - image->first[1] - a->p[1]) * image->width;
    }
    out->part->sum = (direct_conv_sum){out->at, out->steps, image->numbers > 1};
    return CO_OK;
}

/* As many rows and columns as the results of `to` read. Of single channels, lines of the image
   begin at whole vectors. */
static void direct_size_copy(direct_image *image, const co_conv2d_attr *a, const int64_t *to,
                             int64_t lanes)
{
    image->rows = (to[2] - 1) * a->s[0] + (a->k[0] - 1) * a->d[0] + 1;
    image->columns = (to[3] - 1) * a->s[1] + (a->k[1] - 1) * a->d[1] + 1;
    if (image->numbers > 1)
        return;
    image->first[1] = -direct_round_up(a->p[1], lanes);
    image->columns = direct_round_up(image->columns - image->first[1] - a->p[1], lanes);
}

/* Whether pixels that a stride leads to are copied, as all of them can become one row, or a row of
   results would leave much of a tile of AMX empty. */
static bool direct_wants_phases(const co_call *call, const direct_conv_loops *loops)
{
    const co_conv2d_attr *a = call->attr;
    const bool strides = a->s[0] > 1 || a->s[1] > 1, one = a->k[0] * a->k[1] == 1;

    if (loops->lines)
        return strides && (one || call->out[0]->shape.dim[3] < DIRECT_PHASE_PIXELS);
    return strides && one && !direct_has_pairs(loops) && !direct_is_few(call, loops);
}

/* Copies of the rows and columns that leave the same rest, so that pixels that a stride goes over
   are neighbours: more of them fit into a tile. */
static void direct_size_phases(direct_image *image, const co_conv2d_attr *a, const int64_t *to)
{
    for (int i = 0; i < 2; i++) {
        image->phases[i] = direct_count_phases(a, i);
        image->phase_step[i] = a->d[i];
        image->step[i] = a->s[i];
    }
    image->rows = to[2] + direct_reach(a, 0);
    image->columns = to[3] + direct_reach(a, 1);
}

/* From the tensor or copies of it; `planes` of few channels, and how many `samples` share a copy.
 */
static co_status direct_plan_images(direct_pass *out, const co_call *call,
                                    const direct_conv_loops *loops, int64_t planes, int64_t samples)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *to = call->out[0]->shape.dim;
    const bool few = direct_is_few(call, loops);
    const int64_t lanes = loops->lanes;
    direct_image *image = &out->image;

    *image = (direct_image){.copied = direct_widens(loops) || (few && direct_has_pairs(loops)),
                            .h = in[2],
                            .w = in[3],
                            .rows = in[2],
                            .columns = in[3],
                            .planes = few ? planes : direct_divide_up(in[1], lanes),
                            .channels = in[1],
                            .samples = samples,
                            .numbers = few ? 1 : lanes,
                            .width = few ? 1 : loops->words};
    for (int i = 0; i < 2; i++) {
        image->phases[i] = image->step[i] = 1;
        image->first[i] = -a->p[i];
        image->copied = image->copied || a->p[i] > 0;
        out->to[i] = to[2 + i];
    }
    if (direct_wants_phases(call, loops)) {
        image->copied = true;
        direct_size_phases(image, a, to);
    } else if (image->copied) {
        direct_size_copy(image, a, to, lanes);
    }
    out->blocks = direct_divide_up(to[1], lanes);
    out->y_sample = out->blocks * to[2] * to[3] * lanes;
    direct_size_image(out, call, loops, direct_widens(loops) ? out->y_sample : 0);
    CO_TRY(direct_add_steps(out, a));
    out->part->area = (direct_conv_area){.rows = to[2],
                                         .pixels = to[3],
                                         .y_row = to[3] * lanes,
                                         .y_pixel = lanes,
                                         .y_block = to[2] * to[3] * lanes,
                                         .x_row = a->s[0] / image->step[0] * image->row,
                                         .x_pixel = a->s[1] / image->step[1] * image->width};
    direct_join_rows(&out->part->area);
    return CO_OK;
}

co_status direct_plan_forward(direct_pass *out, const co_call *call, const direct_conv_loops *loops)
{
    const int64_t channels = call->in[0]->shape.dim[1];

    return direct_plan_images(out, call, loops,
                              loops->join ? direct_divide_up(channels, 2) : channels, 1);
}

/* Where there is no padding and one tap, an image is a row: an odd number of columns would leave
   half a pair in each. */
co_status direct_plan_pairs(direct_pass *out, const co_call *call, const direct_conv_loops *loops)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *to = call->out[0]->shape.dim;
    const int64_t lanes = loops->lanes;
    direct_image *image = &out->image;
    bool row = true;
    int64_t dy_row, dy_plane;

    if (direct_is_few(call, loops))
        return direct_plan_images(out, call, loops, in[1], 2);
    *image = (direct_image){.copied = true,
                            .pairs = true,
                            .samples = 1,
                            .h = in[2],
                            .w = in[3],
                            .planes = direct_divide_up(in[1], lanes),
                            .numbers = lanes,
                            .width = lanes,
                            .after = loops->lines ? DIRECT_CONV_AFTER : 0};
    for (int i = 0; i < 2; i++) {
        image->phases[i] = i == 0 ? direct_count_phases(a, i) : a->k[i];
        image->phase_step[i] = a->d[i];
        image->step[i] = a->s[i];
        image->first[i] = -a->p[i];
        out->to[i] = to[2 + i];
        row = row && a->k[i] == 1 && a->s[i] == 1 && a->p[i] == 0;
    }
    if (row) {
        image->w = out->to[1] = in[2] * in[3];
        image->h = out->to[0] = 1;
    }
    image->rows = out->to[0] + direct_reach(a, 0);
    image->columns = out->to[1];
    dy_row = direct_divide_up(out->to[1], 2) * lanes;
    dy_plane = out->to[0] * dy_row;
    if (loops->lines)
        dy_plane = direct_round_up(dy_plane, DIRECT_CONV_AFTER * lanes);
    out->blocks = direct_divide_up(to[1], lanes);
    out->y_sample = out->blocks * dy_plane;
    direct_size_image(out, call, loops, out->y_sample);
    CO_TRY(direct_add_steps(out, a));
    out->part->area = (direct_conv_area){.rows = out->to[0],
                                         .pixels = dy_row / lanes,
                                         .y_row = dy_row,
                                         .y_pixel = lanes,
                                         .y_block = dy_plane,
                                         .x_row = image->row,
                                         .x_pixel = image->width};
    direct_join_rows(&out->part->area);
    return CO_OK;
}

/* In one direction: the results with one rest. */
typedef struct direct_rest {
    int64_t first, n; /* of the quotients (i + p) / s */
    int64_t at;       /* i of the first */
} direct_rest;

static direct_rest direct_find_rest(const co_call *call, int dim, int64_t phase)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t s = a->s[dim], p = a->p[dim], last = call->in[0]->shape.dim[2 + dim] - 1 + p;
    const int64_t first = p > phase ? direct_divide_up(p - phase, s) : 0;

    if (last < phase || (last - phase) / s < first)
        return (direct_rest){0, 0, 0};
    return (direct_rest){first, (last - phase) / s - first + 1, first * s + phase - p};
}

/* The steps of a part: blocks of dy's channels, and for each the part's taps. */
static void direct_add_part(direct_pass *out, const co_call *call, const direct_conv_loops *loops,
                            const int64_t phase[2], const direct_rest rest[2])
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim;
    const int64_t begin = out->steps, taps = a->k[0] * a->k[1], lanes = loops->lanes;
    const direct_image *image = &out->image;
    direct_part *part = &out->part[out->parts++];

    for (int64_t s = 0; s < image->planes * taps; s++) {
        const int64_t t = s % taps;
        const int64_t reach[2] = {t / a->k[1] * a->d[0], t % a->k[1] * a->d[1]};

        if (reach[0] % a->s[0] != phase[0] || reach[1] % a->s[1] != phase[1])
            continue;
        out->tap[out->steps] = s;
        out->at[out->steps++] =
            s / taps * image->plane +
            (rest[0].first - reach[0] / a->s[0] - image->first[0]) * image->row +
            (rest[1].first - reach[1] / a->s[1] - image->first[1]) * image->width;
    }
    part->sum = (direct_conv_sum){out->at + begin, out->steps - begin, true};
    part->area = (direct_conv_area){.rows = rest[0].n,
                                    .pixels = rest[1].n,
                                    .y_row = a->s[0] * in[3] * lanes,
                                    .y_pixel = a->s[1] * lanes,
                                    .y_block = in[2] * in[3] * lanes,
                                    .x_row = image->row,
                                    .x_pixel = image->width};
    direct_join_rows(&part->area);
    part->y_at = (rest[0].at * in[3] + rest[1].at) * lanes;
    part->w_at = begin * lanes * loops->words * out->blocks;
}

co_status direct_plan_data(direct_pass *out, const co_call *call, const direct_conv_loops *loops)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *from = call->out[0]->shape.dim;
    const int64_t parts = a->s[0] * a->s[1];
    direct_image *image = &out->image;
    int64_t size[2];
    size_t steps;

    *image = (direct_image){.copied = direct_widens(loops),
                            .h = from[2],
                            .w = from[3],
                            .samples = 1,
                            .planes = direct_divide_up(from[1], loops->lanes),
                            .numbers = loops->lanes,
                            .width = loops->words,
                            .phases = {1, 1},
                            .step = {1, 1}};
    for (int i = 0; i < 2; i++) {
        const int64_t last = (in[2 + i] - 1 + a->p[i]) / a->s[i];

        image->first[i] = -direct_reach(a, i);
        size[i] = (last < from[2 + i] ? from[2 + i] : last + 1) - image->first[i];
        image->copied = image->copied || size[i] != from[2 + i];
    }
    image->rows = size[0];
    image->columns = size[1];
    direct_size_image(out, call, loops, 0);
    out->blocks = direct_divide_up(in[1], loops->lanes);
    out->y_sample = out->blocks * in[2] * in[3] * loops->lanes;
    if (parts > 1 && !loops->lines)
        out->group = direct_least(out->group, 1 + DIRECT_PARTS_NUMBERS / out->y_sample);
    steps = (size_t)(image->planes * a->k[0] * a->k[1]);
    out->part = co_calloc((size_t)parts, sizeof(*out->part));
    out->at = co_calloc(steps, sizeof(*out->at));
    out->tap = co_calloc(steps, sizeof(*out->tap));
    if (!out->part || !out->at || !out->tap)
        return CO_E_NOMEM;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t phase[2] = {i / a->s[1], i % a->s[1]};
        const direct_rest rest[2] = {direct_find_rest(call, 0, phase[0]),
                                     direct_find_rest(call, 1, phase[1])};

        if (rest[0].n > 0 && rest[1].n > 0)
            direct_add_part(out, call, loops, phase, rest);
    }
    return CO_OK;
}

int64_t direct_count_pieces(const direct_conv_area *area, int64_t most)
{
    const int64_t rows = most / area->pixels;

    if (area->rows == 1)
        return direct_divide_up(area->pixels, most);
    return direct_divide_up(area->rows, rows > 1 ? rows : 1);
}

direct_piece direct_find_piece(const direct_conv_area *area, int64_t pieces, int64_t i)
{
    const bool single = area->rows == 1;
    const int64_t all = single ? area->pixels : area->rows;
    const int64_t begin = all * i / pieces, n = all * (i + 1) / pieces - begin;
    direct_piece piece = {.area = *area};

    if (single)
        piece.area.pixels = n;
    else
        piece.area.rows = n;
    piece.x_at = begin * (single ? area->x_pixel : area->x_row);
    piece.y_at = begin * (single ? area->y_pixel : area->y_row);
    return piece;
}

void direct_pass_free(direct_pass *pass)
{
    co_free(pass->part);
    co_free(pass->at);
    co_free(pass->tap);
}
