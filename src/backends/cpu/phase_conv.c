/*
 * phase_conv.c - convolution of few channels, as first layers are, by Winograd's algorithm on the
 * phases of its stride (kernels/phase_conv): blocking for the caches, and shares of threads.
 *
 * A few rows of tiles at a time go through all stages in the memory of one thread. The gradient of
 * the weight is added up in at most PHASE_CONV_SLICES slices of all rows, by their number alone, so
 * the number of threads changes no bit. The gradient of the input, which first layers have none of,
 * and with it that of the weight, is computed as by direct_conv.c.
 */
#include <string.h>

#include "backends/cpu/direct_conv.h"
#include "core/isa.h"
#include "core/parallel.h"
#include "kernels/phase_conv/phase_conv.h"

#define PHASE_CONV_MOST_CHANNELS 4
#define PHASE_CONV_MOST_DEPTH    64
#define PHASE_CONV_CHUNK_BYTES   (1 << 19) /* of V and M: half of a second-level cache */
#define PHASE_CONV_SLICES        8

typedef struct phase_conv {
    direct direct; /* first: its functions take it for their own self */
    const phase_conv_loops *loops;
    phase_conv_row row;       /* of a whole chunk */
    phase_conv_weight weight; /* of a block of results */
    int64_t blocks, samples;
    int64_t wide;                    /* vectors of a block of results' layout */
    int64_t rows, chunk, chunks;     /* rows of tiles: of an image, of a chunk; number of chunks */
    int64_t plane, phases, v, m;     /* in thread scratch, in floats */
    int64_t all;                     /* floats of U of all blocks */
    size_t u_at, packed_at, bias_at; /* in scratch */
} phase_conv;

static const phase_conv_loops *phase_conv_find_loops(co_dtype dtype)
{
    static const phase_conv_loops *const all[] = {KERNELS_LIST(phase_conv_loops, NULL)};

#ifdef CO_KERNELS_X86
    if (dtype == CO_BF16)
        return &phase_conv_loops_bf16;
#endif
    return dtype == CO_F32 ? all[kernels_too_new()] : NULL;
}

static bool phase_conv_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;
    const phase_conv_loops *loops = phase_conv_find_loops(call->in[0]->dtype);
    const int64_t taps = direct_divide_up(a->k[0], a->s[0]);
    const int64_t depth = call->in[0]->shape.dim[1] * a->s[0] * a->s[0];

    *why = "this CPU has no vectors for it";
    if (!loops || !cpu_takes(call, why))
        return false;
    *why = "the config wants direct convolutions";
    if (call->direct_convolution)
        return false;
    *why = "its channels are many or in groups";
    if (a->groups != 1 || call->in[0]->shape.dim[1] > PHASE_CONV_MOST_CHANNELS)
        return false;
    *why = "its kernel or its stride is not square, or it has gaps";
    if (a->k[0] != a->k[1] || a->s[0] != a->s[1] || a->d[0] != 1 || a->d[1] != 1)
        return false;
    *why = "its kernel is less than three or more than four strides of 2 or more";
    if (a->s[0] == 1 || taps < PHASE_CONV_LEAST_TAPS || taps > PHASE_CONV_MOST_TAPS)
        return false;
    *why = "its stride is large";
    if (depth > PHASE_CONV_MOST_DEPTH)
        return false;
    *why = "its outputs do not fill vectors";
    return a->out % loops->lanes == 0;
}

/* --- planning --- */

/* An odd number of vectors, so that the points of a tile do not map to the same cache set. */
static int64_t phase_conv_apart(int64_t floats, int64_t lanes)
{
    return (direct_divide_up(floats, lanes) | 1) * lanes;
}

static void phase_conv_size(phase_conv *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t lanes = self->loops->lanes, s = a->s[0], depth = in[1] * s * s;
    const int64_t width = direct_divide_up(depth, lanes) * lanes;
    const int taps = (int)direct_divide_up(a->k[0], s), points = taps + PHASE_CONV_TILE - 1;
    const int64_t columns = direct_divide_up(out[3], PHASE_CONV_TILE);
    const int64_t pixels = PHASE_CONV_TILE * columns + taps - 1;
    const int64_t bytes = columns * points * points * (width + a->out) * (int64_t)sizeof(float);
    const int64_t most = PHASE_CONV_CHUNK_BYTES / bytes;

    self->samples = in[0];
    self->blocks = a->out / lanes;
    self->rows = direct_divide_up(out[2], PHASE_CONV_TILE);
    self->chunks = direct_divide_up(self->samples * self->rows,
                                    direct_least(most > 1 ? most : 1, self->samples * self->rows));
    self->chunk = direct_divide_up(self->samples * self->rows, self->chunks);
    self->row = (phase_conv_row){.taps = taps,
                                 .points = points,
                                 .stride = s,
                                 .channels = in[1],
                                 .depth = depth,
                                 .columns = columns,
                                 .tiles = self->chunk * columns,
                                 .v_apart = phase_conv_apart(self->chunk * columns * width, lanes),
                                 .m_apart = phase_conv_apart(self->chunk * columns * a->out, lanes),
                                 .pixels = out[3],
                                 .y_row = out[3] * self->wide * lanes,
                                 .y_pixel = self->wide * lanes};
    self->weight = (phase_conv_weight){.taps = taps,
                                       .points = points,
                                       .stride = s,
                                       .channels = in[1],
                                       .depth = depth,
                                       .kernel = a->k[0],
                                       .apart = phase_conv_apart(a->out * depth, lanes)};
    self->plane = in[1] * points * s * pixels * s;
    self->phases = points * pixels * width;
    self->v = points * points * self->row.v_apart;
    self->m = points * points * self->row.m_apart;
    self->all = points * points * self->weight.apart;
}

static int64_t phase_conv_round(int64_t floats)
{
    return direct_divide_up(floats, DIRECT_CONV_AFTER) * DIRECT_CONV_AFTER;
}

static void phase_conv_take_own(co_call *call, const phase_conv *self)
{
    const int64_t floats = phase_conv_round(self->plane) + self->phases + self->v + self->m;

    cpu_need_scratch(call, 0, (size_t)floats * sizeof(float));
}

static int64_t phase_conv_panel(const phase_conv *self)
{
    return self->weight.channels * self->weight.kernel * self->weight.kernel * self->loops->lanes;
}

/* As the kernels for AMX read them. Sums for a bias, and direct convolution, are of one vector. */
static int64_t phase_conv_find_wide(const phase_conv *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const bool amx = co_isa_has(CO_ISA_AMX) && call->in[0]->dtype == CO_BF16;

    return amx && a->out % CPU_AMX_BLOCK == 0 && !a->bias ? CPU_AMX_BLOCK / self->loops->lanes : 1;
}

static co_layout phase_conv_layout(const phase_conv *self)
{
    return cpu_blocks((int)self->wide * self->loops->lanes);
}

static co_status phase_conv_plan(co_call *call)
{
    phase_conv *self = call->self;
    size_t used = 0;

    CO_TRY(direct_plan_with(call, direct_find_loops(call->in[0]->dtype)));
    self->loops = phase_conv_find_loops(call->in[0]->dtype);
    self->wide = phase_conv_find_wide(self, call);
    cpu_set_layout(call->out[0], phase_conv_layout(self));
    phase_conv_size(self, call);
    self->direct.src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->packed_at = cpu_take_scratch(
        call, &used, (size_t)(self->blocks * phase_conv_panel(self)) * sizeof(float));
    self->u_at = cpu_take_scratch(call, &used, (size_t)self->all * sizeof(float));
    phase_conv_take_own(call, self);
    return CO_OK;
}

static int64_t phase_conv_slices(const phase_conv *self)
{
    return direct_least(self->chunks, PHASE_CONV_SLICES);
}

static co_status phase_conv_plan_backward(co_call *call)
{
    phase_conv *self = call->self;
    const int lanes = self->loops->lanes;
    size_t used = 0;

    if (call->grad_in[0])
        return direct_plan_backward(call);
    self->direct.back_src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->direct.grad_out =
        cpu_plan_operand(call, &used, call->grad_out[0], phase_conv_layout(self));
    self->packed_at = cpu_take_scratch(
        call, &used, (size_t)(self->blocks * phase_conv_panel(self)) * sizeof(float));
    self->bias_at = cpu_take_scratch(call, &used, (size_t)(self->blocks * lanes) * sizeof(float));
    self->u_at = cpu_take_scratch(call, &used,
                                  (size_t)(phase_conv_slices(self) * self->all) * sizeof(float));
    phase_conv_take_own(call, self);
    return CO_OK;
}

/* --- running --- */

/* A chunk of rows of tiles, in the memory of one thread. */
typedef struct phase_conv_work {
    const phase_conv *self;
    const co_call *call;
    const char *x;
    int64_t first, end; /* rows of tiles, of all images */
    phase_conv_row row;
    float *planes, *phases, *v, *m;
} phase_conv_work;

static phase_conv_work phase_conv_begin(const phase_conv *self, const co_call *call, const void *x,
                                        int64_t chunk, float *own)
{
    const int64_t rows = self->samples * self->rows;
    phase_conv_work work = {.self = self,
                            .call = call,
                            .x = x,
                            .first = rows * chunk / self->chunks,
                            .end = rows * (chunk + 1) / self->chunks,
                            .row = self->row,
                            .planes = own};

    work.row.tiles = (work.end - work.first) * work.row.columns;
    work.phases = own + phase_conv_round(self->plane);
    work.v = work.phases + self->phases;
    work.m = work.v + self->v;
    return work;
}

/* V of all rows of a chunk. */
static void phase_conv_bring(const phase_conv_work *work)
{
    const phase_conv *self = work->self;
    const co_conv2d_attr *a = work->call->attr;
    const int64_t *in = work->call->in[0]->shape.dim, s = self->row.stride;
    const int64_t step[2] = {1, 1}, lanes = self->loops->lanes;
    const size_t plane = (size_t)(in[2] * in[3]) * self->loops->cell;
    const int64_t pixels = PHASE_CONV_TILE * work->row.columns + work->row.taps - 1;

    for (int64_t i = work->first; i < work->end; i++) {
        const direct_conv_spread how = {.h = in[2],
                                        .w = in[3],
                                        .rows = work->row.points * s,
                                        .columns = pixels * s,
                                        .top = i % self->rows * PHASE_CONV_TILE * s - a->p[0],
                                        .left = -a->p[1],
                                        .step = step};
        const char *x = work->x + (size_t)(i / self->rows * in[1]) * plane;

        for (int64_t c = 0; c < in[1]; c++)
            self->direct.loops->spread(work->planes + c * how.rows * how.columns,
                                       x + (size_t)c * plane, &how);
        self->loops->split(work->phases, work->planes, &work->row);
        self->loops->input_transform(work->v + (i - work->first) * work->row.columns * lanes,
                                     work->phases, &work->row);
    }
}

/* Row `i` of tiles and block `b`: the row's part of M, and where it is in an image of results. */
static float *phase_conv_find_row(const phase_conv_work *work, int64_t i, int64_t b,
                                  phase_conv_row *row, size_t *y_at)
{
    const phase_conv *self = work->self;
    const int64_t *out = work->call->out[0]->shape.dim, lanes = self->loops->lanes;
    const int64_t n = i / self->rows, top = i % self->rows * PHASE_CONV_TILE;

    *row = work->row;
    row->rows = direct_least(PHASE_CONV_TILE, out[2] - top);
    *y_at =
        (size_t)(((n * self->blocks / self->wide + b / self->wide) * out[2] + top) * row->y_row +
                 b % self->wide * lanes) *
        self->loops->cell;
    return work->m + (b * row->tiles + (i - work->first) * row->columns) * lanes;
}

static void phase_conv_pack(const phase_conv *self, const co_call *call, int threads)
{
    const int64_t lanes = self->loops->lanes, panel = phase_conv_panel(self);
    float *packed = direct_scratch(call, self->packed_at), *u = direct_scratch(call, self->u_at);
    direct_conv_weight shape = self->direct.weight;

    shape.blocks = false;
    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < self->blocks; b++) {
        self->direct.loops->pack(packed + b * panel, call->param[0].data, &shape, b);
        self->loops->filter_transform(u + b * self->weight.depth * lanes, packed + b * panel,
                                      &self->weight);
    }
}

static void phase_conv_run_chunk(const phase_conv_work *work, const float *bias)
{
    const phase_conv *self = work->self;
    const float *u = direct_scratch(work->call, self->u_at);
    char *y = work->call->out[0]->data;
    phase_conv_row row;
    size_t at;

    phase_conv_bring(work);
    for (int64_t e = 0; e < work->row.points * work->row.points; e++)
        self->loops->multiply(work->m + e * work->row.m_apart, work->v + e * work->row.v_apart,
                              u + e * self->weight.apart, self->blocks, &work->row);
    for (int64_t i = work->first; i < work->end; i++)
        for (int64_t b = 0; b < self->blocks; b++) {
            const float *m = phase_conv_find_row(work, i, b, &row, &at);

            self->loops->output_transform(y + at, m, bias ? bias + b * self->loops->lanes : NULL,
                                          &row);
        }
}

static co_status phase_conv_forward(co_call *call, const co_run *run)
{
    const co_conv2d_attr *a = call->attr;
    const phase_conv *self = call->self;
    const void *x = cpu_address(&self->direct.src, call);
    const int threads = cpu_threads(call);

    (void)run;
    cpu_bring(&self->direct.src, call, threads);
    phase_conv_pack(self, call, threads);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++)
        for (int64_t i = self->chunks * t / threads; i < self->chunks * (t + 1) / threads; i++) {
            const phase_conv_work work =
                phase_conv_begin(self, call, x, i, cpu_own_scratch(call, t));

            phase_conv_run_chunk(&work, a->bias ? call->param[1].data : NULL);
        }
    return CO_OK;
}

/* Adds a chunk's part of dU. */
static void phase_conv_correlate_chunk(const phase_conv_work *work, const char *dy, float *du)
{
    const phase_conv *self = work->self;
    phase_conv_row row;
    size_t at;

    phase_conv_bring(work);
    for (int64_t i = work->first; i < work->end; i++)
        for (int64_t b = 0; b < self->blocks; b++) {
            float *m = phase_conv_find_row(work, i, b, &row, &at);

            self->loops->gradient_transform(m, dy + at, &row);
        }
    for (int64_t e = 0; e < work->row.points * work->row.points; e++)
        self->loops->correlate(du + e * self->weight.apart, work->v + e * work->row.v_apart,
                               work->m + e * work->row.m_apart, self->blocks, &work->row);
}

static void phase_conv_sum_slice(const phase_conv *self, const co_call *call, int64_t slice,
                                 const char *dy, float *own)
{
    const int64_t slices = phase_conv_slices(self);
    float *sum = direct_scratch(call, self->u_at) + slice * self->all;

    memset(sum, 0, (size_t)self->all * sizeof(float));
    for (int64_t i = self->chunks * slice / slices; i < self->chunks * (slice + 1) / slices; i++) {
        const phase_conv_work work =
            phase_conv_begin(self, call, cpu_address(&self->direct.back_src, call), i, own);

        phase_conv_correlate_chunk(&work, dy, sum);
    }
}

/* The weight's gradient from the sums of all slices. */
static void phase_conv_finish(const phase_conv *self, const co_call *call, const co_run *run,
                              float *du, int threads)
{
    const int64_t lanes = self->loops->lanes, panel = phase_conv_panel(self);
    float *packed = direct_scratch(call, self->packed_at);
    direct_conv_weight shape = self->direct.weight;

    shape.blocks = false;
    for (int64_t s = 1; s < phase_conv_slices(self); s++)
        for (int64_t i = 0; i < self->all; i++)
            du[i] += du[s * self->all + i];
    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < self->blocks; b++) {
        self->loops->filter_gradient(packed + b * panel, du + b * self->weight.depth * lanes,
                                     &self->weight);
        self->direct.loops->unpack(call->grad_param[0].data, packed + b * panel, &shape, b,
                                   run->accumulate);
    }
}

static co_status phase_conv_backward(co_call *call, const co_run *run)
{
    const phase_conv *self = call->self;
    const char *dy = cpu_address(&self->direct.grad_out, call);
    const int64_t slices = phase_conv_slices(self);
    const int threads = cpu_threads(call);
    float *du = direct_scratch(call, self->u_at);

    if (call->grad_in[0])
        return direct_backward(call, run);
    cpu_bring(&self->direct.back_src, call, threads);
    cpu_bring(&self->direct.grad_out, call, threads);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++)
        for (int64_t s = slices * t / threads; s < slices * (t + 1) / threads; s++)
            phase_conv_sum_slice(self, call, s, dy, cpu_own_scratch(call, t));
    phase_conv_finish(self, call, run, du, threads);
    if (call->n_param > 1)
        direct_find_bias(&self->direct, call, run, dy, direct_scratch(call, self->bias_at),
                         threads);
    return CO_OK;
}

const co_kernel co_cpu_phase_conv = {
    .op = "conv2d",
    .name = "winograd-phases",
    .reads = CPU_READS,
    .self_size = sizeof(phase_conv),
    .half = CPU_HALF,
    .supports = phase_conv_supports,
    .plan = phase_conv_plan,
    .plan_backward = phase_conv_plan_backward,
    .forward = phase_conv_forward,
    .backward = phase_conv_backward,
    .fini = direct_fini,
    .yields_half = true,
};
