/* test_worked.c - every operator of ref against values computed by PyTorch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "harness.h"
#include "ops/ops.h"
#include "worked_sequences.h"
#include "worked_values.h"

#define WORKED_COUNT(cases) (sizeof(cases) / sizeof((cases)[0]))

/* Element i of tensor t, as in worked_values.py. */
static float worked_number(size_t t, size_t i)
{
    return (float)((int)((i * (2 * t + 7) + 3 * t) % 23) - 11) / 16;
}

static void worked_fill(harness *h)
{
    harness_fill(h, 1); /* sets labels */
    for (int p = 0; p < h->graph->n_param; p++) {
        const co_param *param = &h->graph->param[p];
        float *to = harness_values(h, param);

        for (size_t i = 0; i < param->count; i++) {
            float v = worked_number((size_t)p, i);

            to[i] = strcmp(param->spec.name, "running_var") == 0 ? v * v + 0.5f : v;
        }
    }
}

/* Position in a case's values. */
typedef struct worked_cursor {
    const worked_case *c;
    size_t at;
} worked_cursor;

static void worked_expect(worked_cursor *cursor, const float *got, size_t n, const char *what)
{
    assert_true(cursor->at + n <= cursor->c->n);
    for (size_t i = 0; i < n; i++) {
        const float want = cursor->c->value[cursor->at++];

        if (!(fabsf(got[i] - want) <= 1e-6f + 2e-6f * fabsf(want)))
            fail_msg("%s: %s[%zu] is %.8g, expected %.8g", cursor->c->name, what, i, (double)got[i],
                     (double)want);
    }
}

static void worked_check(const worked_case *c)
{
    const harness_mode train = {.training = true}, eval = {.training = false};
    worked_cursor cursor = {c, 0};
    float row[128];
    harness_result result;
    harness *h = NULL;

    if (harness_create(&h, &c->sample, c->batch, c->net) != CO_OK)
        fail_msg("%s: %s", c->name, co_error_message());
    worked_fill(h);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        row[i] = worked_number(20, i);
    h->row = row;
    assert_int_equal(harness_measure(&result, h, &train, false), CO_OK);
    assert_true(result.n_out <= sizeof(row) / sizeof(row[0]));
    worked_expect(&cursor, result.out, result.n_out, "output");
    if (strstr(c->net, "loss") || strstr(c->net, "entropy"))
        worked_expect(&cursor, result.loss, result.n_loss, "loss");
    for (int buffers = 0; buffers < 2; buffers++)
        for (int p = 0; p < h->graph->n_param; p++) {
            const co_param *param = &h->graph->param[p];
            const float *all = buffers ? result.buffer : result.grad;

            if (param->spec.buffer == (buffers == 1))
                worked_expect(&cursor, all + param->offset, param->count, param->name);
        }
    harness_result_free(&result);
    assert_int_equal(harness_measure(&result, h, &eval, false), CO_OK);
    worked_expect(&cursor, result.out, result.n_out, "output in evaluation");
    assert_int_equal(cursor.at, c->n);
    harness_result_free(&result);
    harness_destroy(h);
}

static void ref_kernels_give_worked_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORKED_COUNT(worked_values_cases); i++)
        worked_check(&worked_values_cases[i]);
    for (size_t i = 0; i < WORKED_COUNT(worked_sequences_cases); i++)
        worked_check(&worked_sequences_cases[i]);
}

static bool worked_has(const worked_case *cases, size_t n, const char *op)
{
    size_t i = 0;

    while (i < n && !strstr(cases[i].net, op))
        i++;
    return i < n;
}

/* dropout has its own test: PyTorch draws other numbers. */
static void ops_every_one_has_worked_values(void **state)
{
    (void)state;
    for (const co_op *const *op = co_ops; *op; op++)
        if (!worked_has(worked_values_cases, WORKED_COUNT(worked_values_cases), (*op)->name) &&
            !worked_has(worked_sequences_cases, WORKED_COUNT(worked_sequences_cases),
                        (*op)->name) &&
            !strstr((*op)->name, "dropout"))
            fail_msg("no worked values of %s", (*op)->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ref_kernels_give_worked_values),
        cmocka_unit_test(ops_every_one_has_worked_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
