/*
 * test_dropout.c - every backend drops the elements that ops.h specifies, which depend neither on
 * the number of ranks nor on a sample's place in the batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "cases.h"
#include "core/rng.h"

#define DROPOUT_NODE 1 /* after the harness's source */

typedef struct dropout_case {
    ops_case c;
    double p;
    int64_t span; /* elements dropped together */
} dropout_case;

static const dropout_case dropout_cases[] = {
    {{"rows", 4, {1, {37}}, "dropout {p: 0.5}", false}, 0.5, 1},
    {{"images", 3, {3, {5, 3, 7}}, "dropout {p: 0.25}", false}, 0.25, 1},
    {{"rarely", 2, {1, {400}}, "dropout {p: 0.01}", false}, 0.01, 1},
    {{"sequences", 3, {2, {5, 37}}, "dropout {p: 0.3}", false}, 0.3, 1},
    {{"short sequences", 2, {2, {1, 3}}, "dropout {p: 0.5}", false}, 0.5, 1},
    {{"channels", 3, {3, {19, 2, 3}}, "dropout2d {p: 0.5}", false}, 0.5, 6},
    {{"channels of one", 2, {3, {33, 1, 1}}, "dropout2d {p: 0.9}", false}, 0.9, 1},
};

/* The factor of element e of sample n, as ops.h defines it. */
static float dropout_factor(const harness *h, const dropout_case *d, int64_t n, int64_t e)
{
    const co_run run = harness_run(h);
    const co_rng rng = {run.seed, CO_RNG_DROPOUT | DROPOUT_NODE << 8, run.values->given.step,
                        run.sample[n]};
    const float u = co_rng_to_unit(co_rng_word(&rng, (uint64_t)(e / d->span)));

    return (double)u < d->p ? 0 : (float)(1 / (1 - d->p));
}

static void dropout_check(const dropout_case *d, const co_backend *const *list)
{
    const harness_mode train = {.backends = list, .training = true}, eval = {.backends = list};
    harness *h = cases_create(&d->c);
    const float *x = harness_values(h, harness_param(h, "source.value"));
    const int64_t count = co_shape_count(&d->c.sample);
    harness_result result;

    assert_string_equal(h->graph->node[DROPOUT_NODE].op->name,
                        d->span > 1 || d->c.net[7] == '2' ? "dropout2d" : "dropout");
    assert_int_equal(harness_measure(&result, h, &train, false), CO_OK);
    for (int64_t i = 0; i < d->c.batch * count; i++) {
        const float want = x[i] * dropout_factor(h, d, i / count, i % count);

        if (!(fabsf(result.out[i] - want) <= 1e-6f * fabsf(want)))
            fail_msg("%s on %s: y[%d] is %.8g, expected %.8g", d->c.name, list[0]->name, (int)i,
                     (double)result.out[i], (double)want);
    }
    harness_result_free(&result);
    assert_int_equal(harness_measure(&result, h, &eval, false), CO_OK);
    assert_memory_equal(result.out, x, (size_t)(d->c.batch * count) * sizeof(float));
    harness_result_free(&result);
    harness_destroy(h);
}

static void dropout_of_every_backend_equals_definition(void **state)
{
    (void)state;
    for (const co_backend *const *b = co_backends; *b; b++) {
        const co_backend *const list[] = {*b, &co_backend_ref, NULL};

        for (size_t i = 0; i < sizeof(dropout_cases) / sizeof(dropout_cases[0]); i++)
            dropout_check(&dropout_cases[i], list);
    }
}

#define ATTENTION_LENGTH 7
#define ATTENTION_HEADS  3

/* With values of 1, a result is the sum of what the weights of its position count, and with keys of
   0 each weight is 1 / (how many positions it looks at). */
static float attention_sum(const harness *h, double p, int64_t n, int64_t head, int64_t t)
{
    const co_run run = harness_run(h);
    const co_rng rng = {run.seed, CO_RNG_DROPOUT | DROPOUT_NODE << 8, run.values->given.step,
                        run.sample[n]};
    double sum = 0;

    for (int64_t s = 0; s <= t; s++) {
        const int64_t number = (head * ATTENTION_LENGTH + t) * ATTENTION_LENGTH + s;
        const float u = co_rng_to_unit(co_rng_word(&rng, (uint64_t)number));

        sum += (double)u < p ? 0 : 1 / (1 - p) / (double)(t + 1);
    }
    return (float)sum;
}

static void attention_check(const ops_case *c, double p, const co_backend *const *list)
{
    const harness_mode train = {.backends = list, .training = true}, eval = {.backends = list};
    const int64_t rows = c->batch * ATTENTION_LENGTH;
    harness *h = cases_create(c);
    float *x = harness_values(h, harness_param(h, "source.value"));
    harness_result result;

    for (int64_t i = 0; i < rows * 3 * ATTENTION_HEADS; i++)
        x[i] = i / ATTENTION_HEADS % 3 == 2 ? 1 : 0; /* queries and keys 0, values 1 */
    assert_int_equal(harness_measure(&result, h, &train, false), CO_OK);
    for (int64_t i = 0; i < rows * ATTENTION_HEADS; i++) {
        const int64_t row = i / ATTENTION_HEADS, head = i % ATTENTION_HEADS;
        const float want =
            attention_sum(h, p, row / ATTENTION_LENGTH, head, row % ATTENTION_LENGTH);

        if (!(fabsf(result.out[i] - want) <= 1e-5f))
            fail_msg("attention, p %g, on %s: y[%d] is %.8g, expected %.8g", p, list[0]->name,
                     (int)i, (double)result.out[i], (double)want);
    }
    harness_result_free(&result);
    assert_int_equal(harness_measure(&result, h, &eval, false), CO_OK);
    for (int64_t i = 0; i < rows * ATTENTION_HEADS; i++)
        assert_true(fabsf(result.out[i] - 1) <= 1e-6f);
    harness_result_free(&result);
    harness_destroy(h);
}

static void dropout_of_attention_equals_definition(void **state)
{
    static const struct {
        ops_case c;
        double p;
    } cases[] = {
        {{"half", 3, {2, {ATTENTION_LENGTH, 9}}, "attention {heads: 3, dropout: 0.5}", false}, 0.5},
        {{"few", 2, {2, {ATTENTION_LENGTH, 9}}, "attention {heads: 3, dropout: 0.1}", false}, 0.1},
    };

    (void)state;
    for (const co_backend *const *b = co_backends; *b; b++) {
        const co_backend *const list[] = {*b, &co_backend_ref, NULL};

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
            attention_check(&cases[i].c, cases[i].p, list);
    }
}

/* Rules out a wrong random stream that happens to drop nothing. */
static void dropout_fraction_of_zeros_is_p(void **state)
{
    const dropout_case d = {{"many", 10, {1, {1000}}, "dropout {p: 0.3}", false}, 0.3, 1};
    harness *h = cases_create(&d.c);
    int dropped = 0;

    (void)state;
    for (int64_t i = 0; i < 10000; i++)
        dropped += dropout_factor(h, &d, i / 1000, i % 1000) == 0;
    assert_int_in_range(dropped, 3000 - 4 * 46, 3000 + 4 * 46); /* 4 standard deviations */
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_of_every_backend_equals_definition),
        cmocka_unit_test(dropout_of_attention_equals_definition),
        cmocka_unit_test(dropout_fraction_of_zeros_is_p),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
