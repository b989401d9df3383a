/*
 * filter.c - which source pixels a result is computed from, and with what weights.
 *
 * A triangle as wide as the reduction, in Pillow's fixed-point arithmetic, bit for bit. Enlarging,
 * the usual case for crops of small images, has two taps and a vectorizable loop of its own.
 */
#include <math.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "image/internal.h"

/* Smaller weights are 0 in fixed point, whatever the sum. */
#define FILTER_NOTHING 1e-9
#define FILTER_ONE     (1 << CO_IMAGE_SHIFT)
#define FILTER_HALF    ((1 << CO_IMAGE_HALF) - 1)

/* One direction of a box: from `start` on, of `size` source pixels, to `n` results. */
typedef struct filter_line {
    double start, scale, support; /* source pixels per result, half the filter's width */
    double inverse;               /* 1 / support */
    int32_t size, n;
    bool backwards; /* results in reverse order */
} filter_line;

/* Source pixels of each result; (n) each. */
typedef struct filter_reach {
    int32_t *first, *taps;
    uint32_t *weight[2]; /* only if two taps are enough */
} filter_reach;

static double filter_triangle(const filter_line *line, double center, int32_t i)
{
    const double at = fabs(((double)i - center + 0.5) * line->inverse);

    return at < 1.0 ? 1.0 - at : 0.0;
}

static double filter_center(const filter_line *line, int32_t i)
{
    return line->start + ((double)(line->backwards ? line->n - 1 - i : i) + 0.5) * line->scale;
}

/* Find the source pixels of each result; false if one has none. */
static bool filter_find(const filter_reach *r, const filter_line *line)
{
    for (int32_t i = 0; i < line->n; i++) {
        const double center = filter_center(line, i);
        int32_t first = (int32_t)(center - line->support + 0.5);
        int32_t end = (int32_t)(center + line->support + 0.5);

        if (first < 0)
            first = 0;
        if (end > line->size)
            end = line->size;
        while (end > first + 1 && filter_triangle(line, center, end - 1) < FILTER_NOTHING)
            end--;
        if (end <= first)
            return false;
        r->first[i] = first;
        r->taps[i] = end - first;
    }
    return true;
}

/* The same for a triangle that is two pixels wide, and with the weights; without branches. */
static bool filter_find_two(const filter_reach *r, const filter_line *line)
{
    const double start = line->start, scale = line->scale;
    const int32_t n = line->n, size = line->size, from = line->backwards ? n - 1 : 0;
    const int32_t step = line->backwards ? -1 : 1;
    int32_t *restrict first = r->first, *restrict taps = r->taps;
    uint32_t *restrict weight0 = r->weight[0], *restrict weight1 = r->weight[1];
    int32_t least = 1;

    for (int32_t i = 0; i < n; i++) {
        const double center = start + ((double)(from + step * i) + 0.5) * scale;
        const int32_t low = (int32_t)(center - 1.0 + 0.5), a = low < 0 ? 0 : low;
        const int32_t high = (int32_t)(center + 1.0 + 0.5), end = high > size ? size : high;
        const double at0 = fabs((double)a - center + 0.5),
                     at1 = fabs((double)(a + 1) - center + 0.5);
        const double w0 = at0 < 1.0 ? 1.0 - at0 : 0.0, w = at1 < 1.0 ? 1.0 - at1 : 0.0;
        const double w1 = a + 1 < end && w >= FILTER_NOTHING ? w : 0.0;
        const double sum = w0 + w1;

        least = end - a < least ? end - a : least;
        first[i] = a;
        taps[i] = w1 > 0.0 ? 2 : 1;
        weight0[i] = (uint32_t)(int32_t)(0.5 + w0 / sum * FILTER_ONE);
        weight1[i] = (uint32_t)(int32_t)(0.5 + w1 / sum * FILTER_ONE);
    }
    return least > 0;
}

/* Set low, end and pairs. */
static void filter_measure(co_image_filter *f, const filter_reach *r)
{
    int32_t most = 0, low = INT32_MAX, end = 0;

    for (size_t i = 0; i < f->n; i++) {
        most = r->taps[i] > most ? r->taps[i] : most;
        low = r->first[i] < low ? r->first[i] : low;
        end = r->first[i] + r->taps[i] > end ? r->first[i] + r->taps[i] : end;
    }
    f->low = (size_t)low;
    f->end = (size_t)end;
    f->pairs = ((size_t)most + 1) / 2;
}

/* Results with fewer taps than others, at an end, use the last taps of their pairs: so no tap is
   beyond the source, except one if their number is odd. Returns how many unused taps precede. */
static size_t filter_place(co_image_filter *f, const filter_reach *r, size_t i)
{
    const size_t span = f->end - f->low, most = 2 * f->pairs, limit = span > most ? span - most : 0;
    const size_t from = (size_t)r->first[i] - f->low, skip = from > limit ? from - limit : 0;

    f->first[i] = (uint32_t)(from - skip);
    return skip;
}

static void filter_put(co_image_filter *f, size_t i, size_t tap, uint32_t weight)
{
    const size_t at = (tap / 2 * f->room + i) * CO_IMAGE_PAIR + tap % 2;

    f->high[at] = (int16_t)(weight >> CO_IMAGE_HALF);
    f->low_bits[at] = (int16_t)(weight & FILTER_HALF);
}

static void filter_weigh(co_image_filter *f, const filter_reach *r, const filter_line *line)
{
    memset(f->high, 0, f->pairs * f->room * CO_IMAGE_PAIR * sizeof(*f->high));
    memset(f->low_bits, 0, f->pairs * f->room * CO_IMAGE_PAIR * sizeof(*f->low_bits));
    for (size_t i = 0; i < f->n; i++) {
        const double center = filter_center(line, (int32_t)i);
        const size_t skip = filter_place(f, r, i);
        double sum = 0;

        for (int32_t k = 0; k < r->taps[i]; k++)
            sum += filter_triangle(line, center, r->first[i] + k);
        for (int32_t k = 0; k < r->taps[i]; k++) {
            const double weight = filter_triangle(line, center, r->first[i] + k);

            filter_put(f, i, skip + (size_t)k,
                       (uint32_t)(0.5 + (sum > 0 ? weight / sum : weight) * FILTER_ONE));
        }
    }
}

static void filter_weigh_two(co_image_filter *f, const filter_reach *r)
{
    const uint32_t low = (uint32_t)f->low, span = (uint32_t)(f->end - f->low);
    const uint32_t limit = span > 2 ? span - 2 : 0;
    const uint32_t *restrict weight0 = r->weight[0], *restrict weight1 = r->weight[1];
    int16_t *restrict high = f->high, *restrict low_bits = f->low_bits;

    for (size_t i = 0; i < f->n; i++) {
        const uint32_t from = (uint32_t)r->first[i] - low;
        const bool skip = from > limit;
        const uint32_t w0 = skip ? 0 : weight0[i], w1 = skip ? weight0[i] : weight1[i];

        f->first[i] = skip ? limit : from;
        high[2 * i] = (int16_t)(w0 >> CO_IMAGE_HALF);
        high[2 * i + 1] = (int16_t)(w1 >> CO_IMAGE_HALF);
        low_bits[2 * i] = (int16_t)(w0 & FILTER_HALF);
        low_bits[2 * i + 1] = (int16_t)(w1 & FILTER_HALF);
    }
    memset(high + 2 * f->n, 0, (f->room - f->n) * CO_IMAGE_PAIR * sizeof(*high));
    memset(low_bits + 2 * f->n, 0, (f->room - f->n) * CO_IMAGE_PAIR * sizeof(*low_bits));
}

/* Set base, taps and spread, for loops over CO_IMAGE_BLOCK results. `first` is monotonic. */
static void filter_spread(co_image_filter *f)
{
    for (size_t i = f->n; i < f->room; i++) /* padding, of weight 0 */
        f->first[i] = f->first[f->n - 1];
    f->spread = 0;
    for (size_t b = 0; b < f->room / CO_IMAGE_BLOCK; b++) {
        const uint32_t *first = f->first + b * CO_IMAGE_BLOCK;
        const uint32_t start = first[0], end = first[CO_IMAGE_BLOCK - 1];
        const uint32_t least = start < end ? start : end, spread = start + end - 2 * least;

        f->base[b] = least;
        f->spread = spread > f->spread ? spread : f->spread;
        for (size_t i = 0; i < CO_IMAGE_BLOCK; i++) {
            const uint32_t offset = first[i] - least;

            f->taps[b * CO_IMAGE_BLOCK + i] = offset | (offset + 1) << 16;
        }
    }
}

/* Allocate the arrays once `pairs` is known. */
static co_status filter_make_room(co_image_filter *f)
{
    const size_t blocks = f->room / CO_IMAGE_BLOCK;
    size_t weights, bytes;

    if (co_mul_size(&weights, f->pairs * CO_IMAGE_PAIR, f->room) != 0 ||
        co_mul_size(&bytes, weights, 2 * sizeof(int16_t)) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    CO_TRY(co_image_reserve(&f->block, bytes + (2 * f->room + blocks) * sizeof(uint32_t), 1));
    f->high = f->block.at;
    f->low_bits = f->high + weights;
    f->first = (uint32_t *)(void *)(f->low_bits + weights);
    f->taps = f->first + f->room;
    f->base = f->taps + f->room;
    return CO_OK;
}

static co_status filter_fill(co_image_filter *f, const filter_line *line)
{
    const bool two = line->support <= 1.0;
    filter_reach reach;

    CO_TRY(co_image_reserve(&f->work, 4 * f->n, sizeof(uint32_t)));
    reach.first = f->work.at;
    reach.taps = reach.first + f->n;
    reach.weight[0] = (uint32_t *)(reach.taps + f->n);
    reach.weight[1] = reach.weight[0] + f->n;
    if (!(two ? filter_find_two(&reach, line) : filter_find(&reach, line)))
        return co_fail(CO_E_USAGE, "image: a box without pixels");
    filter_measure(f, &reach);
    CO_TRY(filter_make_room(f));
    if (two)
        filter_weigh_two(f, &reach);
    else
        filter_weigh(f, &reach, line);
    filter_spread(f);
    return CO_OK;
}

co_status co_image_filter_make(co_image_filter *f, double start, double length, size_t size,
                               int64_t n, bool backwards)
{
    /* Pillow's boxes have single precision. */
    const float low = (float)start, end = (float)(start + length);
    filter_line line = {
        .start = (double)low, .size = (int32_t)size, .n = (int32_t)n, .backwards = backwards};

    if (!(start >= 0 && length > 0 && start + length <= (double)size * (1 + 1e-9)) || n < 1 ||
        n > INT32_MAX || size > INT32_MAX)
        return co_fail(CO_E_USAGE, "image: a box that is not within the image");
    start = (double)low;
    length = (double)(end - low); /* after rounding it may exceed the image by less than a pixel */
    f->n = (size_t)n;
    f->room = (f->n + CO_IMAGE_STEP - 1) / CO_IMAGE_STEP * CO_IMAGE_STEP;
    f->copy = length == (double)n && start == floor(start) && !backwards;
    if (f->copy) {
        f->low = (size_t)start;
        f->end = f->low + f->n;
        f->spread = 0;
        return CO_OK;
    }
    line.scale = length / (double)n;
    line.support = line.scale > 1.0 ? line.scale : 1.0;
    line.inverse = 1.0 / line.support;
    return filter_fill(f, &line);
}

void co_image_filter_close(co_image_filter *f)
{
    co_free(f->block.at);
    co_free(f->work.at);
}
