/*
 * attention_decode.c - attention of positions that come one after the other: keys and values of
 * all earlier ones are kept. The equations are those of attention.c, with t the position.
 *
 * kept: (positions, 2 kv_heads D), of each position the keys of all heads, then the values.
 */
#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"

/* z[s] for s up to t, and their maximum. */
static double decode_products(double *z, const float *q, const float *k, int64_t row, int64_t size,
                              int64_t t)
{
    double most = -INFINITY;

    for (int64_t s = 0; s <= t; s++) {
        double sum = 0;

        for (int64_t d = 0; d < size; d++)
            sum += (double)q[d] * (double)k[s * row + d];
        z[s] = sum / sqrt((double)size);
        most = fmax(most, z[s]);
    }
    return most;
}

static void decode_head(float *y, const float *q, const float *k, const float *v, double *p,
                        int64_t row, int64_t size, int64_t t)
{
    const double most = decode_products(p, q, k, row, size, t);
    double sum = 0;

    for (int64_t s = 0; s <= t; s++) {
        p[s] = exp(p[s] - most);
        sum += p[s];
    }
    for (int64_t d = 0; d < size; d++) {
        double mean = 0;

        for (int64_t s = 0; s <= t; s++)
            mean += p[s] * (double)v[s * row + d];
        y[d] = (float)(mean / sum);
    }
}

void ref_attention_decode(const co_call *call, const co_decoding *decoding)
{
    const co_attention_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, size = call->out[0]->shape.dim[2] / a->heads;
    const int64_t row = 2 * a->kv_heads * size;
    float *kept = decoding->kept[call->node];

    for (int64_t n = 0; n < in[0]; n++) {
        const float *x = (const float *)call->in[0]->data + n * in[2];
        float *y = (float *)call->out[0]->data + n * a->heads * size;
        const int64_t t = decoding->position + n;

        memcpy(kept + t * row, x + a->heads * size, (size_t)row * sizeof(*kept));
        for (int64_t h = 0; h < a->heads; h++) {
            const float *k = kept + h * a->kv_heads / a->heads * size;

            decode_head(y + h * size, x + h * size, k, k + a->kv_heads * size, call->scratch, row,
                        size, t);
        }
    }
}
