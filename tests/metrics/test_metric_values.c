/* test_metric_values.c - metrics against values computed by hand, and with any split of the
   samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "metrics/metrics.h"

/* 4 samples of 2 values, or labels: errors 1 -2 | 0 0 | -1 2 | 2 0. */
static const float values[8] = {2, 1, 2, 1, 2, 3, 6, 2}, wanted[8] = {1, 3, 2, 1, 3, 1, 4, 2};

/* yes no yes | NaN no yes | no no no, against yes yes yes | yes no no | no no no */
static const float logits[9] = {1, -1, 3, NAN, -2, 4, -1, -1, -1};
static const float there[9] = {1, 1, 1, 1, 0, 0, 0, 0, 0};

/* Predicted 0 1 2 0 1 (a tie goes to the lower class) and nothing; class 3 does not occur. */
static const float class_logits[24] = {
    9, 1, 1, 0, 1, 9, 1, 0, 1, 1, 9, 0, 9, 1, 1, 0, 1, 5, 5, 0, NAN, NAN, NAN, NAN,
};
static const int32_t labels[6] = {0, 1, 2, 1, 2, 0};

static const co_metric_batch of_values = {
    .form = {CO_TARGET_VALUES, 2}, .n = 4, .output = values, .target = wanted};
static const co_metric_batch of_labels = {
    .form = {CO_TARGET_BINARY, 3}, .n = 3, .output = logits, .target = there};
static const co_metric_batch of_classes = {
    .form = {CO_TARGET_LABEL, 4}, .n = 6, .output = class_logits, .label = labels};

static const struct {
    const char *metric;
    const co_metric_batch *batch;
    double value;
} worked[] = {
    {"mae", &of_values, 1},                   /* 8 / 8 */
    {"rmse", &of_values, 1.3228756555322954}, /* sqrt(14 / 8) */
    /* 1 - 6 / 5, 1 - 8 / 2.75: targets 1 2 3 4 and 3 1 1 2 */
    {"r2", &of_values, (-0.2 + (1 - 8 / 2.75)) / 2},
    {"label_accuracy", &of_labels, 6.0 / 9},
    /* tp 2; fn: label 1 of the first, the NaN; fp: label 2 of the second */
    {"f1_micro", &of_labels, 4.0 / (4 + 1 + 2)},
    /* label 0: tp 1 fn 1; 1: fn 1; 2: tp 1 fp 1 */
    {"f1_macro", &of_labels, (2.0 / 3 + 0 + 2.0 / 3) / 3},
    /* 3 of 6 correct; 5 predictions */
    {"f1_micro", &of_classes, 6.0 / (6 + 2 + 3)},
    /* 0: tp 1 fp 1 fn 1; 1: tp 1 fp 1 fn 1; 2: tp 1 fn 1; 3: not counted */
    {"f1_macro", &of_classes, (0.5 + 0.5 + 2.0 / 3) / 3},
};

#define WORKED (sizeof(worked) / sizeof(worked[0]))

static co_metric_set set_of(const char *name, const co_metric_form *form)
{
    co_value item = {.kind = CO_VALUE_SCALAR, .text = name};
    co_metric_set set;

    assert_int_equal(co_metric_set_read(&set, &item), CO_OK);
    assert_int_equal(set.n, 1);
    assert_int_equal(co_metric_set_fit(&set, form, &item), CO_OK);
    return set;
}

static co_metric_batch slice(const co_metric_batch *batch, uint64_t begin, uint64_t n)
{
    co_metric_batch part = *batch;

    part.n = n;
    part.output += begin * batch->form.outputs;
    part.target += part.target ? begin * batch->form.outputs : 0;
    part.label += part.label ? begin : 0;
    return part;
}

static double value_of(const co_metric_set *set, const co_sum *sums)
{
    double value;

    co_metric_set_finish(&value, set, &set->form, sums);
    return value;
}

static void metrics_of_worked_samples_have_their_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORKED; i++) {
        const co_metric_set set = set_of(worked[i].metric, &worked[i].batch->form);
        co_sum sums[CO_METRICS_MAX_SUMS] = {{0, 0}};

        co_metric_set_accumulate(&set, sums, worked[i].batch);
        if (!(fabs(value_of(&set, sums) - worked[i].value) <= 1e-15))
            fail_msg("%s is %.17g and should be %.17g", worked[i].metric, value_of(&set, sums),
                     worked[i].value);
    }
}

/* In two parts, on one rank and on two whose sums are added: the same bits. */
static void metrics_of_any_split_are_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORKED; i++) {
        const co_metric_batch *batch = worked[i].batch;
        const co_metric_set set = set_of(worked[i].metric, &batch->form);
        co_sum whole[CO_METRICS_MAX_SUMS] = {{0, 0}};

        co_metric_set_accumulate(&set, whole, batch);
        for (uint64_t cut = 0; cut <= batch->n; cut++) {
            const co_metric_batch a = slice(batch, 0, cut), b = slice(batch, cut, batch->n - cut);
            co_sum one[CO_METRICS_MAX_SUMS] = {{0, 0}}, two[CO_METRICS_MAX_SUMS] = {{0, 0}};

            co_metric_set_accumulate(&set, one, &a);
            co_metric_set_accumulate(&set, two, &b);
            co_metric_set_add(&set, two, one);
            co_metric_set_accumulate(&set, one, &b);
            assert_true(value_of(&set, one) == value_of(&set, whole));
            assert_true(value_of(&set, two) == value_of(&set, whole));
        }
    }
}

static void metrics_of_no_samples_are_not_numbers(void **state)
{
    const co_sum sums[CO_METRICS_MAX_SUMS] = {{0, 0}};

    (void)state;
    for (const co_metric *const *m = co_metrics; *m; m++) {
        const co_metric_form form = {
            (*m)->targets & CO_METRIC_OF(CO_TARGET_LABEL) ? CO_TARGET_LABEL : CO_TARGET_VALUES, 3,
            0, 0};

        assert_ptr_equal(co_metric_find((*m)->name), *m);
        if ((*m)->finish)
            assert_true(isnan((*m)->finish(sums, &form)));
    }
}

/* Forwards and backwards, with terms that a double would lose next to the others. */
static void sum_in_any_order_is_the_same(void **state)
{
    co_sum forward = {0, 0}, backward = {0, 0}, halves = {0, 0};
    const int n = 1000;

    (void)state;
    for (int i = 0; i < n; i++) {
        co_sum_add(&forward, 1e16 / (i + 1) + 1e-3 * i);
        co_sum_add(&backward, 1e16 / (n - i) + 1e-3 * (n - 1 - i));
    }
    assert_true(co_sum_value(&forward) == co_sum_value(&backward));
    co_sum_add(&halves, 1);
    for (int i = 0; i < n; i++)
        co_sum_add(&halves, 1e-17);
    assert_true(co_sum_value(&halves) == 1 + 1e-14);
}

/* The mean is 10^7 times the standard deviation; targets are exact in float. */
static void r2_of_targets_far_from_zero_keeps_its_digits(void **state)
{
    static const float target[4] = {8388608, 8388609, 8388610, 8388611};
    static const float output[4] = {8388608, 8388609, 8388611, 8388611};
    const co_metric_batch batch = {
        .form = {CO_TARGET_VALUES, 1}, .n = 4, .output = output, .target = target};
    const co_metric_set set = set_of("r2", &batch.form);
    co_sum sums[CO_METRICS_MAX_SUMS] = {{0, 0}};

    (void)state;
    co_metric_set_accumulate(&set, sums, &batch);
    assert_true(value_of(&set, sums) == 1 - 1 / 5.0);
}

static void r2_of_equal_targets_is_one_or_zero(void **state)
{
    static const float target[3] = {0.1f, 0.1f, 0.1f}, other[3] = {0.1f, 0.2f, 0.1f};
    co_metric_batch batch = {
        .form = {CO_TARGET_VALUES, 1}, .n = 3, .output = target, .target = target};
    const co_metric_set set = set_of("r2", &batch.form);
    co_sum sums[CO_METRICS_MAX_SUMS] = {{0, 0}};

    (void)state;
    co_metric_set_accumulate(&set, sums, &batch);
    assert_true(value_of(&set, sums) == 1);
    batch.output = other;
    co_metric_set_accumulate(&set, sums, &batch);
    assert_true(value_of(&set, sums) == 0);
}

/* Asked for or not; e to 12 / 4: of 2 sequences of 3 positions, two of which have no label. */
static void perplexity_of_sequences_is_always_measured(void **state)
{
    static const int32_t label[6] = {0, 1, -1, -1, 0, 1};
    static const float loss[2] = {1, 3}, output[12] = {0};
    const co_metric_batch batch = {
        .form = {CO_TARGET_LABEL, 2, 3, 0}, .n = 6, .output = output, .label = label, .loss = loss};
    const co_metric_form images = {CO_TARGET_LABEL, 2, 0, 0};
    co_value item = {.kind = CO_VALUE_SCALAR, .text = "perplexity"};
    co_sum sums[CO_METRICS_MAX_SUMS] = {{0, 0}};
    co_metric_set set;

    (void)state;
    assert_int_equal(co_metric_set_read(&set, NULL), CO_OK);
    assert_int_equal(co_metric_set_fit(&set, &batch.form, NULL), CO_OK);
    assert_int_equal(set.n, 1);
    co_metric_set_accumulate(&set, sums, &batch);
    assert_true(fabs(value_of(&set, sums) - exp(3)) < 1e-12);
    assert_int_equal(co_metric_set_read(&set, &item), CO_OK);
    assert_int_equal(co_metric_set_fit(&set, &images, &item), CO_E_USAGE);
}

/* 3 nats of a token of 1.5 bytes; measured where the bytes of a token are known. */
static void bits_per_byte_of_text_is_measured(void **state)
{
    static const int32_t label[6] = {0, 1, -1, -1, 0, 1};
    static const float loss[2] = {1, 3}, output[12] = {0};
    const co_metric_batch batch = {.form = {CO_TARGET_LABEL, 2, 3, 1.5},
                                   .n = 6,
                                   .output = output,
                                   .label = label,
                                   .loss = loss};
    co_value item = {.kind = CO_VALUE_SCALAR, .text = "bits_per_byte"};
    const co_metric_form unknown = {CO_TARGET_LABEL, 2, 3, 0};
    co_sum sums[CO_METRICS_MAX_SUMS] = {{0, 0}};
    double value[CO_METRICS_MAX];
    co_metric_set set;

    (void)state;
    assert_int_equal(co_metric_set_read(&set, NULL), CO_OK);
    assert_int_equal(co_metric_set_fit(&set, &batch.form, NULL), CO_OK);
    assert_int_equal(set.n, 2);
    co_metric_set_accumulate(&set, sums, &batch);
    co_metric_set_finish(value, &set, &set.form, sums);
    assert_true(fabs(value[co_metric_set_find(&set, "bits_per_byte")] - 2 / log(2)) < 1e-12);
    assert_int_equal(co_metric_set_read(&set, &item), CO_OK);
    assert_int_equal(co_metric_set_fit(&set, &unknown, &item), CO_E_USAGE);
}

static void better_follows_the_metric_and_passes_over_nan(void **state)
{
    const co_metric *rmse = co_metric_find("rmse"), *r2 = co_metric_find("r2");

    (void)state;
    assert_true(co_metric_better(rmse, 1, 2) && !co_metric_better(rmse, 2, 2));
    assert_true(co_metric_better(r2, 2, 1) && !co_metric_better(r2, 1, 1));
    assert_true(co_metric_better(r2, -5, NAN) && !co_metric_better(r2, NAN, -5));
    assert_false(co_metric_better(rmse, NAN, NAN));
}

static void assert_refused(const char *name, co_target target, size_t outputs, const char *message)
{
    co_value item = {.kind = CO_VALUE_SCALAR, .text = name};
    const co_metric_form form = {target, outputs, 0, 0};
    co_metric_set set;
    co_status st = co_metric_set_read(&set, &item);

    if (st == CO_OK)
        st = co_metric_set_fit(&set, &form, &item);
    assert_int_equal(st, CO_E_USAGE);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void set_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_refused("rsme", CO_TARGET_VALUES, 1, "did you mean 'rmse'?");
    assert_refused("everything", CO_TARGET_VALUES, 1, "label_accuracy, f1_micro, f1_macro");
    assert_refused("r2", CO_TARGET_LABEL, 10,
                   "r2 is not defined for a network that learns classes");
    assert_refused("accuracy_top5", CO_TARGET_LABEL, 4, "of 4 outputs, has no accuracy_top5");
    assert_refused("f1_macro", CO_TARGET_LABEL, 1000, "f1_macro counts each of 1000 outputs");
}

static void set_keeps_no_name_twice_nor_what_is_always_measured(void **state)
{
    co_value item[] = {{.kind = CO_VALUE_SCALAR, .text = "rmse"},
                       {.kind = CO_VALUE_SCALAR, .text = "loss"},
                       {.kind = CO_VALUE_SCALAR, .text = "r2"},
                       {.kind = CO_VALUE_SCALAR, .text = "rmse"}};
    co_value *items[] = {&item[0], &item[1], &item[2], &item[3]};
    const co_value list = {.kind = CO_VALUE_LIST, .n = 4, .item = items};
    const co_metric_form form = {CO_TARGET_VALUES, 5, 0, 0};
    co_metric_set set;

    (void)state;
    assert_int_equal(co_metric_set_read(&set, &list), CO_OK);
    assert_int_equal(co_metric_set_fit(&set, &form, &list), CO_OK);
    assert_int_equal(set.n, 2);
    assert_int_equal(co_metric_set_find(&set, "r2"), 1);
    assert_int_equal(co_metric_set_find(&set, "loss"), -1);
    assert_int_equal(set.begin[1], 2);
    assert_int_equal(set.n_sum, 2 + 1 + 3 * 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_of_worked_samples_have_their_values),
        cmocka_unit_test(metrics_of_any_split_are_the_same),
        cmocka_unit_test(metrics_of_no_samples_are_not_numbers),
        cmocka_unit_test(sum_in_any_order_is_the_same),
        cmocka_unit_test(r2_of_targets_far_from_zero_keeps_its_digits),
        cmocka_unit_test(r2_of_equal_targets_is_one_or_zero),
        cmocka_unit_test(perplexity_of_sequences_is_always_measured),
        cmocka_unit_test(bits_per_byte_of_text_is_measured),
        cmocka_unit_test(better_follows_the_metric_and_passes_over_nan),
        cmocka_unit_test(set_that_does_not_fit_is_refused),
        cmocka_unit_test(set_keeps_no_name_twice_nor_what_is_always_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
