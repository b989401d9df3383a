/*
 * images.cu - batches of images that are in the GPU's memory as bytes: src/data/read_sample.c and
 * src/image for each pixel of the result by itself. Each block takes a sample, whose random choices
 * its threads make first.
 */
#include "kernels/cuda/images.h"

#include "kernels/cuda/grid.h"
#include "kernels/images/colors.h"
#include "kernels/images/places.h"

#define IMAGES_ONE     (1 << CO_IMAGE_SHIFT)
#define IMAGES_NOTHING 1e-9 /* as in image/filter.c */

/* What was drawn for the sample of a block. */
typedef struct images_choice {
    int32_t n[CO_IMAGES_MAX_STEPS][2]; /* of a crop: down, right; of a flip: whether */
    double box[4];
    co_jitter jitter[CO_IMAGES_MAX_STEPS];
    float more[CO_IMAGES_MAX_STEPS]; /* of contrast, which is measured */
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
    else if (step->kind == CO_IMAGES_JITTER)
        co_jitter_choose(&out->jitter[k], step, &rng);
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

/* A pixel of the frame, followed back through steps on bytes. */
typedef struct images_place {
    int64_t y, x;  /* before the first of them; below 0: nowhere */
    int32_t since; /* the step that has made it a zero; 0 where it comes from the image */
} images_place;

/* Through the first `steps` of them, from the last one on. */
static inline images_place images_trace(const co_images_recipe *r, const images_choice *choice,
                                        int32_t steps, int64_t y, int64_t x)
{
    images_place at = {y, x, 0};

    for (int32_t k = steps; k-- > 0;) {
        const co_images_step *step = &r->step[k];

        if (step->kind == CO_IMAGES_FLIP && choice->n[k][0])
            at.x = r->frame[1] - 1 - at.x;
        if (step->kind != CO_IMAGES_CROP)
            continue;
        at.y = co_crop_source(step->n[1], at.y + choice->n[k][0], r->frame[0]);
        at.x = co_crop_source(step->n[1], at.x + choice->n[k][1], r->frame[1]);
        at.since = k;
        if (at.y < 0 || at.x < 0)
            return at;
    }
    at.since = 0;
    return at;
}

/* Of one channel, without changes of colours. */
static inline uint8_t images_byte(const uint8_t *plane, const co_images_recipe *r,
                                  const images_choice *choice, const images_place *at)
{
    if (at->y < 0 || at->x < 0)
        return 0;
    if (r->boxed)
        return (uint8_t)images_resampled(plane, r, choice->box, at->y, at->x);
    return plane[at->y * r->stored[1] + at->x];
}

/* The changes [0, end) of step k. An image without colours has its pixel in the first channel. */
static inline void images_jitter(uint8_t pixel[3], const images_choice *choice, bool colored,
                                 int32_t k, int32_t end)
{
    const co_jitter *jitter = &choice->jitter[k];

    for (int32_t i = 0; i < end; i++) {
        const int32_t kind = jitter->kind[i];
        const float factor = jitter->factor[i];
        const float more = kind == CO_JITTER_CONTRAST ? choice->more[k] : 0;
        const uint8_t grey = co_color_grey(pixel[0], pixel[1], pixel[2]);
        const co_color_hsv hsv = co_color_turned(pixel[0], pixel[1], pixel[2], factor);

        for (int32_t c = 0; c < 3; c++)
            if (kind == CO_JITTER_BRIGHTNESS || kind == CO_JITTER_CONTRAST)
                pixel[c] = co_color_scaled(pixel[c], factor, more);
            else if (kind == CO_JITTER_SATURATION && colored)
                pixel[c] = co_color_blended(pixel[c], grey, factor, 1.0f - factor);
            else if (colored)
                pixel[c] = co_color_channel(&hsv, (float)(5 - 2 * c));
    }
}

/* All channels, of which there are at most 3, after the first `steps` on bytes. */
static inline void images_pixel(uint8_t pixel[3], const uint8_t *image, const co_images_recipe *r,
                                const images_choice *choice, int32_t steps, int64_t y, int64_t x)
{
    const images_place at = images_trace(r, choice, steps, y, x);

    for (int32_t c = 0; c < 3; c++)
        pixel[c] = c < r->channels ? images_byte(image + (int64_t)c * r->stored[0] * r->stored[1],
                                                 r, choice, &at)
                                   : (uint8_t)0;
    for (int32_t k = at.since; k < steps; k++)
        if (r->step[k].kind == CO_IMAGES_JITTER)
            images_jitter(pixel, choice, r->channels == 3, k, choice->jitter[k].n);
}

/* Which change of step k is contrast; -1: none. */
static inline int32_t images_find_contrast(const images_choice *choice, int32_t k)
{
    for (int32_t i = 0; i < choice->jitter[k].n; i++)
        if (choice->jitter[k].kind[i] == CO_JITTER_CONTRAST)
            return i;
    return -1;
}

/* What contrast adds in step k: from the mean of the frame just before it. `sum` (CUDA_BLOCK) and
   `choice` are the block's. */
INLINE void images_measure(images_choice *choice, uint64_t *sum, const co_images_recipe *r,
                           const uint8_t *image, int32_t k)
{
    const int32_t at = images_find_contrast(choice, k);
    const int64_t n = (int64_t)r->frame[0] * r->frame[1];

    if (at < 0)
        return;
    PHASE {
        uint64_t own = 0;

        for (int64_t e = THREAD; e < n; e += THREADS) {
            uint8_t pixel[3];

            images_pixel(pixel, image, r, choice, k, e / r->frame[1], e % r->frame[1]);
            images_jitter(pixel, choice, r->channels == 3, k, at);
            own += r->channels == 3 ? co_color_grey(pixel[0], pixel[1], pixel[2]) : pixel[0];
        }
        sum[THREAD] = own;
    }
    PHASE {
        uint64_t all = 0;

        for (uint32_t t = 0; t < THREADS && THREAD == 0; t++)
            all += sum[t];
        if (THREAD == 0)
            choice->more[k] =
                co_color_contrast_more(choice->jitter[k].factor[at], all, (uint64_t)n);
    }
}

/* A thread's pixels of a sample whose colours change. */
static inline void images_draw_pixels(float *out, const cuda_images *arg, const uint8_t *image,
                                      const images_choice *choice, uint32_t first, uint32_t each)
{
    const co_images_recipe *r = arg->recipe;
    const int64_t plane = (int64_t)r->to[0] * r->to[1];

    for (int64_t e = first; e < plane; e += each) {
        const int64_t y = e / r->to[1] - r->at[0], x = e % r->to[1] - r->at[1];
        uint8_t pixel[3] = {0, 0, 0};

        if (y >= 0 && y < r->frame[0] && x >= 0 && x < r->frame[1])
            images_pixel(pixel, image, r, choice, r->floats, y, x);
        for (int32_t c = 0; c < r->channels; c++)
            out[c * plane + e] = arg->table[c * 256 + pixel[c]];
    }
}

/* Element e of the sample `image`, whose colours stay. */
static inline float images_value(const cuda_images *arg, const uint8_t *image,
                                 const images_choice *choice, int64_t e)
{
    const co_images_recipe *r = arg->recipe;
    const int64_t plane = (int64_t)r->to[0] * r->to[1], c = e / plane;
    const int64_t y = e % plane / r->to[1] - r->at[0], x = e % r->to[1] - r->at[1];
    uint8_t byte = 0;

    if (y >= 0 && y < r->frame[0] && x >= 0 && x < r->frame[1]) {
        const images_place at = images_trace(r, choice, r->floats, y, x);

        byte = images_byte(image + c * r->stored[0] * r->stored[1], r, choice, &at);
    }
    return arg->table[c * 256 + byte];
}

static inline bool images_change_colors(const co_images_recipe *r)
{
    for (int32_t k = 0; k < r->floats; k++)
        if (r->step[k].kind == CO_IMAGES_JITTER)
            return true;
    return false;
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

    PHASE {
        if (THREAD == 0)
            images_cut(cut, arg, k, hole, sample);
    }
    PHASE {
        const int64_t width = cut[3] - cut[2], n = (cut[1] - cut[0]) * width;

        for (int64_t e = THREAD; e < r->channels * n; e += THREADS)
            out[e / n * plane + (cut[0] + e % n / width) * r->to[1] + cut[2] + e % width] = 0;
    }
}

KERNEL(images_draw, cuda_images)
{
    SHARED images_choice choice;
    SHARED uint64_t sum[CUDA_BLOCK];
    SHARED int64_t cut[4];
    const co_images_recipe *r = arg.recipe;
    const bool colors = images_change_colors(r);
    const int64_t plane = (int64_t)r->to[0] * r->to[1], size = r->channels * plane;
    const int64_t stored = (int64_t)r->channels * r->stored[0] * r->stored[1];

    for (uint32_t i = BLOCK; i < arg.n; i += BLOCKS) {
        const uint32_t sample = arg.sample[i];
        const uint8_t *image = arg.pixels + sample * stored;
        float *out = arg.out + (int64_t)i * size;

        PHASE {
            if (THREAD < 4)
                choice.box[THREAD] = r->box[THREAD];
        }
        PHASE {
            if (THREAD < (uint32_t)r->floats)
                images_choose(&choice, &arg, THREAD, sample);
        }
        for (int32_t k = 0; k < r->floats; k++)
            if (r->step[k].kind == CO_IMAGES_JITTER)
                images_measure(&choice, sum, r, image, k);
        PHASE {
            if (colors)
                images_draw_pixels(out, &arg, image, &choice, THREAD, THREADS);
            for (int64_t e = THREAD; e < size && !colors; e += THREADS)
                out[e] = images_value(&arg, image, &choice, e);
            if (THREAD == 0 && arg.out_label)
                arg.out_label[i] = arg.label[sample];
        }
        for (int32_t k = r->floats; k < r->steps; k++)
            for (int32_t hole = 0; hole < r->step[k].n[1]; hole++)
                images_cut_out(out, cut, &arg, (uint32_t)k, hole, sample);
    }
}
