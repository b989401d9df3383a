/*
 * adaptive.c - adaptive_avgpool in whatever layout the input has: oneDNN knows windows of one size
 * only, and runs the backward pass of large ones, channels last, by a plain loop.
 *
 *   y[u]  = (sum of x[r] over rows floor(u H / OH) ... ceil((u + 1) H / OH)) / their number
 *   dx[r] = sum of dy[u] / its number, over u = floor(r OH / H) ... ceil((r + 1) OH / H)
 *
 * and so along the width: the windows that hold a pixel are found as the pixels of a window are.
 * Values of one pixel that lie together are added up together, in fp32, window row by window row.
 */
#include <string.h>

#include "backends/onednn/onednn.h"
#include "core/half.h"
#include "core/parallel.h"

#define ADAPTIVE_TOGETHER 512 /* values added up in one go */
#define ADAPTIVE_IMAGES   16  /* that a thread takes at once, pixel by pixel */

typedef struct adaptive {
    onednn_self base;
    int64_t images, lanes;   /* whole images, and how many values of a pixel lie together in each */
    size_t count_at[2];      /* in scratch: the windows, forward and backward */
    onednn_operand grad_out; /* as the output lies */
} adaptive;

/* Numbers to add up, (images, size[0], size[1], lanes), and where their sums go. */
typedef struct adaptive_side {
    void *data;
    const int64_t *size; /* (H, W) */
} adaptive_side;

typedef struct adaptive_work {
    adaptive_side from, to;
    const float *count; /* of each window, its pixels */
    bool backward;
} adaptive_work;

typedef struct adaptive_range {
    int64_t begin, end;
} adaptive_range;

/* Where sums go, and the places of `from` that they are of. */
typedef struct adaptive_pixel {
    int64_t u, v;
    adaptive_range rows, columns;
} adaptive_pixel;

/* Which of `from` places belong to place `at` of `to`. */
static adaptive_range adaptive_find_range(int64_t at, int64_t from, int64_t to)
{
    return (adaptive_range){at * from / to, ((at + 1) * from + to - 1) / to};
}

static bool adaptive_supports(const co_call *call, const char **why)
{
    if (!onednn_takes(call, why))
        return false;
    *why = "its input lies in a layout that the kernel cannot read";
    return call->in[0]->layout.format != CO_FORMAT_OPAQUE;
}

static size_t adaptive_count_offset(adaptive *self, onednn_program *program, const co_call *call)
{
    const int64_t *out = call->out[0]->shape.dim, places = out[2] * out[3];
    const dnnl_memory_desc_t md = onednn_plain(CO_F32, 1, &places);

    return onednn_scratch(&self->base, program, &md).offset;
}

static co_status adaptive_plan(co_call *call)
{
    adaptive *self = call->self;
    const co_layout *layout = &call->in[0]->layout;
    const onednn_operand x = onednn_tensor(call->in[0]);
    const int64_t *dim = call->in[0]->shape.dim;
    dnnl_memory_desc_t md;

    self->lanes = layout->format == CO_FORMAT_CHANNEL_BLOCKS  ? layout->block
                  : layout->format == CO_FORMAT_CHANNELS_LAST ? dim[1]
                                                              : 1;
    self->images = dim[0] * ((dim[1] + self->lanes - 1) / self->lanes);
    self->base.loops = "adaptive";
    CO_TRY(onednn_begin(call));
    md = onednn_named(layout, x.md.data_type, 4, call->out[0]->shape.dim);
    onednn_set_format(call->out[0], &self->base.out, &md);
    self->count_at[0] = adaptive_count_offset(self, &self->base.forward, call);
    return CO_OK;
}

/* Where the gradient has another layout, it changes its layout first. */
static co_status adaptive_plan_backward(co_call *call)
{
    adaptive *self = call->self;
    const onednn_operand y = onednn_tensor(call->out[0]);

    if (!call->grad_in[0])
        return CO_OK;
    self->grad_out = onednn_tensor(call->grad_out[0]);
    onednn_like(call->grad_in[0], call->in[0]);
    self->count_at[1] = adaptive_count_offset(self, &self->base.backward, call);
    return onednn_convert(&self->grad_out, &self->base, &self->base.backward, &y.md);
}

/* sum += x / by, for n <= ADAPTIVE_TOGETHER values from `at` on. */
static inline void adaptive_add(float *sum, const void *x, int64_t at, int64_t n, co_dtype dtype,
                                float by)
{
    float wide[ADAPTIVE_TOGETHER];
    const float *v = (const float *)x + at;

    if (dtype != CO_F32) {
        co_half_widen(wide, (const uint16_t *)x + at, (size_t)n, dtype);
        v = wide;
    }
    for (int64_t i = 0; i < n; i++)
        sum[i] += v[i] / by;
}

static inline void adaptive_put(void *y, int64_t at, const float *sum, int64_t n, co_dtype dtype)
{
    if (dtype == CO_F32)
        memcpy((float *)y + at, sum, (size_t)n * sizeof(*sum));
    else
        co_half_round((uint16_t *)y + at, sum, (size_t)n, dtype);
}

/* Values [l, l + n) of pixel (u, v) of an image: the mean of its window or, backward, its shares of
   the windows that hold it. */
static inline void adaptive_make_values(const adaptive_work *w, const adaptive_pixel *p,
                                        int64_t image, int64_t lanes, int64_t l, int64_t n,
                                        co_dtype dtype)
{
    const int64_t *to = w->to.size, *from = w->from.size;
    float sum[ADAPTIVE_TOGETHER];

    for (int64_t i = 0; i < n; i++)
        sum[i] = 0;
    for (int64_t r = p->rows.begin; r < p->rows.end; r++)
        for (int64_t q = p->columns.begin; q < p->columns.end; q++)
            adaptive_add(sum, w->from.data, ((image * from[0] + r) * from[1] + q) * lanes + l, n,
                         dtype, w->backward ? w->count[r * from[1] + q] : 1);
    for (int64_t i = 0; i < n && !w->backward; i++)
        sum[i] /= w->count[p->u * to[1] + p->v];
    adaptive_put(w->to.data, ((image * to[0] + p->u) * to[1] + p->v) * lanes + l, sum, n, dtype);
}

/* Of images [begin, end). */
static void adaptive_make_pixel(const co_call *call, const adaptive_work *w,
                                const adaptive_pixel *p, int64_t begin, int64_t end)
{
    const int64_t lanes = ((const adaptive *)call->self)->lanes;
    const co_dtype dtype = call->in[0]->dtype;

    for (int64_t image = begin; image < end; image++) {
        if (lanes == 16 && dtype == CO_F32) { /* so short that its length has to be known */
            adaptive_make_values(w, p, image, 16, 0, 16, CO_F32);
            continue;
        }
        for (int64_t l = 0; l < lanes; l += ADAPTIVE_TOGETHER)
            adaptive_make_values(w, p, image, lanes, l,
                                 lanes - l < ADAPTIVE_TOGETHER ? lanes - l : ADAPTIVE_TOGETHER,
                                 dtype);
    }
}

static void adaptive_make(const co_call *call, const adaptive_work *w)
{
    const adaptive *self = call->self;
    const int threads = onednn_use_threads(call);

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < self->images; i += ADAPTIVE_IMAGES) {
        const int64_t end = i + ADAPTIVE_IMAGES < self->images ? i + ADAPTIVE_IMAGES : self->images;

        for (int64_t e = 0; e < w->to.size[0] * w->to.size[1]; e++) {
            const int64_t u = e / w->to.size[1], v = e % w->to.size[1];
            const adaptive_pixel pixel = {u, v,
                                          adaptive_find_range(u, w->from.size[0], w->to.size[0]),
                                          adaptive_find_range(v, w->from.size[1], w->to.size[1])};

            adaptive_make_pixel(call, w, &pixel, i, end);
        }
    }
}

/* How many pixels each window has, (OH, OW), in the scratch area. */
static const float *adaptive_count_windows(const co_call *call, bool backward)
{
    const int64_t *in = call->in[0]->shape.dim + 2, *out = call->out[0]->shape.dim + 2;
    float *count = (float *)((char *)call->scratch + ((adaptive *)call->self)->count_at[backward]);

    for (int64_t u = 0; u < out[0]; u++)
        for (int64_t v = 0; v < out[1]; v++) {
            const adaptive_range rows = adaptive_find_range(u, in[0], out[0]);
            const adaptive_range columns = adaptive_find_range(v, in[1], out[1]);

            count[u * out[1] + v] =
                (float)((rows.end - rows.begin) * (columns.end - columns.begin));
        }
    return count;
}

static co_status adaptive_forward(co_call *call, const co_run *run)
{
    const adaptive_work work = {.from = {call->in[0]->data, call->in[0]->shape.dim + 2},
                                .to = {call->out[0]->data, call->out[0]->shape.dim + 2},
                                .count = adaptive_count_windows(call, false)};

    (void)run;
    adaptive_make(call, &work);
    return CO_OK;
}

static co_status adaptive_backward(co_call *call, const co_run *run)
{
    const adaptive *self = call->self;

    if (!call->grad_in[0])
        return CO_OK;
    CO_TRY(onednn_backward(call, run));
    {
        const adaptive_work work = {.from = {(char *)*self->grad_out.base + self->grad_out.offset,
                                             call->out[0]->shape.dim + 2},
                                    .to = {call->grad_in[0]->data, call->in[0]->shape.dim + 2},
                                    .count = adaptive_count_windows(call, true),
                                    .backward = true};

        adaptive_make(call, &work);
    }
    return CO_OK;
}

const co_kernel co_onednn_adaptive_avgpool = {
    .op = "adaptive_avgpool",
    .reads = ONEDNN_READS,
    .self_size = sizeof(adaptive),
    .half = ONEDNN_HALF,
    .supports = adaptive_supports,
    .plan = adaptive_plan,
    .plan_backward = adaptive_plan_backward,
    .bind = onednn_bind,
    .forward = adaptive_forward,
    .backward = adaptive_backward,
    .fini = onednn_fini,
};
