/*
 * test_weights.c - loading weights from a file: one error lists everything that does not fit, and
 * then nothing is loaded; extra tensors of PyTorch are ignored.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include <cohort.h>

#include "core/mem.h"
#include "folder.h"
#include "model/model.h"

#define LAYERS                                                                                     \
    "[conv2d: {out: 2, kernel: 3, name: conv}, batchnorm: {name: bn}, flatten, "                   \
    "linear: {out: %d, name: fc}]"

static co_model *open_model(int classes, uint64_t seed)
{
    char layers[256];
    co_model *model = NULL;

    snprintf(layers, sizeof(layers), LAYERS, classes);
    assert_int_equal(co_model_create(&model, &(co_model_options){.model = layers,
                                                                 .sample = {3, {1, 4, 4}},
                                                                 .classes = 2,
                                                                 .seed = seed}),
                     CO_OK);
    return model;
}

static void fingerprint(char out[65], const co_model *model)
{
    co_named_tensor *tensors;
    size_t n;

    assert_int_equal(co_model_tensors(&tensors, &n, model), CO_OK);
    co_safetensors_sha256(out, tensors, n);
    co_free(tensors);
}

/* Write the model's tensors to a file, changed by `change`, which may add one tensor. */
static const char *write_changed(const co_model *model, size_t (*change)(co_named_tensor *, size_t))
{
    co_named_tensor *tensors, changed[16];
    size_t n;

    assert_int_equal(co_model_tensors(&tensors, &n, model), CO_OK);
    memcpy(changed, tensors, n * sizeof(*tensors));
    n = change ? change(changed, n) : n;
    assert_int_equal(co_safetensors_write(folder_path("w.safetensors"), changed, n, NULL), CO_OK);
    co_free(tensors);
    return folder_path("w.safetensors");
}

static void assert_refused(size_t (*change)(co_named_tensor *, size_t), const char *const *words)
{
    co_model *model = open_model(2, 1), *other = open_model(2, 2);
    char before[65], after[65];

    fingerprint(before, other);
    assert_int_equal(co_model_load(other, write_changed(model, change)), CO_E_DATA);
    for (; *words; words++)
        if (!strstr(co_error_message(), *words))
            fail_msg("no '%s' in: %s", *words, co_error_message());
    fingerprint(after, other);
    assert_string_equal(before, after);
    co_model_destroy(other);
    co_model_destroy(model);
}

/* conv.weight, conv.bias, bn.weight, bn.bias, bn.running_mean, bn.running_var, fc.weight, fc.bias
 */

static const int32_t integers[2] = {1, 2};

static size_t change_all(co_named_tensor *t, size_t n)
{
    t[1].name = "conv.shift";                  /* one missing, one unexpected */
    t[6].shape = (co_shape){2, {4, 4}};        /* another shape with as many elements */
    t[7].dtype = CO_I32, t[7].data = integers; /* not of floats */
    t[5] = t[n - 1], t[5].name = "head.bias";  /* one more of the first two kinds */
    return n;
}

static void load_lists_all_mismatches(void **state)
{
    static const char *const words[] = {
        "w.safetensors does not fit the model", "2 missing: conv.bias, bn.running_var",
        "2 unexpected: conv.shift, head.bias",  "1 of another shape: fc.weight (4, 4) for (2, 8)",
        "1 not of floats: fc.bias i32",         NULL};

    (void)state;
    assert_refused(change_all, words);
}

static size_t change_names(co_named_tensor *t, size_t n)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

    for (size_t i = 0; i < n; i++)
        t[i].name = names[i];
    return n;
}

static void load_long_list_of_mismatches_is_cut(void **state)
{
    static const char *const words[] = {"8 missing: conv.weight, ", "bn.running_mean and 3 more",
                                        "8 unexpected: a, b, c, d, e and 3 more", NULL};

    (void)state;
    assert_refused(change_names, words);
}

static size_t change_wrapped(co_named_tensor *t, size_t n)
{
    t[7].name = "module.fc.bias";
    return n;
}

static void load_names_of_wrapped_model_give_remedy(void **state)
{
    static const char *const words[] = {"1 missing: fc.bias; 1 unexpected: module.fc.bias",
                                        "save model.module.state_dict()", NULL};

    (void)state;
    assert_refused(change_wrapped, words);
}

static const int64_t batches = 7;

static size_t add_counter(co_named_tensor *t, size_t n)
{
    t[n] = (co_named_tensor){"bn.num_batches_tracked", CO_I64, {0, {0}}, &batches, 8};
    return n + 1;
}

static size_t add_counter_elsewhere(co_named_tensor *t, size_t n)
{
    t[n] = (co_named_tensor){"fc.num_batches_tracked", CO_I64, {0, {0}}, &batches, 8};
    return n + 1;
}

static void load_batch_norm_counter_is_ignored(void **state)
{
    static const char *const words[] = {"1 unexpected: fc.num_batches_tracked", NULL};
    co_model *model = open_model(2, 1), *other = open_model(2, 2);
    char want[65], got[65];

    (void)state;
    assert_int_equal(co_model_load(other, write_changed(model, add_counter)), CO_OK);
    fingerprint(want, model);
    fingerprint(got, other);
    assert_string_equal(want, got);
    co_model_destroy(other);
    co_model_destroy(model);
    assert_refused(add_counter_elsewhere, words);
}

static const double doubles[2] = {0.1, -3};

static size_t change_to_doubles(co_named_tensor *t, size_t n)
{
    t[7].dtype = CO_F64, t[7].data = doubles, t[7].bytes = sizeof(doubles);
    return n;
}

static void load_fp64_is_rounded_to_fp32(void **state)
{
    const float want[2] = {0.1f, -3};
    co_model *model = open_model(2, 1);
    co_named_tensor *tensors;
    size_t n;

    (void)state;
    assert_int_equal(co_model_load(model, write_changed(model, change_to_doubles)), CO_OK);
    assert_int_equal(co_model_tensors(&tensors, &n, model), CO_OK);
    assert_memory_equal(tensors[7].data, want, sizeof(want));
    co_free(tensors);
    co_model_destroy(model);
}

/* Fine-tuning: a classifier for other classes keeps its own weights. */
static void load_skipped_layers_stay_initial(void **state)
{
    static const char *const fc[] = {"fc"}, *const f[] = {"f"};
    co_model *model = open_model(2, 1), *other = open_model(3, 2);
    co_named_tensor *from, *to, *drawn;
    co_model *fresh = open_model(3, 2);
    const char *path = write_changed(model, NULL);
    size_t n;

    (void)state;
    assert_int_equal(co_model_load_except(other, path, &(co_layer_names){1, f}), CO_E_DATA);
    assert_int_equal(co_model_load_except(other, path, &(co_layer_names){1, fc}), CO_OK);
    assert_int_equal(co_model_tensors(&from, &n, model), CO_OK);
    assert_int_equal(co_model_tensors(&to, &n, other), CO_OK);
    assert_int_equal(co_model_tensors(&drawn, &n, fresh), CO_OK);
    for (size_t i = 0; i < n; i++)
        assert_memory_equal(to[i].data, i < 6 ? from[i].data : drawn[i].data, to[i].bytes);
    co_free(from);
    co_free(to);
    co_free(drawn);
    co_model_destroy(fresh);
    co_model_destroy(other);
    co_model_destroy(model);
}

/* If any allocation fails, there is an error, and the weights are either the file's or
   unchanged. */
static void load_failed_allocation_leaves_weights(void **state)
{
    co_model *model = open_model(2, 1), *other = open_model(2, 2);
    const char *path = write_changed(model, change_to_doubles);
    char before[65], after[65];
    co_status st = CO_E_NOMEM;
    uint64_t k;

    (void)state;
    fingerprint(before, other);
    for (k = 1; st == CO_E_NOMEM && k < 1000; k++) {
        co_mem_fail_at(k);
        st = co_model_load(other, path);
        co_mem_fail_at(0);
        fingerprint(after, other);
        assert_int_equal(strcmp(before, after) == 0, st != CO_OK);
    }
    assert_int_equal(st, CO_OK);
    assert_true(k > 3);
    co_model_destroy(other);
    co_model_destroy(model);
}

/* After log_softmax, the loss of a sample is minus its label's output; no dropout, and nothing
   remains of previous samples. */
static void predict_equals_loss_of_evaluation(void **state)
{
    enum { N = 5, PIXELS = 28 * 28 };
    static float input[N][PIXELS], score[2][N][10];
    const uint32_t sample[N] = {0, 1, 2, 3, 4};
    const int32_t label[N] = {3, 1, 4, 1, 5};
    co_model *model = NULL;
    co_result result;
    double loss = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        for (int p = 0; p < PIXELS; p++)
            input[i][p] = (float)((i + 1) * p % 17) / 17;
    assert_int_equal(co_model_create(&model, &(co_model_options){.model = "mnist-net",
                                                                 .sample = {3, {1, 28, 28}},
                                                                 .classes = 10,
                                                                 .seed = 1}),
                     CO_OK);
    assert_int_equal(co_model_evaluate(
                         &result, model,
                         &(co_batch){.count = N,
                                     .global = N,
                                     .sample = sample,
                                     .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 28, 28}}, input[0]},
                                               {CO_FIELD_LABEL, CO_I32, {0}, label}}}),
                     CO_OK);
    assert_int_equal(co_model_predict(score[0][0], model, input[0], N), CO_OK);
    assert_int_equal(co_model_predict(score[1][0], model, input[0], 0), CO_OK);
    for (int i = 0; i < N; i++) {
        assert_int_equal(co_model_predict(score[1][i], model, input[i], 1), CO_OK);
        loss -= (double)score[0][i][label[i]];
        for (int c = 0; c < 10; c++)
            assert_true(fabsf(score[0][i][c] - score[1][i][c]) < 1e-5f);
    }
    assert_true(fabs(loss - result.loss_sum) < 1e-5 * loss);
    co_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_lists_all_mismatches),
        cmocka_unit_test(predict_equals_loss_of_evaluation),
        cmocka_unit_test(load_long_list_of_mismatches_is_cut),
        cmocka_unit_test(load_names_of_wrapped_model_give_remedy),
        cmocka_unit_test(load_batch_norm_counter_is_ignored),
        cmocka_unit_test(load_fp64_is_rounded_to_fp32),
        cmocka_unit_test(load_skipped_layers_stay_initial),
        cmocka_unit_test(load_failed_allocation_leaves_weights),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
