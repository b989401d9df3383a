/*
 * rotary.c - queries and keys rotated by their positions.
 *
 *   a[t][i]     = t theta^(-2 i / D)         i < h = D / 2, for each head of queries and of keys
 *   y[t][i]     = x[t][i] cos a - x[t][i + h] sin a
 *   y[t][i + h] = x[t][i + h] cos a + x[t][i] sin a
 *
 * Values stay. Backward rotates dy by -a.
 */
#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"

/* `sign`: 1, or -1 to rotate back. */
static void rotary_run(const co_tensor *to, const co_tensor *from, const co_call *call,
                       const co_decoding *decoding, double sign)
{
    const co_rotary_attr *a = call->attr;
    const int64_t *dim = from->shape.dim, heads = a->heads + a->kv_heads;
    const int64_t size = dim[2] / (heads + a->kv_heads), half = size / 2;

    memmove(to->data, from->data, (size_t)co_shape_count(&from->shape) * sizeof(float));
    for (int64_t r = 0; r < dim[0] * dim[1]; r++) {
        const int64_t t = decoding ? decoding->position + r : r % dim[1];
        float *row = (float *)to->data + r * dim[2];

        for (int64_t h = 0; h < heads; h++, row += size)
            for (int64_t i = 0; i < half; i++) {
                const double angle = (double)t * pow(a->theta, -(double)i / (double)half);
                const double c = cos(angle), s = sign * sin(angle);
                const double first = (double)row[i], second = (double)row[i + half];

                row[i] = (float)(first * c - second * s);
                row[i + half] = (float)(second * c + first * s);
            }
    }
}

static co_status rotary_forward(co_call *call, const co_run *run)
{
    rotary_run(call->out[0], call->in[0], call, run->decoding, 1);
    return CO_OK;
}

static co_status rotary_backward(co_call *call, const co_run *run)
{
    (void)run;
    if (call->grad_in[0])
        rotary_run(call->grad_in[0], call->grad_out[0], call, NULL, -1);
    return CO_OK;
}

const co_kernel co_ref_rotary = {
    .op = "rotary",
    .decodes = true,
    .forward = rotary_forward,
    .backward = rotary_backward,
    .in_place = true,
};
