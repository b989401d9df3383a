/* test_profiler.c - what a profiler sees of a model: the kernels of each plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"
#include "profile/profiler.h"

#define SIZES 60 /* batches of as many sizes, each with a plan of its own */

static size_t kernels_seen(const co_profiler *profiler, uint32_t step)
{
    const co_span_list list = co_profiler_track(profiler, 0);
    size_t n = 0;

    assert_int_equal(list.lost, 0);
    for (size_t i = 0; i < list.n; i++)
        n += list.span[i].step == step && list.span[i].what >= CO_PROFILE_PHASES;
    return n;
}

/* Also of sizes that come again, when there are plans of all others. */
static void profiler_kernels_of_many_plans_are_seen(void **state)
{
    static float input[SIZES][4];
    static int32_t label[SIZES];
    static uint32_t sample[SIZES];
    const co_profiler_options watch = {.steps = 2 * SIZES, .ranks = 1};
    co_profiler *profiler;
    co_model *model;

    (void)state;
    assert_int_equal(
        co_model_create(&model, &(co_model_options){.model = "{name: mlp, hidden: [5]}",
                                                    .sample = {3, {1, 2, 2}},
                                                    .classes = 3}),
        CO_OK);
    assert_int_equal(co_profiler_create(&profiler, &watch), CO_OK);
    model->profiler = profiler;
    for (uint32_t step = 0; step < 2 * SIZES; step++) {
        const uint64_t count = SIZES - step % SIZES;
        const co_batch batch = {.step = step,
                                .count = count,
                                .global = count,
                                .local = count,
                                .sample = sample,
                                .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 2, 2}}, input[0]},
                                          {CO_FIELD_LABEL, CO_I32, {0}, label}}};
        co_result result;

        co_profiler_begin_step(profiler, step);
        assert_int_equal(co_model_forward(&result, model, &batch), CO_OK);
        co_profiler_end_step(profiler);
        assert_true(kernels_seen(profiler, 0) >= 2);
        assert_int_equal(kernels_seen(profiler, step), kernels_seen(profiler, 0));
    }
    model->profiler = NULL;
    co_model_destroy(model);
    co_profiler_destroy(profiler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiler_kernels_of_many_plans_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
