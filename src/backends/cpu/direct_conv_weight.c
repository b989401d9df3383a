/*
 * direct_conv_weight.c - the gradient of a convolution's weight, by the loops of
 * kernels/direct_conv; and the copies of images that all passes read.
 */
#include <string.h>

#include "backends/cpu/direct_conv.h"
#include "core/parallel.h"

#define DIRECT_CHUNK_PIXELS 128 /* of x and dy, which stay in a first-level cache meanwhile */

const direct_pass *direct_weight_pass(const direct *self)
{
    return direct_has_pairs(self->loops) ? &self->pairs : &self->forward;
}

/* Plane `i`, counted over all samples, of an image in the tensor's memory. */
static const char *direct_plane(const direct *self, const direct_image *image, const void *x,
                                int64_t i)
{
    return (const char *)x + (size_t)(i * image->h * image->w * image->numbers) * self->loops->cell;
}

/* The copy of plane `i` of `n` samples: of two channels, or of a channel of two samples. */
static void direct_join(const direct *self, const direct_image *image, float *to, const char *from,
                        int64_t i, int64_t n, const direct_conv_spread *how)
{
    const int64_t channels = image->channels, copy = i / image->planes, plane = i % image->planes;
    int64_t first = copy * channels + 2 * plane, second = first + 1;
    bool both = 2 * plane + 1 < channels;

    if (image->samples == 2) {
        first = 2 * copy * channels + plane;
        second = first + channels;
        both = 2 * copy + 1 < n;
    }
    self->loops->join(to, direct_plane(self, image, from, first),
                      both ? direct_plane(self, image, from, second) : NULL, how);
}

/* The copies of plane `i` of `n` samples, one for each phase. */
static void direct_copy_phases(const direct *self, const direct_image *image, float *to,
                               const char *from, int64_t n, int64_t i, bool again)
{
    const int64_t phases = image->phases[0] * image->phases[1];

    for (int64_t p = 0; p < phases; p++, to += image->rows * image->row) {
        const int64_t row = p / image->phases[1] * image->phase_step[0] % image->step[0];
        const int64_t column = p % image->phases[1] * image->phase_step[1];
        const direct_conv_spread how = {.h = image->h,
                                        .w = image->w,
                                        .rows = image->rows,
                                        .columns = image->columns,
                                        .top = image->first[0] + row,
                                        .left = image->first[1] +
                                                (image->pairs ? column : column % image->step[1]),
                                        .step = image->step,
                                        .blocks = image->numbers > 1,
                                        .again = again,
                                        .after = image->after};

        if (image->pairs)
            self->loops->pair(to, direct_plane(self, image, from, i), &how);
        else if (image->numbers == 1 && self->loops->join)
            direct_join(self, image, to, from, i, n, &how);
        else
            self->loops->spread(to, direct_plane(self, image, from, i), &how);
    }
}

void direct_copy_plane(const direct *self, const direct_image *image, float *to, const void *x,
                       int64_t i)
{
    direct_copy_phases(self, image, to, x, 1, i, false);
}

/* Copies of planes [begin, end) of `n` samples. */
static void direct_copy_planes(const direct *self, const direct_image *image, float *to,
                               const char *from, int64_t n, co_range planes, bool again)
{
    for (int64_t i = planes.begin; i < planes.end; i++)
        direct_copy_phases(self, image, to + i * image->plane, from, n, i, again);
}

const float *direct_bring(const direct *self, const direct_image *image, float *to, const void *x,
                          int64_t first, int64_t n, int threads)
{
    const int64_t planes = image->numbers == 1 ? image->channels : image->planes;
    const int64_t copies = direct_divide_up(n, image->samples) * image->planes;
    const char *from = direct_plane(self, image, x, first * planes);

    if (!image->copied)
        return (const float *)(const void *)from;
    CO_PARALLEL_EACH(t, threads,
                     direct_copy_planes(self, image, to, from, n,
                                        co_parallel_part(copies, t, threads), first > 0));
    return to;
}

/* Some samples' part of the gradient of the weight: of two blocks of outputs and the steps of
   `sum`. */
static void direct_correlate_steps(const direct *self, float *dw, const float *x, const float *dy,
                                   int64_t samples, int columns, const direct_conv_sum *sum,
                                   bool add)
{
    const direct_pass *pass = direct_weight_pass(self);
    const direct_conv_area *area = &pass->part->area;
    const int64_t pixels = area->rows * area->pixels;
    const int64_t together =
        pixels < DIRECT_CHUNK_PIXELS ? direct_least(DIRECT_CHUNK_PIXELS / pixels, samples) : 1;
    const int64_t pieces = direct_count_pieces(area, DIRECT_CHUNK_PIXELS);

    for (int64_t n = 0; n < samples; n += together)
        for (int64_t i = 0; i < pieces; i++, add = true) {
            const direct_piece piece = direct_find_piece(area, pieces, i);
            const direct_conv_walk walk = {.samples = direct_least(together, samples - n),
                                           .rows = piece.area.rows,
                                           .pixels = piece.area.pixels,
                                           .x_sample = pass->image.sample,
                                           .x_row = area->x_row,
                                           .x_pixel = area->x_pixel,
                                           .dy_sample = pass->y_sample,
                                           .dy_row = area->y_row,
                                           .dy_block = area->y_block};

            self->loops->correlate(dw, self->panel, x + n * pass->image.sample + piece.x_at,
                                   dy + n * pass->y_sample + piece.y_at, columns, &walk, sum, add);
        }
}

/* Thread `t`'s share of the blocks of outputs and, with many channels, of inputs. */
static void direct_correlate_share(const direct *self, float *dw, const float *x, const float *dy,
                                   int64_t samples, bool add, int t, int threads)
{
    const direct_pass *pass = direct_weight_pass(self);
    const bool blocks = self->weight.blocks;
    const int64_t groups = direct_divide_up(pass->blocks, DIRECT_CONV_TOGETHER);
    const int64_t planes = blocks ? pass->image.planes : 1, steps = pass->steps / planes;
    const int64_t size = blocks ? direct_square(self) : self->loops->lanes;
    const co_range mine = co_parallel_part(groups * planes, t, threads);

    for (int64_t i = mine.begin; i < mine.end; i++) {
        const int64_t block = i / planes * DIRECT_CONV_TOGETHER, first = i % planes * steps;
        const direct_conv_sum sum = {pass->at + first, steps, blocks};

        direct_correlate_steps(self, dw + block * self->panel + first * size, x,
                               dy + block * pass->part->area.y_block, samples,
                               direct_columns(pass->blocks, block), &sum, add);
    }
}

/* dy as the image that a plane of it is. */
static direct_conv_spread direct_image_of_dy(const direct_pass *pass)
{
    static const int64_t step[2] = {1, 1};

    return (direct_conv_spread){.h = pass->to[0],
                                .w = pass->to[1],
                                .rows = pass->to[0],
                                .columns = pass->to[1],
                                .step = step,
                                .blocks = true};
}

/* Bytes of a plane of dy. */
static size_t direct_dy_plane(const direct *self)
{
    const int64_t *to = direct_weight_pass(self)->to;

    return (size_t)(to[0] * to[1] * self->loops->lanes) * self->loops->cell;
}

void direct_copy_lines(const direct *self, float *to, const void *dy, int64_t i, int64_t n)
{
    const direct_pass *pass = direct_weight_pass(self);
    direct_conv_spread how = direct_image_of_dy(pass);

    how.rows = n * how.h;
    how.sample = pass->blocks * pass->to[0] * pass->to[1] * self->loops->words;
    self->loops->lines(to, (const char *)dy + (size_t)i * direct_dy_plane(self), &how);
}

/* dy of some samples as words: its own memory, or pairs of pixels or samples. */
static const float *direct_bring_dy(const direct *self, float *to, const char *dy, int64_t samples,
                                    int threads)
{
    const direct_pass *pass = direct_weight_pass(self);
    const size_t plane = direct_dy_plane(self), sample = (size_t)pass->blocks * plane;
    const direct_conv_spread how = direct_image_of_dy(pass);
    const int64_t numbers = pass->blocks * pass->to[0] * pass->to[1] * self->loops->lanes;
    const direct_conv_spread line = {
        .h = 1, .w = numbers, .rows = 1, .columns = numbers, .step = how.step};

    if (self->loops->cell == sizeof(float))
        return (const float *)(const void *)dy;
    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < (direct_widens(self->loops) ? samples : 0); n++)
        self->loops->spread(to + n * pass->y_sample, dy + (size_t)n * sample, &line);
    if (direct_widens(self->loops))
        return to;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < (pass->image.pairs ? samples * pass->blocks : 0); i++)
        self->loops->pair(to + i * (pass->y_sample / pass->blocks), dy + (size_t)i * plane, &how);
    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < (pass->image.pairs ? 0 : samples); n += 2) {
        const char *first = dy + (size_t)n * sample;

        self->loops->join(to + n / 2 * pass->y_sample, first,
                          n + 1 < samples ? first + sample : NULL, &line);
    }
    return to;
}

void direct_find_bias(const direct *self, const co_call *call, const co_run *run, const char *dy,
                      float *sum, int threads)
{
    const int lanes = self->loops->lanes;
    const int64_t *dim = call->out[0]->shape.dim;
    const int64_t pixels = dim[2] * dim[3], blocks = self->forward.blocks;
    const size_t plane = (size_t)(pixels * lanes) * self->loops->cell;
    float *db = call->grad_param[1].data;

    memset(sum, 0, (size_t)(blocks * lanes) * sizeof(float));
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < blocks; k++)
        for (int64_t n = 0; n < dim[0]; n++)
            self->loops->add_up(sum + k * lanes, dy + (size_t)(n * blocks + k) * plane, pixels);
    for (int64_t o = 0; o < self->weight.out; o++)
        db[o] = run->accumulate ? db[o] + sum[o] : sum[o];
}

/* A few samples at a time. */
static void direct_sum_weight(const direct *self, const co_call *call, float *dw, const char *dy,
                              int threads)
{
    const direct_pass *pass = direct_weight_pass(self);
    const int64_t all = call->in[0]->shape.dim[0];
    const size_t dy_sample = (size_t)pass->blocks * direct_dy_plane(self);

    for (int64_t n = 0; n < all; n += pass->group) {
        const int64_t some = direct_least(pass->group, all - n);
        const float *x = direct_bring(self, &pass->image, direct_scratch(call, self->back_copy_at),
                                      cpu_address(&self->back_src, call), n, some, threads);
        const float *y;

        y = direct_bring_dy(self, direct_scratch(call, self->dy_at), dy + (size_t)n * dy_sample,
                            some, threads);
        CO_PARALLEL_EACH(t, threads,
                         direct_correlate_share(self, dw, x, y,
                                                direct_divide_up(some, pass->image.samples), n > 0,
                                                t, threads));
    }
}

void direct_find_weight(const direct *self, const co_call *call, const co_run *run, const char *dy,
                        int threads)
{
    const int64_t blocks = self->forward.blocks;
    float *dw = direct_scratch(call, self->gradient_at);

    if (self->loops->lines)
        direct_sum_lines(self, call, dw, dy, threads);
    else
        direct_sum_weight(self, call, dw, dy, threads);
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < blocks; k++)
        self->loops->unpack(call->grad_param[0].data, dw + k * self->panel, &self->weight, k,
                            run->accumulate);
    if (call->n_param > 1)
        direct_find_bias(self, call, run, dy, dw + blocks * self->panel, threads);
}
