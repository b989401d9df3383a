/*
 * window_conv.c - convolution of few channels, as first layers are, by the tiles of
 * kernels/direct_conv: what a row of the kernel meets of all channels becomes a block of channels,
 * WINDOW_COLUMNS numbers of each, so that a tile is full and a step of a sum is a row of the
 * kernel.
 *
 * Windows are made for some rows of results at a time, in the memory of one thread, and stay in its
 * second-level cache. The gradient of the weight is summed up piece after piece, each sum by one
 * thread, so the number of threads changes no bit. Where the gradient of the input is wanted, which
 * first layers have none of, both are computed as by direct_conv.c.
 */
#include "backends/cpu/window_conv.h"

#include <string.h>

#include "core/isa.h"
#include "core/parallel.h"

#define WINDOW_COLUMNS       8 /* numbers of a channel in a window */
#define WINDOW_CHANNELS      (CPU_AMX_BLOCK / WINDOW_COLUMNS)
#define WINDOW_TAPS          16 /* most rows of a kernel */
#define WINDOW_LEAST_RESULTS 16
#define WINDOW_BYTES         (1 << 18) /* of windows that stay in a second-level cache */

typedef uint16_t window_numbers __attribute__((vector_size(WINDOW_COLUMNS * sizeof(uint16_t))));

bool window_conv_fits(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;

    *why = "its tensors are not bf16";
    if (call->in[0]->dtype != CO_BF16 || call->out[0]->dtype != CO_BF16)
        return false;
    *why = "its channels are many or in groups";
    if (a->groups != 1 || call->in[0]->shape.dim[1] > WINDOW_CHANNELS)
        return false;
    *why = "its kernel is large or has gaps";
    return a->k[0] <= WINDOW_TAPS && a->k[1] <= WINDOW_COLUMNS && a->d[0] == 1 && a->d[1] == 1;
}

/* --- planning --- */

/* Rows of results whose windows, of `bytes` a row of the image, stay in the cache. */
static int64_t window_fit(const window_conv *self, int64_t bytes)
{
    const int64_t rows = (WINDOW_BYTES / bytes - self->taps) / self->stride[0] + 1;

    return direct_least(rows > 1 ? rows : 1, self->rows);
}

/* Rows of the image that n rows of results meet. */
static int64_t window_reach(const window_conv *self, int64_t n)
{
    return (n - 1) * self->stride[0] + self->taps;
}

static int64_t window_panel(const window_conv *self)
{
    return self->taps * direct_square(&self->direct);
}

static size_t window_take(co_call *call, size_t *used, int64_t words)
{
    return cpu_take_scratch(call, used, (size_t)words * sizeof(float));
}

static int64_t window_lines_words(const window_conv *self)
{
    const int64_t pairs = self->weight_rows * self->pairs;

    return direct_divide_up(pairs, DIRECT_CONV_AFTER) * DIRECT_CONV_AFTER * CPU_AMX_BLOCK;
}

/* Rows of one rest of the stride that a piece of the gradient meets, and their words. */
static int64_t window_phase_rows(const window_conv *self)
{
    return self->weight_rows + (self->taps - 1) / self->stride[0];
}

static int64_t window_phase_words(const window_conv *self)
{
    return (window_phase_rows(self) * self->pairs + DIRECT_CONV_AFTER) * CPU_AMX_BLOCK;
}

static void window_need_line(co_call *call, const window_conv *self, int64_t words)
{
    const size_t line = (size_t)(self->channels * self->line) * sizeof(uint16_t);

    cpu_need_scratch(call, 0, (size_t)words * sizeof(float) + line);
}

co_status window_conv_plan_with(co_call *call, const direct_conv_loops *loops)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *out = call->out[0]->shape.dim;
    window_conv *self = call->self;
    size_t used = 0;

    CO_TRY(direct_plan_with(call, loops));
    self->direct.keeps = false; /* what it would pack are other weights */
    call->workspace_bytes = 0;
    self->channels = call->in[0]->shape.dim[1];
    self->taps = a->k[0];
    self->width = a->k[1];
    self->rows = out[2];
    self->columns = out[3];
    self->pairs = direct_divide_up(out[3], 2);
    for (int i = 0; i < 2; i++) {
        self->stride[i] = a->s[i];
        self->padding[i] = a->p[i];
    }
    self->blocks = direct_divide_up(out[1], loops->lanes);
    self->forward_rows =
        window_fit(self, self->columns * CPU_AMX_BLOCK * (int64_t)sizeof(uint16_t));
    self->weight_rows = window_fit(self, self->pairs * CPU_AMX_BLOCK * (int64_t)sizeof(float));
    self->line = 2 * self->pairs * self->stride[1] + WINDOW_COLUMNS;
    self->direct.src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->packed_at =
        window_take(call, &used, direct_words(&self->direct, self->blocks * window_panel(self)));
    self->room_at = window_take(call, &used, window_panel(self));
    self->windows_at = window_take(call, &used, a->out * self->taps * CPU_AMX_BLOCK);
    self->bias_at = window_take(call, &used, self->blocks * CPU_AMX_BLOCK);
    window_need_line(call, self,
                     window_reach(self, self->forward_rows) * self->columns * loops->words);
    return CO_OK;
}

co_status window_conv_plan_backward(co_call *call)
{
    window_conv *self = call->self;
    size_t used = 0;

    if (call->grad_in[0])
        return direct_plan_backward(call);
    self->direct.back_src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->direct.grad_out =
        cpu_plan_operand(call, &used, call->grad_out[0], cpu_blocks(CPU_AMX_BLOCK));
    self->gradient_at = window_take(call, &used, self->blocks * window_panel(self));
    self->gradient_windows_at =
        window_take(call, &used, self->direct.weight.out * self->taps * CPU_AMX_BLOCK);
    self->gradient_bias_at = window_take(call, &used, self->blocks * CPU_AMX_BLOCK);
    self->pairs_at = window_take(call, &used, self->stride[0] * window_phase_words(self));
    self->lines_at = window_take(call, &used, self->blocks * window_lines_words(self));
    window_need_line(call, self, 0);
    return CO_OK;
}

/* --- weights --- */

/* A weight (out, channels, taps, width) as one of windows, (out, CPU_AMX_BLOCK, taps). */
static direct_conv_weight window_weight(const window_conv *self)
{
    return (direct_conv_weight){
        .out = self->direct.weight.out, .in = CPU_AMX_BLOCK, .taps = self->taps, .blocks = true};
}

/* Where an element of the weight's row of an output is among those of windows. */
static int64_t window_place(const window_conv *self, int64_t i)
{
    const int64_t column = i % self->width, tap = i / self->width % self->taps;
    const int64_t channel = i / self->width / self->taps;

    return (channel * WINDOW_COLUMNS + column) * self->taps + tap;
}

static void window_pack(const window_conv *self, const co_call *call)
{
    const direct_conv_loops *loops = self->direct.loops;
    const direct_conv_weight shape = window_weight(self);
    const int64_t row = self->channels * self->taps * self->width, panel = window_panel(self);
    const float *weight = call->param[0].data;
    float *windows = direct_scratch(call, self->windows_at), *room;

    memset(windows, 0, (size_t)(shape.out * shape.in * shape.taps) * sizeof(float));
    for (int64_t i = 0; i < row; i++) {
        const int64_t place = window_place(self, i);

        for (int64_t o = 0; o < shape.out; o++)
            windows[o * shape.in * shape.taps + place] = weight[o * row + i];
    }
    room = direct_scratch(call, self->room_at);
    for (int64_t k = 0; k < self->blocks; k++) {
        float *packed =
            direct_scratch(call, self->packed_at) + k * direct_words(&self->direct, panel);

        loops->pack(room, windows, &shape, k);
        loops->halve(packed, room, panel / 2, CPU_AMX_BLOCK);
    }
}

/* The gradient of the weight from the sums of windows. */
static void window_unpack(const window_conv *self, const co_call *call, const co_run *run)
{
    const direct_conv_weight shape = window_weight(self);
    const int64_t row = self->channels * self->taps * self->width;
    float *windows = direct_scratch(call, self->gradient_windows_at),
          *gradient = call->grad_param[0].data;

    for (int64_t k = 0; k < self->blocks; k++)
        self->direct.loops->unpack(windows,
                                   direct_scratch(call, self->gradient_at) + k * window_panel(self),
                                   &shape, k, false);
    for (int64_t i = 0; i < row; i++) {
        const int64_t place = window_place(self, i);

        for (int64_t o = 0; o < shape.out; o++) {
            const float sum = windows[o * shape.in * shape.taps + place];
            float *to = gradient + o * row + i;

            *to = run->accumulate ? *to + sum : sum;
        }
    }
}

/* --- windows --- */

/* A row of the image, of all channels, between zeros; false: there is no such row. */
static bool window_bring_row(const window_conv *self, uint16_t *line, const uint16_t *x,
                             const int64_t *in, int64_t row)
{
    const int64_t left = self->padding[1], room = self->line - left;
    const int64_t n = in[3] < room ? in[3] : room;

    if (row < 0 || row >= in[2])
        return false;
    for (int64_t c = 0; c < self->channels; c++, line += self->line, x += in[2] * in[3]) {
        memset(line, 0, (size_t)left * sizeof(*line));
        memcpy(line + left, x + row * in[3], (size_t)n * sizeof(*line));
        memset(line + left + n, 0, (size_t)(room - n) * sizeof(*line));
    }
    return true;
}

/* The numbers of a channel that there are in a window. */
static window_numbers window_mask(const window_conv *self)
{
    window_numbers mask;

    for (int i = 0; i < WINDOW_COLUMNS; i++)
        mask[i] = i < self->width ? UINT16_MAX : 0;
    return mask;
}

/* What a window has of channel c, whose row in the image begins at `line`, from column `at` on. */
static window_numbers window_read(const window_conv *self, const uint16_t *line, int64_t c,
                                  int64_t at, window_numbers mask)
{
    window_numbers numbers = {0};

    if (c < self->channels)
        memcpy(&numbers, line + c * self->line + at, sizeof(numbers));
    return numbers & mask;
}

/* A window for each result of a row. */
static void window_make(const window_conv *self, uint16_t *to, const uint16_t *line, bool inside)
{
    const window_numbers mask = window_mask(self);

    if (!inside) {
        memset(to, 0, (size_t)(self->columns * CPU_AMX_BLOCK) * sizeof(*to));
        return;
    }
    for (int64_t i = 0; i < self->columns; i++, to += CPU_AMX_BLOCK)
        for (int64_t c = 0; c < WINDOW_CHANNELS; c++) {
            const window_numbers numbers = window_read(self, line, c, i * self->stride[1], mask);

            memcpy(to + c * WINDOW_COLUMNS, &numbers, sizeof(numbers));
        }
}

/* The same in pairs of neighbours. After an odd number of results comes what is multiplied by 0:
   numbers of the image, or zeros. */
static void window_make_pairs(const window_conv *self, float *words, const uint16_t *line,
                              bool inside)
{
    const window_numbers mask = window_mask(self);
    uint16_t *to = (uint16_t *)(void *)words;

    if (!inside) {
        memset(to, 0, (size_t)(self->pairs * CPU_AMX_BLOCK) * sizeof(*words));
        return;
    }
    for (int64_t i = 0; i < self->pairs; i++, to += 2 * CPU_AMX_BLOCK)
        for (int64_t c = 0; c < WINDOW_CHANNELS; c++) {
            const int64_t at = 2 * i * self->stride[1];
            const window_numbers a = window_read(self, line, c, at, mask);
            const window_numbers b = window_read(self, line, c, at + self->stride[1], mask);
            const window_numbers pairs[2] = {
                __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
                __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)};

            memcpy(to + 2 * c * WINDOW_COLUMNS, pairs, sizeof(pairs));
        }
}

/* --- forward --- */

/* Rows [first, first + n) of the results of sample `s`. */
static void window_run_piece(const window_conv *self, const co_call *call, int64_t s, int64_t first,
                             int64_t n, const float *bias, char *own)
{
    const int64_t *in = call->in[0]->shape.dim;
    const int64_t row = self->columns * CPU_AMX_BLOCK, block = self->rows * row;
    const uint16_t *x = cpu_address(&self->direct.src, call);
    uint16_t *windows = (uint16_t *)(void *)own;
    uint16_t *line = windows + window_reach(self, self->forward_rows) * row;
    uint16_t *y = (uint16_t *)call->out[0]->data + s * self->blocks * block + first * row;
    int64_t at[WINDOW_TAPS];
    const direct_conv_sum sum = {at, self->taps, true};
    const direct_conv_area area = {
        .rows = n,
        .pixels = self->columns,
        .y_row = row,
        .y_pixel = CPU_AMX_BLOCK,
        .y_block = block,
        .x_row = self->stride[0] * row / 2,
        .x_pixel = CPU_AMX_BLOCK / 2,
        .past = direct_goes_past(&self->direct, in[0] * self->blocks * block)};

    for (int64_t i = 0; i < window_reach(self, n); i++) {
        const bool inside = window_bring_row(self, line, x + s * self->channels * in[2] * in[3], in,
                                             first * self->stride[0] - self->padding[0] + i);

        window_make(self, windows + i * row, line, inside);
    }
    for (int64_t t = 0; t < self->taps; t++)
        at[t] = t * row / 2;
    for (int64_t k = 0; k < self->blocks; k += self->direct.loops->together) {
        const int64_t panel = direct_words(&self->direct, window_panel(self));

        self->direct.loops->multiply(
            y + k * block, (const float *)(const void *)windows,
            direct_scratch(call, self->packed_at) + k * panel, panel,
            bias ? bias + k * CPU_AMX_BLOCK : NULL,
            (int)direct_least(self->direct.loops->together, self->blocks - k), &area, &sum);
    }
}

co_status window_conv_forward(co_call *call, const co_run *run)
{
    const window_conv *self = call->self;
    const int threads = cpu_threads(call);
    const int64_t pieces = direct_divide_up(self->rows, self->forward_rows);
    const int64_t all = call->in[0]->shape.dim[0] * pieces;
    const float *bias = direct_bring_bias(&self->direct, call, direct_scratch(call, self->bias_at));

    (void)run;
    cpu_bring(&self->direct.src, call, threads);
    window_pack(self, call);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++)
        for (int64_t i = all * t / threads; i < all * (t + 1) / threads; i++) {
            const int64_t first = self->rows * (i % pieces) / pieces;
            const int64_t end = self->rows * (i % pieces + 1) / pieces;

            window_run_piece(self, call, i / pieces, first, end - first, bias,
                             cpu_own_scratch(call, t));
        }
    return CO_OK;
}

/* --- the gradient of the weight --- */

/* Pairs of windows for n rows of results, by the rest that a row of the image leaves. */
static void window_bring_pairs(const window_conv *self, const co_call *call, int64_t s,
                               int64_t first, int64_t n, int threads)
{
    const int64_t *in = call->in[0]->shape.dim, step = self->stride[0];
    const int64_t rows = n + (self->taps - 1) / step, phase = window_phase_words(self);
    const uint16_t *x = (const uint16_t *)cpu_address(&self->direct.back_src, call) +
                        s * self->channels * in[2] * in[3];
    float *pairs = direct_scratch(call, self->pairs_at);

    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++)
        for (int64_t i = rows * step * t / threads; i < rows * step * (t + 1) / threads; i++) {
            uint16_t *line = cpu_own_scratch(call, t);
            const bool inside =
                window_bring_row(self, line, x, in, first * step - self->padding[0] + i);

            window_make_pairs(self,
                              pairs + i % step * phase + i / step * self->pairs * CPU_AMX_BLOCK,
                              line, inside);
        }
    for (int64_t p = 0; p < step; p++)
        memset(pairs + p * phase + rows * self->pairs * CPU_AMX_BLOCK, 0,
               (size_t)(DIRECT_CONV_AFTER * CPU_AMX_BLOCK) * sizeof(float));
}

/* Adds the part of n rows of results of sample `s`. */
static void window_add_piece(const window_conv *self, const co_call *call, int64_t s, int64_t first,
                             int64_t n, const uint16_t *dy, int threads)
{
    static const int64_t step[2] = {1, 1};
    const direct_conv_spread how = {.h = n,
                                    .w = self->columns,
                                    .rows = n,
                                    .columns = self->columns,
                                    .step = step,
                                    .blocks = true};
    const int64_t row = self->columns * CPU_AMX_BLOCK, words = window_lines_words(self);
    const direct_conv_walk walk = {
        .samples = 1, .rows = 1, .pixels = n * self->pairs, .dy_block = words};
    const float *pairs = direct_scratch(call, self->pairs_at);
    float *lines = direct_scratch(call, self->lines_at);
    int64_t at[WINDOW_TAPS];
    const direct_conv_sum sum = {at, self->taps, true};

    window_bring_pairs(self, call, s, first, n, threads);
    for (int64_t t = 0; t < self->taps; t++)
        at[t] = t % self->stride[0] * window_phase_words(self) +
                t / self->stride[0] * self->pairs * CPU_AMX_BLOCK;
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < self->blocks; k++) {
        const uint16_t *from = dy + ((s * self->blocks + k) * self->rows + first) * row;
        const bool add = s > 0 || first > 0;

        self->direct.loops->lines(lines + k * words, from, &how);
        self->direct.loops->correlate(
            direct_scratch(call, self->gradient_at) + k * window_panel(self), window_panel(self),
            pairs, lines + k * words, 1, &walk, &sum, add);
    }
}

co_status window_conv_backward(co_call *call, const co_run *run)
{
    const window_conv *self = call->self;
    const char *dy = cpu_address(&self->direct.grad_out, call);
    const int64_t pieces = direct_divide_up(self->rows, self->weight_rows);
    const int threads = cpu_threads(call);

    if (call->grad_in[0])
        return direct_backward(call, run);
    cpu_bring(&self->direct.back_src, call, threads);
    cpu_bring(&self->direct.grad_out, call, threads);
    for (int64_t i = 0; i < call->in[0]->shape.dim[0] * pieces; i++) {
        const int64_t first = self->rows * (i % pieces) / pieces;
        const int64_t end = self->rows * (i % pieces + 1) / pieces;

        window_add_piece(self, call, i / pieces, first, end - first,
                         (const uint16_t *)(const void *)dy, threads);
    }
    window_unpack(self, call, run);
    if (call->n_param > 1)
        direct_find_bias(&self->direct, call, run, dy, direct_scratch(call, self->gradient_bias_at),
                         threads);
    return CO_OK;
}

/* --- the kernel --- */

#ifdef CO_KERNELS_X86
static co_status window_conv_plan(co_call *call)
{
    return window_conv_plan_with(call, &direct_conv_loops_amx);
}

/* With fewer results most of a block is padding, which takes memory, too. */
static bool window_conv_supports(const co_call *call, const char **why)
{
    *why = "this CPU has no AMX";
    if (!co_isa_has(CO_ISA_AMX))
        return false;
    *why = "its results are few";
    if (call->out[0]->shape.dim[1] < WINDOW_LEAST_RESULTS)
        return false;
    return window_conv_fits(call, why) && cpu_takes(call, why);
}
#else
#define window_conv_plan NULL /* never asked */

static bool window_conv_supports(const co_call *call, const char **why)
{
    (void)call;
    *why = "this CPU has no AMX";
    return false;
}
#endif

const co_kernel co_cpu_window_conv = {
    .op = "conv2d",
    .name = "amx-windows",
    .reads = CPU_READS,
    .self_size = sizeof(window_conv),
    .half = CPU_HALF,
    .supports = window_conv_supports,
    .plan = window_conv_plan,
    .plan_backward = window_conv_plan_backward,
    .forward = window_conv_forward,
    .backward = window_conv_backward,
    .fini = direct_fini,
};
