/*
 * gemm.c - linear and conv2d by kernels of our own (kernels/cuda/gemm.cu), where no library has
 * them. The gradient of a weight is a sum over all samples: it is cut into parts, for more blocks
 * than the weight has tiles, by the shape alone.
 */
#include "kernels/cuda/gemm.h"

#include "backends/cuda/cuda.h"
#include "kernels/cuda/norm.h"

#define GEMM_DEPTH  16  /* parts are multiples of it */
#define GEMM_BLOCKS 256 /* that keep a large GPU busy */
#define GEMM_LEAST  256 /* k of a part */

static uint32_t gemm_divide(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static uint32_t gemm_tiles(const cuda_gemm *g)
{
    return gemm_divide(g->m, CUDA_TILE) * gemm_divide(g->n, CUDA_TILE) * g->groups;
}

static void gemm_cut(cuda_gemm *g, bool cut)
{
    const uint32_t wanted = cut ? gemm_divide(GEMM_BLOCKS, gemm_tiles(g)) : 1;
    const uint32_t most = gemm_divide(g->k, GEMM_LEAST);
    const uint32_t part = gemm_divide(g->k, wanted < most ? wanted : most);

    g->each = gemm_divide(part, GEMM_DEPTH) * GEMM_DEPTH;
    g->splits = gemm_divide(g->k, g->each);
}

static void gemm_launch(const co_call *call, cuda_kernel kernel, cuda_gemm *g)
{
    cuda_launch_blocks(call->queue, kernel, (size_t)gemm_tiles(g) * g->splits, g);
}

static size_t gemm_part_bytes(const cuda_gemm *g)
{
    return g->splits > 1 ? (size_t)g->splits * g->groups * g->m * g->n * sizeof(float) : 0;
}

/* The gradient of a weight; `g` has all but what it is written to. */
static void gemm_launch_weight(const co_call *call, const co_run *run, cuda_kernel kernel,
                               cuda_gemm *g)
{
    cuda_parts sum = {.out = call->grad_param[0].data,
                      .part = call->scratch,
                      .n = (size_t)g->groups * g->m * g->n,
                      .parts = g->splits,
                      .accumulate = run->accumulate};

    g->out = g->splits > 1 ? call->scratch : sum.out;
    g->accumulate = g->splits == 1 && run->accumulate;
    gemm_launch(call, kernel, g);
    if (g->splits > 1)
        cuda_launch(call->queue, CUDA_gemm_sum_parts, sum.n, &sum);
}

static co_status gemm_take_scratch(co_call *call, size_t weight, size_t bias)
{
    const size_t sums = call->n_param > 1 ? bias * sizeof(double) : 0;

    call->scratch_bytes = weight > sums ? weight : sums;
    return CO_OK;
}

/* ---- linear ---- */

static cuda_gemm linear_weight(const cuda_linear_size *s)
{
    cuda_gemm g = {.m = s->out,
                   .n = s->in,
                   .k = s->n,
                   .groups = 1,
                   .a_row = 1,
                   .a_col = s->out,
                   .b_row = s->in,
                   .b_col = 1};

    gemm_cut(&g, true);
    return g;
}

static co_status linear_plan_backward(co_call *call)
{
    const cuda_linear_size s = cuda_linear_sizes(call);
    const cuda_gemm weight = linear_weight(&s);

    return gemm_take_scratch(call, gemm_part_bytes(&weight), cuda_sums_room(s.n, s.out, 1));
}

static co_status linear_forward(co_call *call, const co_run *run)
{
    const cuda_linear_size s = cuda_linear_sizes(call);
    cuda_gemm g = {.out = call->out[0]->data,
                   .a = call->in[0]->data,
                   .b = call->param[0].data,
                   .bias = call->n_param > 1 ? call->param[1].data : NULL,
                   .m = s.n,
                   .n = s.out,
                   .k = s.in,
                   .groups = 1,
                   .a_row = s.in,
                   .a_col = 1,
                   .b_row = 1,
                   .b_col = s.in};

    (void)run;
    gemm_cut(&g, false);
    gemm_launch(call, CUDA_gemm_matrix, &g);
    return CO_OK;
}

static void linear_backward_input(const co_call *call, const cuda_linear_size *s)
{
    cuda_gemm g = {.out = call->grad_in[0]->data,
                   .a = call->grad_out[0]->data,
                   .b = call->param[0].data,
                   .m = s->n,
                   .n = s->in,
                   .k = s->out,
                   .groups = 1,
                   .a_row = s->out,
                   .a_col = 1,
                   .b_row = s->in,
                   .b_col = 1};

    gemm_cut(&g, false);
    gemm_launch(call, CUDA_gemm_matrix, &g);
}

static co_status linear_backward(co_call *call, const co_run *run)
{
    const cuda_linear_size s = cuda_linear_sizes(call);
    cuda_gemm weight = linear_weight(&s);

    if (call->grad_in[0])
        linear_backward_input(call, &s);
    weight.a = call->grad_out[0]->data;
    weight.b = call->in[0]->data;
    gemm_launch_weight(call, run, CUDA_gemm_matrix, &weight);
    cuda_sum_bias(call, run, (cuda_extent){s.n, s.out, 1}, call->grad_out[0]->data, call->scratch);
    return CO_OK;
}

/* ---- conv2d ---- */

static cuda_axis conv_axis(const co_call *call, int d)
{
    const co_conv2d_attr *a = call->attr;

    return (cuda_axis){.in = (int32_t)call->in[0]->shape.dim[2 + d],
                       .out = (int32_t)call->out[0]->shape.dim[2 + d],
                       .kernel = (int32_t)a->k[d],
                       .stride = (int32_t)a->s[d],
                       .padding = (int32_t)a->p[d],
                       .dilation = (int32_t)a->d[d]};
}

/* What the three products have in common. */
static cuda_gemm conv_sizes(const co_call *call)
{
    const co_conv2d_attr *a = call->attr;

    return (cuda_gemm){.groups = (uint32_t)a->groups,
                       .c = (uint32_t)(call->in[0]->shape.dim[1] / a->groups),
                       .o = (uint32_t)(call->out[0]->shape.dim[1] / a->groups),
                       .h = conv_axis(call, 0),
                       .w = conv_axis(call, 1)};
}

static uint32_t conv_taps(const cuda_gemm *g)
{
    return (uint32_t)(g->h.kernel * g->w.kernel);
}

/* All pixels of all samples. */
static uint32_t conv_pixels(const co_tensor *tensor)
{
    return (uint32_t)(co_shape_count(&tensor->shape) / tensor->shape.dim[1]);
}

static cuda_gemm conv_weight(const co_call *call)
{
    cuda_gemm g = conv_sizes(call);

    g.m = g.o;
    g.n = g.c * conv_taps(&g);
    g.k = conv_pixels(call->out[0]);
    gemm_cut(&g, true);
    return g;
}

static co_status conv_plan_backward(co_call *call)
{
    const cuda_gemm weight = conv_weight(call);
    const co_shape *out = &call->out[0]->shape;

    return gemm_take_scratch(
        call, gemm_part_bytes(&weight),
        cuda_sums_room((uint32_t)out->dim[0], (uint32_t)out->dim[1], cuda_plane(out)));
}

static co_status conv_forward(co_call *call, const co_run *run)
{
    cuda_gemm g = conv_sizes(call);

    (void)run;
    g.out = call->out[0]->data;
    g.a = call->param[0].data;
    g.b = call->in[0]->data;
    g.bias = call->n_param > 1 ? call->param[1].data : NULL;
    g.m = g.o;
    g.n = conv_pixels(call->out[0]);
    g.k = g.c * conv_taps(&g);
    gemm_cut(&g, false);
    gemm_launch(call, CUDA_gemm_conv, &g);
    return CO_OK;
}

static void conv_backward_input(const co_call *call)
{
    cuda_gemm g = conv_sizes(call);

    g.out = call->grad_in[0]->data;
    g.a = call->param[0].data;
    g.b = call->grad_out[0]->data;
    g.m = g.c;
    g.n = conv_pixels(call->grad_in[0]);
    g.k = g.o * conv_taps(&g);
    gemm_cut(&g, false);
    gemm_launch(call, CUDA_gemm_conv_input, &g);
}

static co_status conv_backward(co_call *call, const co_run *run)
{
    const co_shape *out = &call->out[0]->shape;
    cuda_gemm weight = conv_weight(call);

    if (call->grad_in[0])
        conv_backward_input(call);
    weight.a = call->grad_out[0]->data;
    weight.b = call->in[0]->data;
    gemm_launch_weight(call, run, CUDA_gemm_conv_weight, &weight);
    cuda_sum_bias(call, run,
                  (cuda_extent){(uint32_t)out->dim[0], (uint32_t)out->dim[1], cuda_plane(out)},
                  call->grad_out[0]->data, call->scratch);
    return CO_OK;
}

const co_kernel co_cuda_linear_tiles = {.op = "linear",
                                        .name = "tiles",
                                        .supports = cuda_fits,
                                        .plan_backward = linear_plan_backward,
                                        .forward = linear_forward,
                                        .backward = linear_backward};

const co_kernel co_cuda_conv2d_implicit_gemm = {.op = "conv2d",
                                                .name = "implicit-gemm",
                                                .supports = cuda_fits,
                                                .plan_backward = conv_plan_backward,
                                                .forward = conv_forward,
                                                .backward = conv_backward};
