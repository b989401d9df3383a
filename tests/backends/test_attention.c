/*
 * test_attention.c - the loops of attention of every level of instructions against the definition
 * in double precision: rows of all remainders, and products so large that one weight is all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "backends/backends_test.h"
#include "kernels/attention/attention.h"

#define MOST_LENGTH 70
#define MOST_SIZE   33

static const attention_loops *const *find_all(void)
{
    static const attention_loops *const all[] = {
        KERNELS_LIST(attention_loops, &attention_loops_basic, NULL)};

    return all + kernels_too_new();
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void near(float got, double want, double error, const char *what, int64_t length, int64_t t)
{
    if (!(fabs((double)got - want) <= error * (1 + fabs(want))))
        fail_msg("%s of %lld positions at %lld: %.9g instead of %.9g", what, (long long)length,
                 (long long)t, (double)got, want);
}

/* The row of position t by the definition, and the logarithm of its sum of exponentials. */
static double find_row(double *y, const attention_head *x, int64_t t, const attention_shape *shape)
{
    const int64_t seen = shape->causal ? t + 1 : shape->length;
    double weight[MOST_LENGTH], most = -INFINITY, sum = 0;

    for (int64_t s = 0; s < seen; s++) {
        weight[s] =
            dot(x->q + t * shape->in, x->k + s * shape->in, shape->size) * (double)shape->scale;
        most = fmax(most, weight[s]);
    }
    for (int64_t s = 0; s < seen; s++)
        sum += weight[s] = exp(weight[s] - most);
    for (int64_t d = 0; d < shape->size; d++) {
        y[d] = 0;
        for (int64_t s = 0; s < seen; s++)
            y[d] += weight[s] / sum * (double)x->v[s * shape->in + d];
    }
    return most + log(sum);
}

static void check(const attention_loops *loops, const attention_shape *shape, float factor)
{
    const double error = factor > 1 ? 2e-5 : 2e-6; /* of large products, before the exponential */
    const int64_t n = shape->length * shape->in;
    float *q = make_numbers(1, n), *k = make_numbers(2, n), *v = make_numbers(3, n);
    float *y = make_numbers(4, shape->length * shape->out), *norm = make_numbers(5, n);
    float *room = co_calloc_aligned(loops->room(shape), sizeof(float));
    const attention_head x = {q, k, v};

    assert_non_null(room);
    for (int64_t i = 0; i < n; i++)
        q[i] *= factor;
    loops->forward(y, norm, &x, NULL, room, shape);
    for (int64_t t = 0; t < shape->length; t++) {
        double want[MOST_SIZE];

        near(norm[t], find_row(want, &x, t, shape), error, "norm", shape->length, t);
        for (int64_t d = 0; d < shape->size; d++)
            near(y[t * shape->out + d], want[d], error, "result", shape->length, t);
    }
    co_free(q);
    co_free(k);
    co_free(v);
    co_free(y);
    co_free(norm);
    co_free(room);
}

static void attention_forward_any_length_equals_definition(void **state)
{
    static const float factor[] = {1, 1e4F};

    (void)state;
    for (const attention_loops *const *loops = find_all(); *loops; loops++)
        for (int64_t length = 1; length <= MOST_LENGTH; length++)
            for (int i = 0; i < 4; i++)
                check(*loops,
                      &(attention_shape){.length = length,
                                         .size = i < 2 ? MOST_SIZE : 16,
                                         .in = MOST_SIZE + 2,
                                         .out = MOST_SIZE,
                                         .scale = 0.25F,
                                         .causal = length % 3 > 0},
                      factor[i % 2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_forward_any_length_equals_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
