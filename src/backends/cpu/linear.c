/*
 * linear.c - linear layers with the loops of kernels/gemm, reading weights as the flat store has
 * them: blocking for the caches, and sharing among threads. Each sum is computed by one thread in
 * one order, so the number of threads does not change the bits.
 */
#include "backends/cpu/linear.h"

#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/isa.h"
#include "core/parallel.h"

/* Measured: with as many samples at most, and rows as long at least, fp32 products are faster for
   bf16 tensors, if the weight does not fit a cache. */
#define GEMM_HALF        48
#define GEMM_HALF_ROW    192
#define GEMM_HALF_WEIGHT (1 << 18)
#define GEMM_LONG        1024      /* approximate elements of a row per pass */
#define GEMM_SAMPLES     128       /* rows of x that stay in L2 meanwhile */
#define GEMM_OUTPUTS     32        /* rows of w per task of a thread: whole tiles */
#define GEMM_SMALL       (1 << 16) /* floats of a weight that fits each core's L2 */
#define GEMM_PANELS      (1 << 16) /* floats of panels of x that stay in L2 */
#define GEMM_DEPTH       128       /* rows of w in a panel, which stays in L1 */

static const gemm_loops *gemm_find_loops(const co_call *call)
{
    if (call->in[0]->dtype != CO_F32 || call->out[0]->dtype != CO_F32)
        return NULL;
    return KERNELS_CHOOSE(gemm_loops, NULL);
}

/* --- planning --- */

static int64_t gemm_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static int64_t gemm_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Number of rows, outputs and inputs. */
typedef struct gemm_size {
    int64_t n, out, in;
} gemm_size;

static gemm_size gemm_measure(const co_call *call)
{
    const int64_t *weight = call->param[0].shape.dim;

    return (gemm_size){co_shape_count(&call->in[0]->shape) / weight[1], weight[0], weight[1]};
}

/* Elements of a row per pass: all, or whole vectors. */
static int64_t gemm_length(const gemm_size *size)
{
    const int64_t parts = gemm_divide_up(size->in, GEMM_LONG);

    return parts == 1 ? size->in : gemm_divide_up(gemm_divide_up(size->in, parts), 64) * 64;
}

/* Panels of x per pass. */
static int64_t gemm_group(const gemm *self, const gemm_size *size)
{
    const int64_t width = self->loops->width, all = gemm_divide_up(size->in, width);
    const int64_t most = GEMM_PANELS / (width * size->n);

    return gemm_least(most > 1 ? most : 1, all);
}

bool gemm_choose(gemm *self, const co_call *call)
{
    self->loops = gemm_find_loops(call);
    self->threads = cpu_threads(call);
    return self->loops != NULL;
}

/* Floats of dy transposed, in whole vectors. */
static int64_t gemm_numbers(const gemm *self, const gemm_size *size)
{
    return gemm_divide_up(size->n * size->out, self->loops->width) * self->loops->width;
}

/* dy by outputs and by samples; panels of x. Each thread also has a panel of the weight. */
size_t gemm_backward_bytes(const gemm *self, co_call *call)
{
    const gemm_size size = gemm_measure(call);
    const int64_t width = self->loops->width;

    cpu_need_scratch(call, 0, (size_t)(GEMM_DEPTH * width) * sizeof(float));
    return (size_t)(2 * gemm_numbers(self, &size) + gemm_group(self, &size) * width * size.n) *
           sizeof(float);
}

/* --- running --- */

/* Rows [begin, end) of a matrix, from column `k`. */
static gemm_rows gemm_cut(const gemm_rows *rows, int64_t begin, int64_t end, int64_t k)
{
    return (gemm_rows){rows->at + begin * rows->step + k, end - begin, rows->step};
}

/* y (+)= x w' for `length` columns from `k`, samples `rows` and GEMM_OUTPUTS outputs from `o`. */
static void gemm_multiply_piece(const gemm *self, const co_call *call, const gemm_rows *x,
                                const co_range *rows, int64_t o, int64_t k, int64_t length)
{
    const gemm_size size = gemm_measure(call);
    const gemm_rows w = {call->param[0].data, size.out, size.in};
    const gemm_rows y = {call->out[0]->data, size.n, size.out};
    const float *bias = call->n_param > 1 ? call->param[1].data : NULL;
    const gemm_rows ws = gemm_cut(&w, o, gemm_least(o + GEMM_OUTPUTS, size.out), k);

    for (int64_t n = rows->begin; n < rows->end; n += GEMM_SAMPLES) {
        const int64_t last = gemm_least(n + GEMM_SAMPLES, rows->end);
        const gemm_rows xs = gemm_cut(x, n, last, 0), ys = gemm_cut(&y, n, last, o);

        self->loops->multiply(&ys, &xs, &ws, bias && k == 0 ? bias + o : NULL, length, k > 0);
    }
}

/* All samples and outputs. With a small weight each thread takes some samples, otherwise some rows
   of the weight. */
static void gemm_multiply(const gemm *self, const co_call *call, const gemm_rows *x, int64_t k,
                          int64_t length)
{
    const gemm_size size = gemm_measure(call);
    const int64_t chunks = gemm_divide_up(size.out, GEMM_OUTPUTS);
    const int parts = size.out * length <= GEMM_SMALL ? self->threads : 1;

    CO_PARALLEL_FOR(self->threads)
    for (int64_t i = 0; i < parts * chunks; i++) {
        const co_range rows = co_parallel_part(size.n, (int)(i / chunks), parts);

        gemm_multiply_piece(self, call, x, &rows, i % chunks * GEMM_OUTPUTS, k, length);
    }
}

/* `room`: scratch for a part of x if its rows are long. */
static void gemm_forward(const gemm *self, const co_call *call, const float *x, float *room)
{
    const gemm_size size = gemm_measure(call);
    const int64_t length = gemm_length(&size);

    if (length == size.in) {
        const gemm_rows all = {(float *)x, size.n, size.in};

        gemm_multiply(self, call, &all, 0, length);
        return;
    }
    for (int64_t k = 0; k < size.in; k += length) {
        const int64_t some = gemm_least(length, size.in - k);
        const gemm_rows part = {room, size.n, some};

        for (int64_t n = 0; n < size.n; n++)
            memcpy(room + n * some, x + n * size.in + k, (size_t)some * sizeof(float));
        gemm_multiply(self, call, &part, k, some);
    }
}

/* Accumulated rows, split into parts of at most loops->rows. */
typedef struct gemm_parts {
    int64_t n, parts;
} gemm_parts;

static gemm_parts gemm_split(const gemm *self, int64_t n)
{
    return (gemm_parts){n, gemm_divide_up(n, self->loops->rows)};
}

static int64_t gemm_begin(const gemm_parts *all, int64_t part)
{
    return all->n * part / all->parts;
}

/* A backward pass and its arrays in scratch. */
typedef struct gemm_pass {
    const gemm *self;
    const co_call *call;
    gemm_size size;
    gemm_parts outputs, samples;
    const gemm_backward_from *in;
    float *by_outputs; /* dy: (part, n, outputs of the part) */
    float *by_samples; /* dy: (group of GEMM_DEPTH outputs, part, output, samples of the part) */
    float *panel;      /* of x */
    bool accumulate;
} gemm_pass;

static void gemm_transpose_outputs(const gemm_pass *p, int64_t part)
{
    const int64_t begin = gemm_begin(&p->outputs, part), end = gemm_begin(&p->outputs, part + 1);
    float *to = p->by_outputs + begin * p->size.n;

    for (int64_t n = 0; n < p->size.n; n++)
        for (int64_t o = begin; o < end; o++)
            *to++ = p->in->dy[n * p->size.out + o];
}

static void gemm_transpose_samples(const gemm_pass *p, int64_t part)
{
    const int64_t begin = gemm_begin(&p->samples, part), end = gemm_begin(&p->samples, part + 1);

    for (int64_t first = 0; first < p->size.out; first += GEMM_DEPTH) {
        const int64_t last = gemm_least(first + GEMM_DEPTH, p->size.out);
        float *to = p->by_samples + first * p->size.n + begin * (last - first);

        for (int64_t o = first; o < last; o++)
            for (int64_t n = begin; n < end; n++)
                *to++ = p->in->dy[n * p->size.out + o];
    }
}

/* Thread `t`'s share of transposing dy and of packing `panels` panels of x from column `k`. */
static void gemm_prepare(const gemm_pass *p, int t, int64_t k, int64_t panels)
{
    const gemm_rows x = {(float *)p->in->x, p->size.n, p->size.in};
    const int threads = p->self->threads, width = p->self->loops->width;
    const co_range mine = co_parallel_part(panels, t, threads);
    const co_range outputs = co_parallel_part(p->outputs.parts, t, threads);
    const co_range samples = co_parallel_part(p->samples.parts, t, threads);

    for (int64_t part = outputs.begin; k == 0 && part < outputs.end; part++)
        gemm_transpose_outputs(p, part);
    for (int64_t part = samples.begin; k == 0 && p->call->grad_in[0] && part < samples.end; part++)
        gemm_transpose_samples(p, part);
    for (int64_t j = mine.begin; j < mine.end; j++) {
        const gemm_rows from = gemm_cut(&x, 0, p->size.n, k + j * width);

        p->self->loops->pack(p->panel + j * width * p->size.n, width, &from,
                             gemm_least(width, p->size.in - k - j * width));
    }
}

/* dw (+)= dy' x for the rows in `parts` and panels `some` of x, which start at column `k`. */
static void gemm_add_weight(const gemm_pass *p, const co_range *parts, const co_range *some,
                            int64_t k)
{
    const gemm_rows dw = {p->call->grad_param[0].data, p->size.out, p->size.in};
    const int64_t width = p->self->loops->width;

    for (int64_t part = parts->begin; part < parts->end; part++) {
        const int64_t begin = gemm_begin(&p->outputs, part);

        for (int64_t j = some->begin; j < some->end; j++) {
            const gemm_rows to =
                gemm_cut(&dw, begin, gemm_begin(&p->outputs, part + 1), k + j * width);

            p->self->loops->add_up(&to, gemm_least(width, p->size.in - k - j * width),
                                   p->by_outputs + begin * p->size.n,
                                   p->panel + j * width * p->size.n, p->size.n, p->accumulate);
        }
    }
}

/* dx (+)= dy w for the columns of one panel and the samples in `parts`, with rows [first, end) of
   w. */
static void gemm_add_input(const gemm_pass *p, float *panel, const co_range *parts, int64_t first,
                           int64_t end, int64_t k)
{
    const gemm_rows w = {p->call->param[0].data, p->size.out, p->size.in};
    const gemm_rows dx = {p->call->grad_in[0]->data, p->size.n, p->size.in};
    const gemm_rows from = gemm_cut(&w, first, end, k);
    const int64_t columns = gemm_least(p->self->loops->width, p->size.in - k);

    p->self->loops->pack(panel, p->self->loops->width, &from, columns);
    for (int64_t part = parts->begin; part < parts->end; part++) {
        const int64_t begin = gemm_begin(&p->samples, part);
        const gemm_rows to = gemm_cut(&dx, begin, gemm_begin(&p->samples, part + 1), k);

        p->self->loops->add_up(&to, columns,
                               p->by_samples + first * p->size.n + begin * (end - first), panel,
                               end - first, first > 0);
    }
}

/* dx for the samples in `parts` and the panels `some`, in thread `t`. */
static void gemm_find_input(const gemm_pass *p, const co_range *parts, const co_range *some, int t)
{
    const int64_t width = p->self->loops->width;

    for (int64_t first = 0; first < p->size.out; first += GEMM_DEPTH)
        for (int64_t j = some->begin; j < some->end; j++)
            gemm_add_input(p, cpu_own_scratch(p->call, t), parts, first,
                           gemm_least(first + GEMM_DEPTH, p->size.out), j * width);
}

/* Thread `t`'s share of the products. With a small weight it computes dx for its samples, and dw
   for the columns that it packed itself; otherwise rows of dw and columns of dx. */
static void gemm_share(const gemm_pass *p, int t, int64_t k, int64_t panels, bool last)
{
    const int threads = p->self->threads;
    const int64_t all_panels = gemm_divide_up(p->size.in, p->self->loops->width);
    const bool small = p->size.out * p->size.in <= GEMM_SMALL;
    const co_range all = {0, p->outputs.parts}, each = {0, p->samples.parts};
    const co_range whole = {0, panels}, columns = {0, all_panels};
    const co_range outputs = co_parallel_part(p->outputs.parts, t, threads);
    const co_range samples = co_parallel_part(p->samples.parts, t, threads);
    const co_range mine = co_parallel_part(panels, t, threads);
    const co_range mine_of_all = co_parallel_part(all_panels, t, threads);

    if (small)
        gemm_add_weight(p, &all, &mine, k);
    else
        gemm_add_weight(p, &outputs, &whole, k);
    if (!last || !p->call->grad_in[0])
        return;
    if (small)
        gemm_find_input(p, &samples, &columns, t);
    else
        gemm_find_input(p, &each, &mine_of_all, t);
}

static void gemm_find_bias(const gemm_pass *p)
{
    float *db = p->call->grad_param[1].data;
    const float *dy = p->in->dy;

    if (!p->accumulate)
        memset(db, 0, p->call->grad_param[1].bytes);
    for (int64_t n = 0; n < p->size.n; n++, dy += p->size.out)
        for (int64_t o = 0; o < p->size.out; o++)
            db[o] += dy[o];
}

/* As many panels of x at a time as stay in a cache. */
static void gemm_run(const gemm_pass *p)
{
    const int64_t width = p->self->loops->width, group = gemm_group(p->self, &p->size) * width;
    const int threads = p->self->threads;

    for (int64_t k = 0; k < p->size.in; k += group) {
        const int64_t panels = gemm_divide_up(gemm_least(group, p->size.in - k), width);
        const bool last = k + group >= p->size.in;

        CO_PARALLEL_FOR(threads)
        for (int t = 0; t < threads; t++)
            gemm_prepare(p, t, k, panels);
        CO_PARALLEL_FOR(threads)
        for (int t = 0; t < threads; t++)
            gemm_share(p, t, k, panels, last);
    }
}

void gemm_backward(const gemm *self, const co_call *call, const gemm_backward_from *in, void *room,
                   bool accumulate)
{
    gemm_pass pass = {.self = self,
                      .call = call,
                      .size = gemm_measure(call),
                      .in = in,
                      .by_outputs = room,
                      .accumulate = accumulate};

    pass.outputs = gemm_split(self, pass.size.out);
    pass.samples = gemm_split(self, pass.size.n);
    pass.by_samples = pass.by_outputs + gemm_numbers(self, &pass.size);
    pass.panel = pass.by_samples + gemm_numbers(self, &pass.size);
    if (call->n_param > 1)
        gemm_find_bias(&pass);
    gemm_run(&pass);
}

/* --- the kernel --- */

typedef struct linear {
    gemm gemm;
    cpu_operand src, back_src, grad_out; /* in plain layout */
    size_t forward_at, backward_at;      /* in scratch */
} linear;

static bool linear_supports_any(const co_call *call, const char **why)
{
    gemm found;

    if (!cpu_takes_floats(call, why))
        return false;
    *why = KERNELS_LACK;
    return gemm_choose(&found, call);
}

static bool linear_supports(const co_call *call, const char **why)
{
    const gemm_size size = gemm_measure(call);

    return linear_supports_any(call, why) && linear_suits(size.n, size.in, size.out, why);
}

/* Without instructions for bf16 every layer is rounded, so that the precision can be studied. */
static bool linear_prefers_fp32(const co_call *call)
{
    const gemm_size size = gemm_measure(call);

    return co_isa_has(CO_ISA_AVX512_BF16) && size.n <= GEMM_HALF && size.in >= GEMM_HALF_ROW &&
           size.in * size.out >= GEMM_HALF_WEIGHT;
}

static co_status linear_plan(co_call *call)
{
    linear *self = call->self;
    const gemm_size size = gemm_measure(call);
    size_t used = 0;

    (void)gemm_choose(&self->gemm, call);
    self->src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    if (gemm_length(&size) < size.in)
        self->forward_at =
            cpu_take_scratch(call, &used, (size_t)(size.n * gemm_length(&size)) * sizeof(float));
    return CO_OK;
}

static co_status linear_plan_backward(co_call *call)
{
    linear *self = call->self;
    size_t used = 0;

    self->back_src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    self->backward_at = cpu_take_scratch(call, &used, gemm_backward_bytes(&self->gemm, call));
    return CO_OK;
}

static co_status linear_forward(co_call *call, const co_run *run)
{
    const linear *self = call->self;

    (void)run;
    cpu_bring(&self->src, call, self->gemm.threads);
    gemm_forward(&self->gemm, call, cpu_address(&self->src, call),
                 (float *)(void *)((char *)call->scratch + self->forward_at));
    return CO_OK;
}

static co_status linear_backward(co_call *call, const co_run *run)
{
    const linear *self = call->self;
    const gemm_backward_from in = {cpu_address(&self->back_src, call),
                                   cpu_address(&self->grad_out, call)};

    cpu_bring(&self->back_src, call, self->gemm.threads);
    cpu_bring(&self->grad_out, call, self->gemm.threads);
    gemm_backward(&self->gemm, call, &in, (char *)call->scratch + self->backward_at,
                  run->accumulate);
    return CO_OK;
}

const co_kernel co_cpu_linear = {
    .op = "linear",
    .name = "gemm",
    .reads = CPU_READS,
    .self_size = sizeof(linear),
    .supports = linear_supports,
    .prefers_fp32 = linear_prefers_fp32,
    .plan = linear_plan,
    .plan_backward = linear_plan_backward,
    .forward = linear_forward,
    .backward = linear_backward,
    .yields_half = true,
};

/* After oneDNN's: the layers that do not suit the other. */
const co_kernel co_cpu_linear_any = {
    .op = "linear",
    .name = "gemm",
    .reads = CPU_READS,
    .self_size = sizeof(linear),
    .supports = linear_supports_any,
    .plan = linear_plan,
    .plan_backward = linear_plan_backward,
    .forward = linear_forward,
    .backward = linear_backward,
    .yields_half = true,
};
