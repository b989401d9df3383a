/*
 * images.cu - batches of images that are in the GPU's memory as bytes: src/data/read_sample.c and
 * src/image for each pixel of the result by itself. Each block takes a sample, whose random choices
 * its threads make first.
 */
#include "kernels/cuda/images.h"

#include "kernels/cuda/grid.h"
#include "kernels/images/places.h"

#define IMAGES_ONE     (1 << CO_IMAGE_SHIFT)
#define IMAGES_NOTHING 1e-9 /* as in image/filter.c */

/* What was drawn for the sample of a block. */
typedef struct images_choice {
    int32_t n[CO_IMAGES_MAX_STEPS][2]; /* of a crop: down, right; of a flip: whether */
    double box[4];
} images_choice;

static inline co_rng images_rng(const cuda_images *arg, uint32_t k, uint32_t sample)
{
    const co_rng rng = {arg->seed, arg->recipe->step[k].stream, arg->epoch, sample};

    return rng;
}

static inline void images_choose(images_choice *out, const cuda_images *arg, uint32_t k,
                                 uint32_t sample)
{
    const co_images_recipe *recipe = arg->recipe;
    const co_images_step *step = &recipe->step[k];
    const co_rng rng = images_rng(arg, k, sample);

    if (step->kind == CO_IMAGES_RANDOM_BOX)
        co_random_box(out->box, step, recipe->stored[0], recipe->stored[1], &rng);
    else if (step->kind == CO_IMAGES_CROP)
        co_crop_shift(out->n[k], step->n[0], &rng);
    else if (step->kind == CO_IMAGES_FLIP)
        out->n[k][0] = co_flip_happens(step->p, &rng);
}

/* ---- resampling: the pixels of a row or a column that one of the result is made of ---- */

typedef struct images_taps {
    double center, inverse, sum;
    int32_t first, end;
} images_taps;

static inline double images_triangle(const images_taps *t, int32_t i)
{
    const double at = fabs(((double)i - t->center + 0.5) * t->inverse);

    return at < 1.0 ? 1.0 - at : 0.0;
}

/* Of result i among n, from `length` pixels at `start` of a side of `size`; in single precision, as
   Pillow has its boxes. */
static inline images_taps images_find(double start, double length, int32_t size, int32_t n,
                                      int32_t i)
{
    const float low = (float)start, high = (float)(start + length);
    const double scale = (double)(high - low) / (double)n, support = scale > 1.0 ? scale : 1.0;
    images_taps t = {(double)low + ((double)i + 0.5) * scale, 1.0 / support, 0, 0, 0};

    t.first = (int32_t)(t.center - support + 0.5);
    t.end = (int32_t)(t.center + support + 0.5);
    t.first = t.first < 0 ? 0 : t.first;
    t.end = t.end > size ? size : t.end;
    while (t.end > t.first + 1 && images_triangle(&t, t.end - 1) < IMAGES_NOTHING)
        t.end--;
    for (int32_t k = t.first; k < t.end; k++)
        t.sum += images_triangle(&t, k);
    return t;
}

static inline int32_t images_weight(const images_taps *t, int32_t k)
{
    const double weight = images_triangle(t, k);

    return (int32_t)(uint32_t)(0.5 + (t->sum > 0 ? weight / t->sum : weight) * IMAGES_ONE);
}

static inline int32_t images_round(int32_t sum)
{
    sum >>= CO_IMAGE_SHIFT;
    return sum > 255 ? 255 : sum;
}

static inline int32_t images_across(const uint8_t *row, const images_taps *t)
{
    int32_t sum = IMAGES_ONE / 2;

    for (int32_t k = t->first; k < t->end; k++)
        sum += images_weight(t, k) * row[k];
    return images_round(sum);
}

static inline int32_t images_resampled(const uint8_t *plane, const co_images_recipe *r,
                                       const double *box, int64_t y, int64_t x)
{
    const images_taps down = images_find(box[1], box[3], r->stored[0], r->frame[0], (int32_t)y);
    const images_taps right = images_find(box[0], box[2], r->stored[1], r->frame[1], (int32_t)x);
    int32_t sum = IMAGES_ONE / 2;

    for (int32_t k = down.first; k < down.end; k++)
        sum += images_weight(&down, k) * images_across(plane + (int64_t)k * r->stored[1], &right);
    return images_round(sum);
}

/* ---- the result ---- */

/* The byte at (y, x) of the frame, after all steps on bytes, which are undone from the last one on.
 */
static inline int32_t images_byte(const uint8_t *plane, const co_images_recipe *r,
                                  const images_choice *choice, int64_t y, int64_t x)
{
    for (int32_t k = r->floats; k-- > 0;) {
        const co_images_step *step = &r->step[k];

        if (step->kind == CO_IMAGES_FLIP && choice->n[k][0])
            x = r->frame[1] - 1 - x;
        if (step->kind != CO_IMAGES_CROP)
            continue;
        y = co_crop_source(step->n[1], y + choice->n[k][0], r->frame[0]);
        x = co_crop_source(step->n[1], x + choice->n[k][1], r->frame[1]);
        if (y < 0 || x < 0)
            return 0;
    }
    if (r->boxed)
        return images_resampled(plane, r, choice->box, y, x);
    return plane[y * r->stored[1] + x];
}

/* Element e of the sample `image`. */
static inline float images_value(const cuda_images *arg, const uint8_t *image,
                                 const images_choice *choice, int64_t e)
{
    const co_images_recipe *r = arg->recipe;
    const int64_t plane = (int64_t)r->to[0] * r->to[1], c = e / plane;
    const int64_t y = e % plane / r->to[1] - r->at[0], x = e % r->to[1] - r->at[1];
    int32_t byte = 0;

    if (y >= 0 && y < r->frame[0] && x >= 0 && x < r->frame[1])
        byte = images_byte(image + c * r->stored[0] * r->stored[1], r, choice, y, x);
    return arg->table[c * 256 + byte];
}

static inline void images_cut(int64_t cut[4], const cuda_images *arg, uint32_t k, int32_t hole,
                              uint32_t sample)
{
    const co_images_recipe *r = arg->recipe;
    const co_rng rng = images_rng(arg, k, sample);
    uint32_t word[4];

    co_rng_philox(word, &rng, (uint32_t)hole);
    for (int i = 0; i < 2; i++)
        co_cutout_span(cut + 2 * i, co_augment_below(word[i], r->to[i]), r->step[k].n[0], r->to[i]);
}

/* `cut` is the block's: rows, then columns. */
INLINE void images_cut_out(float *out, int64_t *cut, const cuda_images *arg, uint32_t k,
                           int32_t hole, uint32_t sample)
{
    const co_images_recipe *r = arg->recipe;
    const int64_t plane = (int64_t)r->to[0] * r->to[1];

    PHASE
    {
        if (THREAD == 0)
            images_cut(cut, arg, k, hole, sample);
    }
    PHASE
    {
        const int64_t width = cut[3] - cut[2], n = (cut[1] - cut[0]) * width;

        for (int64_t e = THREAD; e < r->channels * n; e += THREADS)
            out[e / n * plane + (cut[0] + e % n / width) * r->to[1] + cut[2] + e % width] = 0;
    }
}

KERNEL(images_draw, cuda_images)
{
    SHARED images_choice choice;
    SHARED int64_t cut[4];
    const co_images_recipe *r = arg.recipe;
    const int64_t plane = (int64_t)r->to[0] * r->to[1], size = r->channels * plane;
    const int64_t stored = (int64_t)r->channels * r->stored[0] * r->stored[1];

    for (uint32_t i = BLOCK; i < arg.n; i += BLOCKS) {
        const uint32_t sample = arg.sample[i];
        float *out = arg.out + (int64_t)i * size;

        PHASE
        {
            if (THREAD < 4)
                choice.box[THREAD] = r->box[THREAD];
        }
        PHASE
        {
            if (THREAD < (uint32_t)r->floats)
                images_choose(&choice, &arg, THREAD, sample);
        }
        PHASE
        {
            for (int64_t e = THREAD; e < size; e += THREADS)
                out[e] = images_value(&arg, arg.pixels + sample * stored, &choice, e);
            if (THREAD == 0 && arg.out_label)
                arg.out_label[i] = arg.label[sample];
        }
        for (int32_t k = r->floats; k < r->steps; k++)
            for (int32_t hole = 0; hole < r->step[k].n[1]; hole++)
                images_cut_out(out, cut, &arg, (uint32_t)k, hole, sample);
    }
}
