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

/* Shorter rows make dot products and panels inefficient. */
#define GEMM_LEAST 192
/* With more samples oneDNN's forward pass is faster, as transposing the weights costs little
   then. */
#define GEMM_MOST 192
/* Measured, in samples: up to here fp32 products are faster for bf16 tensors, if the weight does
   not fit a cache. */
#define GEMM_HALF        48
#define GEMM_HALF_WEIGHT (1 << 22)
#define GEMM_LONG        1024      /* approximate elements of a row per pass */
#define GEMM_SAMPLES     128       /* rows of x that stay in L2 meanwhile */
#define GEMM_OUTPUTS     32        /* rows of w per task of a thread: whole tiles */
#define GEMM_PANELS      (1 << 16) /* floats of panels of x that stay in L2 */
#define GEMM_DEPTH       128       /* rows of w in a panel, which stays in L1 */

#ifdef CO_KERNELS_X86
static const gemm_loops *gemm_find_loops(const co_call *call)
{
    if (call->in[0]->dtype != CO_F32 || call->out[0]->dtype != CO_F32)
        return NULL;
    if (co_isa_has(CO_ISA_AVX512))
        return &gemm_loops_avx512;
    return co_isa_has(CO_ISA_AVX2) ? &gemm_loops_avx2 : NULL;
}
#else
static const gemm_loops *gemm_find_loops(const co_call *call)
{
    (void)call;
    return NULL;
}
#endif

/* --- planning --- */

static int64_t gemm_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static int64_t gemm_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Number of samples, outputs and inputs. */
typedef struct gemm_size {
    int64_t n, out, in;
} gemm_size;

static gemm_size gemm_measure(const co_call *call)
{
    return (gemm_size){call->in[0]->shape.dim[0], call->out[0]->shape.dim[1],
                       call->in[0]->shape.dim[1]};
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

static bool gemm_choose_any(gemm *self, const co_call *call)
{
    self->loops = gemm_find_loops(call);
    self->threads = cpu_threads(call);
    return self->loops != NULL;
}

bool gemm_choose(gemm *self, const co_call *call)
{
    (void)gemm_choose_any(self, call);
    if (call->in[0]->shape.dim[1] < GEMM_LEAST)
        self->loops = NULL;
    return self->loops != NULL;
}

/* Coefficients of dy by rows of the weight; panels of x; coefficients of dy by samples; a panel of
   the weight per thread. */
size_t gemm_backward_bytes(const gemm *self, const co_call *call)
{
    const gemm_size size = gemm_measure(call);
    const int64_t width = self->loops->width, numbers = size.n * size.out;

    return (size_t)(gemm_divide_up(numbers, width) * width +
                    gemm_group(self, &size) * width * size.n + self->threads * GEMM_DEPTH * width) *
           sizeof(float);
}

/* --- running --- */

/* Rows [begin, end) of a matrix, from column `k`. */
static gemm_rows gemm_cut(const gemm_rows *rows, int64_t begin, int64_t end, int64_t k)
{
    return (gemm_rows){rows->at + begin * rows->step + k, end - begin, rows->step};
}

/* y (+)= x w' for `length` columns from `k`, all samples. */
static void gemm_multiply(const gemm *self, const co_call *call, const gemm_rows *x, int64_t k,
                          int64_t length)
{
    const gemm_size size = gemm_measure(call);
    const gemm_rows w = {call->param[0].data, size.out, size.in};
    const gemm_rows y = {call->out[0]->data, size.n, size.out};
    const float *bias = call->n_param > 1 ? call->param[1].data : NULL;

    CO_PARALLEL_FOR(self->threads)
    for (int64_t o = 0; o < size.out; o += GEMM_OUTPUTS) {
        const int64_t end = gemm_least(o + GEMM_OUTPUTS, size.out);
        const gemm_rows ws = gemm_cut(&w, o, end, k);

        for (int64_t n = 0; n < size.n; n += GEMM_SAMPLES) {
            const int64_t last = gemm_least(n + GEMM_SAMPLES, size.n);
            const gemm_rows xs = gemm_cut(x, n, last, 0), ys = gemm_cut(&y, n, last, o);

            self->loops->multiply(&ys, &xs, &ws, bias && k == 0 ? bias + o : NULL, length, k > 0);
        }
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

/* dw (+)= dy' x for some panels of x. */
static void gemm_add_weight(const gemm *self, const gemm_rows *dw, const float *number,
                            const float *panel, int64_t panels, const gemm_size *size, bool add)
{
    const gemm_parts parts = gemm_split(self, size->out);
    const int64_t width = self->loops->width;

    CO_PARALLEL_FOR(self->threads)
    for (int64_t p = 0; p < parts.parts; p++) {
        const int64_t begin = gemm_begin(&parts, p);

        for (int64_t j = 0; j < panels; j++) {
            const gemm_rows to = gemm_cut(dw, begin, gemm_begin(&parts, p + 1), j * width);

            self->loops->add_up(&to, gemm_least(width, size->in - j * width),
                                number + begin * size->n, panel + j * width * size->n, size->n,
                                add);
        }
    }
}

static void gemm_find_weight(const gemm *self, const co_call *call, const gemm_backward_from *in,
                             float *number, float *panel, bool accumulate)
{
    const gemm_size size = gemm_measure(call);
    const gemm_parts parts = gemm_split(self, size.out);
    const gemm_rows x = {(float *)in->x, size.n, size.in};
    const gemm_rows dw = {call->grad_param[0].data, size.out, size.in};
    const float *dy = in->dy;
    const int64_t width = self->loops->width, group = gemm_group(self, &size) * width;
    float *to = number;

    for (int64_t p = 0; p < parts.parts; p++) { /* (part, n, rows of the part) */
        const int64_t begin = gemm_begin(&parts, p), end = gemm_begin(&parts, p + 1);

        for (int64_t n = 0; n < size.n; n++)
            for (int64_t o = begin; o < end; o++)
                *to++ = dy[n * size.out + o];
    }
    for (int64_t k = 0; k < size.in; k += group) {
        const gemm_size rest = {size.n, size.out, size.in - k};
        const int64_t panels = gemm_divide_up(gemm_least(group, rest.in), width);
        const gemm_rows some = gemm_cut(&dw, 0, size.out, k);

        CO_PARALLEL_FOR(self->threads)
        for (int64_t j = 0; j < panels; j++) {
            const gemm_rows from = gemm_cut(&x, 0, size.n, k + j * width);

            self->loops->pack(panel + j * width * size.n, &from,
                              gemm_least(width, rest.in - j * width));
        }
        gemm_add_weight(self, &some, number, panel, panels, &rest, accumulate);
    }
}

/* dx (+)= dy w for the columns of one panel, with rows [first, end) of w. */
static void gemm_add_input(const gemm *self, const co_call *call, const float *number, float *panel,
                           int64_t first, int64_t end, int64_t k)
{
    const gemm_size size = gemm_measure(call);
    const gemm_parts parts = gemm_split(self, size.n);
    const gemm_rows w = {call->param[0].data, size.out, size.in};
    const gemm_rows dx = {call->grad_in[0]->data, size.n, size.in};
    const gemm_rows from = gemm_cut(&w, first, end, k);
    const int64_t columns = gemm_least(self->loops->width, size.in - k);

    self->loops->pack(panel, &from, columns);
    for (int64_t p = 0; p < parts.parts; p++) {
        const int64_t begin = gemm_begin(&parts, p);
        const gemm_rows to = gemm_cut(&dx, begin, gemm_begin(&parts, p + 1), k);

        self->loops->add_up(&to, columns, number + first * size.n + begin * (end - first), panel,
                            end - first, first > 0);
    }
}

/* Transpose columns of dy: (part, column, samples of the part). Returns the end of the output. */
static float *gemm_transpose(float *to, const float *dy, int64_t columns, const gemm_size *size,
                             const gemm_parts *parts)
{
    for (int64_t p = 0; p < parts->parts; p++) {
        const int64_t begin = gemm_begin(parts, p), end = gemm_begin(parts, p + 1);

        for (int64_t o = 0; o < columns; o++)
            for (int64_t n = begin; n < end; n++)
                *to++ = dy[n * size->out + o];
    }
    return to;
}

static void gemm_find_input(const gemm *self, const co_call *call, const gemm_backward_from *in,
                            float *number, float *panel)
{
    const gemm_size size = gemm_measure(call);
    const gemm_parts parts = gemm_split(self, size.n);
    const float *dy = in->dy;
    const int64_t width = self->loops->width, panels = gemm_divide_up(size.in, width);
    float *to = number;

    for (int64_t first = 0; first < size.out; first += GEMM_DEPTH)
        to =
            gemm_transpose(to, dy + first, gemm_least(GEMM_DEPTH, size.out - first), &size, &parts);
    CO_PARALLEL_FOR(self->threads)
    for (int t = 0; t < self->threads; t++)
        for (int64_t first = 0; first < size.out; first += GEMM_DEPTH)
            for (int64_t j = panels * t / self->threads; j < panels * (t + 1) / self->threads; j++)
                gemm_add_input(self, call, number, panel + t * GEMM_DEPTH * width, first,
                               gemm_least(first + GEMM_DEPTH, size.out), j * width);
}

static void gemm_find_bias(const co_call *call, const float *dy, bool accumulate)
{
    const gemm_size size = gemm_measure(call);
    float *db = call->grad_param[1].data;

    if (!accumulate)
        memset(db, 0, call->grad_param[1].bytes);
    for (int64_t n = 0; n < size.n; n++, dy += size.out)
        for (int64_t o = 0; o < size.out; o++)
            db[o] += dy[o];
}

void gemm_backward(const gemm *self, const co_call *call, const gemm_backward_from *in, void *room,
                   bool accumulate)
{
    const gemm_size size = gemm_measure(call);
    const int64_t width = self->loops->width;
    float *number = room;
    float *panel = number + gemm_divide_up(size.n * size.out, width) * width;
    float *weight = panel + gemm_group(self, &size) * width * size.n;

    gemm_find_weight(self, call, in, number, panel, accumulate);
    if (call->n_param > 1)
        gemm_find_bias(call, in->dy, accumulate);
    if (call->grad_in[0])
        gemm_find_input(self, call, in, number, weight);
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

    *why = "it computes in floats";
    if (call->in[0]->dtype != CO_F32 || call->out[0]->dtype != CO_F32)
        return false;
    *why = "this CPU has no AVX2";
    return gemm_choose_any(&found, call);
}

static bool linear_supports(const co_call *call, const char **why)
{
    if (!linear_supports_any(call, why))
        return false;
    *why = "its rows are short";
    if (call->in[0]->shape.dim[1] < GEMM_LEAST)
        return false;
    *why = "its samples are many";
    return call->in[0]->shape.dim[0] <= GEMM_MOST;
}

static bool linear_prefers_fp32(const co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim;

    return in[0] <= GEMM_HALF && in[1] >= GEMM_LEAST &&
           in[1] * call->out[0]->shape.dim[1] >= GEMM_HALF_WEIGHT;
}

static co_status linear_plan(co_call *call)
{
    linear *self = call->self;
    const gemm_size size = gemm_measure(call);
    size_t used = 0;

    (void)gemm_choose_any(&self->gemm, call);
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

/* After oneDNN's: short rows, and many samples. */
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
