/*
 * test_model.c - a model by itself: what it draws in each step of a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cohort.h>

#define COUNT    32
#define SIDE     8
#define FEATURES (SIDE * SIDE)

static float input[COUNT * FEATURES];
static int32_t label[COUNT];
static uint32_t sample[COUNT];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT * FEATURES; i++)
        input[i] = (float)(i % 13) / 13 - 0.4f;
    for (int n = 0; n < COUNT; n++) {
        label[n] = n % 3;
        sample[n] = (uint32_t)n;
    }
    return 0;
}

static co_batch batch_of(const float *images, int64_t side, const int32_t *labels,
                         const uint32_t *samples, uint64_t count)
{
    return (co_batch){.count = count,
                      .global = count,
                      .local = count,
                      .sample = samples,
                      .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, side, side}}, images},
                                {CO_FIELD_LABEL, CO_I32, {0}, labels}}};
}

static co_batch first(uint64_t count)
{
    return batch_of(input, SIDE, label, sample, count);
}

static double loss_at(co_model *model, uint64_t epoch, uint64_t step)
{
    co_batch batch = first(COUNT);
    co_result result;

    batch.epoch = epoch;
    batch.step = step;

    assert_int_equal(co_model_forward(&result, model, &batch), CO_OK);
    return result.loss_sum;
}

/* Also where an epoch has more than 2^20 steps, or a run more than 2^12 epochs. */
static void dropout_draws_anew_in_every_step_of_a_run(void **state)
{
    static const struct {
        uint64_t epoch, step;
    } places[] = {
        {0, 0},
        {0, 1},
        {1, 0},
        {4095, (1 << 20) - 1},
        {4096, 0},
        {8192, 0},
        {0, 1 << 20},
        {0, 2 << 20},
        {1, 1 << 20},
        {4096, 1 << 20},
        {4097, 1234},
        {1 << 24, 1234},
        {(1 << 24) + 1, 0},
        {3, UINT64_C(1) << 33},
    };
    enum { PLACES = sizeof(places) / sizeof(places[0]) };
    static const char *const backends[] = {"auto", "native", "ref"};

    (void)state;
    for (int b = 0; b < 3; b++) {
        const co_model_options options = {
            .model = "[flatten, {linear: 50}, {dropout: 0.5}, {linear: 3}]",
            .backend = backends[b],
            .sample = {3, {1, 8, 8}},
            .classes = 3,
            .seed = 4};
        co_model *model = NULL;
        double loss[PLACES];

        assert_int_equal(co_model_create(&model, &options), CO_OK);
        for (int i = 0; i < PLACES; i++) {
            loss[i] = loss_at(model, places[i].epoch, places[i].step);
            for (int k = 0; k < i; k++)
                if (loss[i] == loss[k])
                    fail_msg("%s: places %d and %d draw the same", backends[b], k, i);
        }
        assert_true(loss_at(model, 4096, 0) == loss[4]);
        co_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_draws_anew_in_every_step_of_a_run),
    };

    return cmocka_run_group_tests(tests, fill, NULL);
}
