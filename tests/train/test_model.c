/* test_model.c - a model by itself: random numbers of each step, and memory of its plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Also for epochs of more than 2^20 steps, and runs of more than 2^12 epochs. */
static void dropout_mask_differs_in_every_step(void **state)
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
    static const char *const backends[] = {"auto", "cpu", "ref"};

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

/* Resident bytes of this process. */
static uint64_t resident(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %llu", &pages), 1);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

enum { MANY = 256, LARGE = 32, IMAGE = LARGE * LARGE };

/* The short last batch and evaluation use the memory of the full batch. */
static void model_plans_share_memory(void **state)
{
    static float images[MANY * IMAGE];
    static int32_t labels[MANY];
    static uint32_t samples[MANY];
    static float scores[MANY * 10];
    const co_model_options options = {
        .model = "[{conv2d: {out: 16, kernel: 3, padding: 1}}, relu, {conv2d: {out: 16, kernel: 3, "
                 "padding: 1}}, relu, {maxpool: 2}, flatten, {linear: 10}]",
        .sample = {3, {1, 32, 32}},
        .classes = 10};
    const co_batch full = batch_of(images, LARGE, labels, samples, MANY);
    const uint64_t before = resident();
    uint64_t one, all;
    co_model *model = NULL;
    co_result result;

    (void)state;
    assert_int_equal(co_model_create(&model, &options), CO_OK);
    assert_int_equal(co_model_forward(&result, model, &full), CO_OK);
    one = resident() - before;
    for (uint64_t count = MANY; count > MANY - 40; count -= 13) {
        const co_batch some = batch_of(images, LARGE, labels, samples, count);

        assert_int_equal(co_model_forward(&result, model, &some), CO_OK);
        assert_int_equal(co_model_evaluate(&result, model, &some), CO_OK);
        assert_int_equal(co_model_predict(scores, model, images, count), CO_OK);
    }
    all = resident() - before;
    if (all > one + one / 3)
        fail_msg("%.0f MiB with one plan, %.0f MiB with all", (double)one / (1 << 20),
                 (double)all / (1 << 20));
    co_model_destroy(model);
}

/* In any order of sizes, each gives the result that it gives alone. */
static void model_plans_sharing_memory_give_same_results(void **state)
{
    const co_model_options options = {.model = "[flatten, {linear: 50}, relu, {linear: 3}]",
                                      .sample = {3, {1, 8, 8}},
                                      .classes = 3,
                                      .seed = 4};
    static const uint64_t counts[] = {5, 1, 32, 31, 5, 32, 1, 7};
    co_model *model = NULL;

    (void)state;
    assert_int_equal(co_model_create(&model, &options), CO_OK);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const co_batch batch = first(counts[i]);
        co_result together, alone;
        co_model *fresh = NULL;

        assert_int_equal(co_model_create(&fresh, &options), CO_OK);
        for (int evaluate = 0; evaluate < 2; evaluate++) {
            co_status (*run)(co_result *, co_model *, const co_batch *) =
                evaluate ? co_model_evaluate : co_model_forward;

            assert_int_equal(run(&together, model, &batch), CO_OK);
            assert_int_equal(run(&alone, fresh, &batch), CO_OK);
            assert_true(together.loss_sum == alone.loss_sum);
        }
        co_model_destroy(fresh);
    }
    co_model_destroy(model);
}

static void model_backward_after_evaluation_is_refused(void **state)
{
    const co_model_options options = {
        .model = "[flatten, {linear: 3}]", .sample = {3, {1, 8, 8}}, .classes = 3};
    const co_batch batch = first(COUNT);
    co_distributed *distributed = NULL;
    co_model *model = NULL;
    co_comm *comm = NULL;
    co_result result;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(co_model_create(&model, &options), CO_OK);
    assert_int_equal(co_distributed_create(&distributed,
                                           &(co_distributed_options){.model = model, .comm = comm}),
                     CO_OK);
    assert_int_equal(co_model_forward(&result, model, &batch), CO_OK);
    assert_int_equal(co_model_evaluate(&result, model, &batch), CO_OK);
    assert_int_equal(co_distributed_backward(distributed, &batch, false), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "backward needs a forward"));
    assert_int_equal(co_model_forward(&result, model, &batch), CO_OK);
    assert_int_equal(co_distributed_backward(distributed, &batch, false), CO_OK);
    assert_int_equal(co_distributed_step(distributed), CO_OK);
    co_distributed_destroy(distributed);
    co_model_destroy(model);
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_mask_differs_in_every_step),
        cmocka_unit_test(model_plans_share_memory),
        cmocka_unit_test(model_plans_sharing_memory_give_same_results),
        cmocka_unit_test(model_backward_after_evaluation_is_refused),
    };

    return cmocka_run_group_tests(tests, fill, NULL);
}
