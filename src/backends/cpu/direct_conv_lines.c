/*
 * direct_conv_lines.c - the gradient of the weight by loops that have `lines`: of tiles, which
 * multiply so fast that copies of images must not leave the second-level cache before they are
 * read.
 *
 * One side, x or dy, is held: copies of its blocks of channels of some samples stay in that cache
 * while the other side's blocks come, each copied right before it meets all that is held. With
 * few weights the samples of a turn are as many as fit. Many weights would be read and written once
 * for each turn; then all samples take part, and the blocks that are held change instead.
 */
#include "backends/cpu/direct_conv.h"
#include "core/parallel.h"

#define LINES_WORDS        (5 << 16) /* of copies: most of a second-level cache */
#define LINES_WEIGHT_WORDS (1 << 17) /* sums that stay there, too */

/* Without neighbours of a pixel to read, samples follow each other, and no line is filled up with
   zeros but the last. */
static bool lines_join(const direct *self)
{
    return self->weight.taps == 1;
}

/* Columns of a kernel whose rows read the same copies of x: of neighbouring rows. */
static int64_t lines_columns(const direct *self)
{
    const direct_image *image = &self->pairs.image;

    return image->phases[0] == 1 ? image->phases[1] : 0;
}

/* Words from a sample's copies of a block of x or dy to the next one's. */
static int64_t lines_step(const direct *self, bool x)
{
    const direct_pass *pass = &self->pairs;
    const direct_conv_area *area = &pass->part->area;

    if (lines_join(self))
        return area->rows * area->pixels * area->y_pixel;
    return x ? pass->image.plane : area->y_block;
}

/* Words of n samples' copies of a block. */
static int64_t lines_words(const direct *self, bool x, int64_t n)
{
    const int64_t all = n * lines_step(self, x);
    const int64_t line = DIRECT_CONV_AFTER * self->pairs.part->area.y_pixel;

    return lines_join(self) ? direct_divide_up(all, line) * line + x * line : all;
}

static int64_t lines_blocks(const direct_pass *pass, bool x)
{
    return x ? pass->image.planes : pass->blocks;
}

/* How many of `each` words, from 1 to `most`. */
static int64_t lines_fit(int64_t words, int64_t each, int64_t most)
{
    return words < each ? 1 : direct_least(words / each, most);
}

void direct_plan_lines(direct *self, const co_call *call)
{
    const direct_pass *pass = &self->pairs;
    const int64_t step[2] = {lines_step(self, false), lines_step(self, true)};
    const int64_t x = step[true] * pass->image.planes, dy = step[false] * pass->blocks;
    const bool holds_x = x < dy;
    const int64_t all = call->in[0]->shape.dim[0], weight = pass->blocks * self->panel;
    const int64_t come = direct_least(cpu_threads(call), lines_blocks(pass, !holds_x));
    const int64_t coming = come * step[!holds_x];
    const int64_t fit = lines_fit(LINES_WORDS, (holds_x ? x : dy) + coming, all);
    const int64_t turns = direct_divide_up(all, fit), blocks = lines_blocks(pass, holds_x);
    const int64_t held = lines_fit(LINES_WORDS - all * coming, all * step[holds_x], blocks);
    const int64_t changes = direct_divide_up(blocks, held);

    self->lines = (direct_lines){
        .holds_x = holds_x, .samples = direct_divide_up(all, turns), .held = blocks, .come = come};
    if (turns > 1 && weight > LINES_WEIGHT_WORDS &&
        (turns - 1) * 2 * weight > (changes - 1) * all * (holds_x ? dy : x)) {
        self->lines.samples = all;
        self->lines.held = held;
    } else if (fit == 1) {
        self->lines.held = lines_fit(LINES_WORDS - coming, step[holds_x], blocks);
    }
}

int64_t direct_lines_size(const direct *self, bool x)
{
    const direct_lines *lines = &self->lines;

    return (x == lines->holds_x ? lines->held : lines->come) * lines_words(self, x, lines->samples);
}

/* What is the same in all turns. */
typedef struct lines_run {
    const direct *self;
    const char *x, *dy;
    float *dw;
    float *copies[2]; /* of dy and x */
    int64_t first, n; /* samples of this turn */
    int threads;
} lines_run;

/* Copies of n samples of blocks [begin, end) of x. */
static void lines_bring_x(const lines_run *run, co_range blocks)
{
    const direct *self = run->self;
    const int64_t n = run->n, step = lines_step(self, true), words = lines_words(self, true, n);
    const int64_t copies = (blocks.end - blocks.begin) * n;
    const int threads = run->threads;

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < copies; i++) {
        const int64_t block = i / n, sample = i % n;
        direct_image image = self->pairs.image;

        if (lines_join(self) && sample + 1 < n)
            image.after = 0;
        direct_copy_plane(self, &image, run->copies[true] + block * words + sample * step, run->x,
                          (run->first + sample) * image.planes + blocks.begin + block);
    }
}

/* Of dy, in as many goes as samples are apart. */
static void lines_bring_dy(const lines_run *run, co_range blocks)
{
    const direct *self = run->self;
    const int64_t n = run->n, each = lines_join(self) ? n : 1, goes = n / each;
    const int64_t words = lines_words(self, false, n), step = lines_step(self, false);
    const int64_t copies = (blocks.end - blocks.begin) * goes;
    const int threads = run->threads;

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < copies; i++) {
        const int64_t block = i / goes, sample = i % goes;

        direct_copy_lines(self, run->copies[false] + block * words + sample * step, run->dy,
                          (run->first + sample) * self->pairs.blocks + blocks.begin + block, each);
    }
}

static void lines_bring(const lines_run *run, bool x, co_range blocks)
{
    if (x)
        lines_bring_x(run, blocks);
    else
        lines_bring_dy(run, blocks);
}

/* What blocks that have come and blocks that are held give, item by item. */
static void lines_meet(const lines_run *run, co_range held, co_range come, int t)
{
    const direct *self = run->self;
    const direct_pass *pass = &self->pairs;
    const direct_conv_area *area = &pass->part->area;
    const int64_t taps = self->weight.taps, n = held.end - held.begin;
    const co_range mine = co_parallel_part((come.end - come.begin) * n, t, run->threads);
    const direct_conv_sum sum = {pass->at, taps, true};
    const bool joined = lines_join(self);
    const int64_t x_words = lines_words(self, true, run->n);
    const int64_t dy_words = lines_words(self, false, run->n);
    const direct_conv_walk walk = {.samples = joined ? 1 : run->n,
                                   .rows = 1,
                                   .pixels = area->rows * area->pixels * (joined ? run->n : 1),
                                   .x_sample = pass->image.plane,
                                   .x_row = area->x_row,
                                   .x_pixel = area->x_pixel,
                                   .dy_sample = area->y_block,
                                   .dy_row = area->y_row,
                                   .dy_block = area->y_block,
                                   .columns = lines_columns(self)};

    for (int64_t i = mine.begin; i < mine.end; i++) {
        const bool holds_x = self->lines.holds_x;
        const int64_t x = holds_x ? i % n : i / n, dy = holds_x ? i / n : i % n;
        const int64_t in = x + (holds_x ? held : come).begin;
        const int64_t out = dy + (holds_x ? come : held).begin;
        self->loops->correlate(run->dw + out * self->panel + in * taps * direct_square(self),
                               self->panel, run->copies[true] + x * x_words,
                               run->copies[false] + dy * dy_words, 1, &walk, &sum, run->first > 0);
    }
}

static void lines_turn(const lines_run *run)
{
    const direct_lines *lines = &run->self->lines;
    const direct_pass *pass = &run->self->pairs;
    const int64_t all = lines_blocks(pass, lines->holds_x);
    const int64_t others = lines_blocks(pass, !lines->holds_x);

    for (int64_t h = 0; h < all; h += lines->held) {
        const co_range held = {h, direct_least(h + lines->held, all)};

        lines_bring(run, lines->holds_x, held);
        for (int64_t c = 0; c < others; c += lines->come) {
            const co_range come = {c, direct_least(c + lines->come, others)};

            lines_bring(run, !lines->holds_x, come);
            CO_PARALLEL_EACH(t, run->threads, lines_meet(run, held, come, t));
        }
    }
}

void direct_sum_lines(const direct *self, const co_call *call, float *dw, const char *dy,
                      int threads)
{
    const int64_t all = call->in[0]->shape.dim[0];
    lines_run run = {
        .self = self,
        .x = cpu_address(&self->back_src, call),
        .dy = dy,
        .dw = dw,
        .copies = {direct_scratch(call, self->dy_at), direct_scratch(call, self->back_copy_at)},
        .threads = threads};

    for (; run.first < all; run.first += run.n) {
        run.n = direct_least(self->lines.samples, all - run.first);
        lines_turn(&run);
    }
}
