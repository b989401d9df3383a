/*
 * direct_conv_image.c - the passes of a convolution that give images, by the loops of
 * kernels/direct_conv: how their work is cut for the caches and shared by threads.
 */
#include "backends/cpu/direct_conv.h"
#include "core/isa.h"
#include "core/parallel.h"

/* Words of an image that stay in a second-level cache beside weights: of 1 MiB or more where there
   is AVX-512, else of half of that or less. */
#define DIRECT_CHUNK_WORDS  (1 << 17)
#define DIRECT_SMALL_CHUNK  (1 << 15)
#define DIRECT_LEAST_PIXELS 28
#define DIRECT_COLUMN_WORDS (1 << 16)

/* A piece of the results of a sample, and the first of the blocks that are computed at once. */
typedef struct direct_turn {
    int64_t sample, piece, block;
} direct_turn;

/* The i-th: images that fit into a second-level cache together stay there while all blocks of
   weights pass, and each of these is read once for all of the images. */
static direct_turn direct_find_turn(const direct_pass *pass, int64_t i, int64_t samples,
                                    int64_t pieces, int64_t words, int64_t columns)
{
    const int64_t groups = direct_divide_up(pass->blocks, columns);
    const int64_t fit = pieces > 1 ? 1 : words / pass->image.sample;
    const int64_t most = fit > 1 ? fit : 1, first = i / (most * groups) * most;
    const int64_t together = direct_least(most, samples * pieces - first);
    const int64_t rest = i % (most * groups), image = first + rest % together;

    return (direct_turn){
        .sample = image / pieces, .piece = image % pieces, .block = rest / together * columns};
}

/* Blocks of results that are computed at once: as many as loops can whose weights of `panel` words
   each stay in that cache, but a few pieces of work for each thread. */
static int64_t direct_find_columns(const direct_run *run, int64_t panel, int64_t images)
{
    const int64_t blocks = run->pass->blocks, share = images * blocks / (4 * run->threads);
    int64_t most = direct_least(run->self->loops->together, blocks);

    if (panel > 0)
        most = direct_least(most, DIRECT_COLUMN_WORDS / panel);
    most = direct_least(most, share);
    return most > DIRECT_CONV_TOGETHER ? most : DIRECT_CONV_TOGETHER;
}

/* Whether the first blocks of results read pixels that follow each other in a tensor: by a stride,
   most of what is fetched is not read. */
static bool direct_fetches(const direct_pass *pass, const direct_part *part)
{
    return !pass->image.copied && part->area.x_pixel == pass->image.width;
}

/* Thread `t`'s share of some samples of a part; x has their images. */
static void direct_multiply_share(const direct_run *run, const direct_part *part, const float *x,
                                  char *y, int64_t samples, int t)
{
    const direct_pass *pass = run->pass;
    const direct_conv_loops *loops = run->self->loops;
    const int64_t words = co_isa_has(CO_ISA_AVX512) ? DIRECT_CHUNK_WORDS : DIRECT_SMALL_CHUNK;
    const int64_t most = words / (pass->image.planes * pass->image.width);
    const int64_t pieces =
        direct_count_pieces(&part->area, most > DIRECT_LEAST_PIXELS ? most : DIRECT_LEAST_PIXELS);
    const int64_t panel =
        direct_words(run->self, part->sum.blocks ? part->sum.steps * direct_square(run->self)
                                                 : run->self->panel);
    const int64_t columns = direct_find_columns(run, panel, samples * pieces);
    const int64_t groups = direct_divide_up(pass->blocks, columns);
    const co_range mine = co_parallel_part(samples * pieces * groups, t, run->threads);

    for (int64_t i = mine.begin; i < mine.end; i++) {
        const direct_turn turn = direct_find_turn(pass, i, samples, pieces, words, columns);
        direct_piece piece = direct_find_piece(&part->area, pieces, turn.piece);
        const int64_t at = turn.sample * pass->y_sample + part->y_at +
                           turn.block * piece.area.y_block + piece.y_at;

        piece.area.fetch = turn.block == 0 && direct_fetches(pass, part);
        piece.area.past = direct_goes_past(run->self, run->n * pass->y_sample);
        loops->multiply(
            y + (size_t)at * loops->cell, x + turn.sample * pass->image.sample + piece.x_at,
            run->weight + part->w_at + turn.block * panel, panel,
            run->bias ? run->bias + turn.block * loops->lanes : NULL,
            (int)direct_least(columns, pass->blocks - turn.block), &piece.area, &part->sum);
    }
}

static void direct_multiply_part(const direct_run *run, const direct_part *part, const float *x,
                                 char *y, int64_t samples)
{
    CO_PARALLEL_EACH(t, run->threads, direct_multiply_share(run, part, x, y, samples, t));
}

void direct_multiply(const direct_run *run)
{
    const direct_pass *pass = run->pass;

    for (int64_t n = 0; n < run->n; n += pass->group) {
        const int64_t some = direct_least(pass->group, run->n - n);
        const float *x =
            direct_bring(run->self, &pass->image, run->copies, run->x, n, some, run->threads);

        for (int64_t p = 0; p < pass->parts; p++)
            direct_multiply_part(run, &pass->part[p], x,
                                 run->y + (size_t)(n * pass->y_sample) * run->self->loops->cell,
                                 some);
    }
}
