/*
 * attention.c - weighted means over the positions of a sequence, for each sample and head.
 *
 *   z[t][s]  = q[t] . k[s] / sqrt(D)           s up to t if causal, else all positions
 *   p[t][s]  = exp(z[t][s]) / sum_r exp(z[t][r])
 *   y[t]     = sum_s m[t][s] p[t][s] v[s]
 *
 *   dv[s]    = sum_t m[t][s] p[t][s] dy[t]
 *   dp[t][s] = m[t][s] dy[t] . v[s]
 *   dz[t][s] = p[t][s] (dp[t][s] - sum_r p[t][r] dp[t][r])
 *   dq[t]    = sum_s dz[t][s] k[s] / sqrt(D)
 *   dk[s]    = sum_t dz[t][s] q[t] / sqrt(D)
 *
 * m is 1, or in training with dropout that of dropout.c for (heads, T, T) of each sample; it is
 * made again in backward. Heads that share keys and values add up their parts of dk and dv.
 */
#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "core/rng.h"

/* A head of a sample: rows of q, k, v begin `in` numbers after each other, those of y `out`. */
typedef struct attention_head {
    int64_t size, length, in, out;
    int64_t q, k, v; /* where their first row begins in the sample */
    bool causal;
    double dropout; /* 0: none */
    co_rng rng;     /* of it */
    int64_t first;  /* number of the head's first weight there */
} attention_head;

/* Sample n, head h. */
static attention_head attention_find(const co_call *call, const co_run *run, int64_t n, int64_t h)
{
    const co_attention_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t size = out[2] / a->heads, shared = h * a->kv_heads / a->heads;

    return (attention_head){.size = size,
                            .length = in[1],
                            .in = in[2],
                            .out = out[2],
                            .q = h * size,
                            .k = (a->heads + shared) * size,
                            .v = (a->heads + a->kv_heads + shared) * size,
                            .causal = a->causal,
                            .dropout = call->training ? a->dropout : 0,
                            .rng = {run->seed, CO_RNG_DROPOUT | call->node << 8,
                                    run->values->given.step, run->sample ? run->sample[n] : 0},
                            .first = h * in[1] * in[1]};
}

static double attention_dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* p[t]; returns how many positions t looks at. */
static int64_t attention_weights(double *p, const float *x, const attention_head *head, int64_t t)
{
    const int64_t seen = head->causal ? t + 1 : head->length;
    double most = -INFINITY, sum = 0;

    for (int64_t s = 0; s < seen; s++) {
        p[s] = attention_dot(x + head->q + t * head->in, x + head->k + s * head->in, head->size) /
               sqrt((double)head->size);
        most = fmax(most, p[s]);
    }
    for (int64_t s = 0; s < seen; s++) {
        p[s] = exp(p[s] - most);
        sum += p[s];
    }
    for (int64_t s = 0; s < seen; s++)
        p[s] /= sum;
    return seen;
}

/* m[t], of the `seen` positions that t looks at */
static void attention_factors(double *m, const attention_head *head, int64_t t, int64_t seen)
{
    for (int64_t s = 0; s < seen; s++) {
        const uint64_t number = (uint64_t)(head->first + t * head->length + s);

        m[s] = head->dropout <= 0 ? 1
               : (double)co_rng_to_unit(co_rng_word(&head->rng, number)) < head->dropout
                   ? 0
                   : 1 / (1 - head->dropout);
    }
}

/* p, dp and m of a position, then dx of a sample, all in double. */
static co_status attention_plan(co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim;
    const size_t rows = 3 * (size_t)(call->decode ? call->decode : in[1]);

    call->scratch_bytes = (rows + (call->training ? (size_t)(in[1] * in[2]) : 0)) * sizeof(double);
    return CO_OK;
}

/* `y` begins at the head's part. */
static void attention_forward_head(float *y, const float *x, double *p, const attention_head *head)
{
    double *m = p + 2 * head->length;

    for (int64_t t = 0; t < head->length; t++) {
        const int64_t seen = attention_weights(p, x, head, t);

        attention_factors(m, head, t, seen);
        for (int64_t d = 0; d < head->size; d++) {
            double sum = 0;

            for (int64_t s = 0; s < seen; s++)
                sum += m[s] * p[s] * (double)x[head->v + s * head->in + d];
            y[t * head->out + d] = (float)sum;
        }
    }
}

static co_status attention_forward(co_call *call, const co_run *run)
{
    const co_attention_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim;
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    if (run->decoding) {
        ref_attention_decode(call, run->decoding);
        return CO_OK;
    }
    for (int64_t n = 0; n < in[0]; n++)
        for (int64_t h = 0; h < a->heads; h++) {
            const attention_head head = attention_find(call, run, n, h);

            attention_forward_head(y + n * head.length * head.out + head.q,
                                   x + n * head.length * head.in, call->scratch, &head);
        }
    return CO_OK;
}

/* Adds the part of position t to dx of its sample; dy begins at the head's part. */
static void attention_backward_position(double *dx, const float *x, const float *dy, double *p,
                                        const attention_head *head, int64_t t)
{
    const int64_t seen = attention_weights(p, x, head, t), q = head->q + t * head->in;
    double *dp = p + head->length, *m = dp + head->length, mean = 0;

    attention_factors(m, head, t, seen);
    dy += t * head->out;
    for (int64_t s = 0; s < seen; s++) {
        dp[s] = m[s] * attention_dot(dy, x + head->v + s * head->in, head->size);
        mean += p[s] * dp[s];
    }
    for (int64_t s = 0; s < seen; s++) {
        const int64_t k = head->k + s * head->in, v = head->v + s * head->in;
        const double dz = p[s] * (dp[s] - mean) / sqrt((double)head->size);

        for (int64_t d = 0; d < head->size; d++) {
            dx[q + d] += dz * (double)x[k + d];
            dx[k + d] += dz * (double)x[q + d];
            dx[v + d] += m[s] * p[s] * (double)dy[d];
        }
    }
}

static co_status attention_backward(co_call *call, const co_run *run)
{
    const co_attention_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, sample = in[1] * in[2];
    const float *x = call->in[0]->data, *dy = call->grad_out[0]->data;
    double *p = call->scratch, *sum = p + 3 * in[1];
    float *dx = ref_data(call->grad_in[0]);

    for (int64_t n = 0; dx && n < in[0]; n++) {
        memset(sum, 0, (size_t)sample * sizeof(*sum));
        for (int64_t h = 0; h < a->heads; h++) {
            const attention_head head = attention_find(call, run, n, h);

            for (int64_t t = 0; t < head.length; t++)
                attention_backward_position(sum, x + n * sample,
                                            dy + n * head.length * head.out + head.q, p, &head, t);
        }
        for (int64_t i = 0; i < sample; i++)
            dx[n * sample + i] = (float)sum[i];
    }
    return CO_OK;
}

static bool attention_supports(const co_call *call, const char **why)
{
    *why = "later positions are not known yet";
    return !call->decode || ((const co_attention_attr *)call->attr)->causal;
}

const co_kernel co_ref_attention = {
    .op = "attention",
    .decodes = true,
    .supports = attention_supports,
    .plan = attention_plan,
    .forward = attention_forward,
    .backward = attention_backward,
};
