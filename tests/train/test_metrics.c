/* test_metrics.c - accuracy, top-5 accuracy, and means per rank. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/metrics.h"
#include "state/rank_means.h"

static void count(co_result *out, const float *score, const float *loss, const int32_t *label,
                  uint64_t n, size_t classes)
{
    const co_metric_batch batch = {.form = {CO_TARGET_LABEL, classes, 0},
                                   .n = n,
                                   .output = score,
                                   .label = label,
                                   .loss = loss};

    co_metrics_count(out, &batch);
}

static void metrics_count_top_1_and_top_5(void **state)
{
    const float score[4 * 7] = {
        9, 1, 2, 3, 4, 5, 6, /* label 0: first */
        9, 1, 2, 3, 4, 5, 6, /* label 3: fifth */
        9, 1, 2, 3, 4, 5, 6, /* label 2: sixth */
        2, 2, 0, 0, 0, 0, 0, /* label 1: class 0 wins the tie */
    };
    const float loss[4] = {0.5F, 1, 2, 4};
    const int32_t label[4] = {0, 3, 2, 1};
    co_result result;

    (void)state;
    count(&result, score, loss, label, 4, 7);
    assert_int_equal(result.count, 4);
    assert_int_equal(result.correct, 1);
    assert_int_equal(result.correct5, 3);
    assert_true(result.loss_sum == 7.5);
}

static void metrics_nan_is_never_correct(void **state)
{
    const float score[2] = {NAN, NAN};
    const float loss[1] = {0};
    const int32_t label[1] = {0};
    co_result result;

    (void)state;
    count(&result, score, loss, label, 1, 2);
    assert_int_equal(result.correct, 0);
}

/* 2 sequences of 3 positions; the loss of each is the sum over labelled positions over 3. */
static void metrics_of_sequences_count_positions(void **state)
{
    const float score[6 * 2] = {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1};
    const float loss[2] = {0.5F, 2};
    const int32_t label[6] = {0, 1, 1, -1, -1, 1};
    const co_metric_batch batch = {
        .form = {CO_TARGET_LABEL, 2, 3}, .n = 6, .output = score, .label = label, .loss = loss};
    co_result result;

    (void)state;
    co_metrics_count(&result, &batch);
    assert_int_equal(result.count, 4);
    assert_int_equal(result.correct, 3);
    assert_true(result.loss_sum == 7.5);
}

static void confusion_matrix_diagonal_equals_correct(void **state)
{
    const float score[6 * 3] = {
        1,   9,   2,   /* label 1: right */
        5,   1,   5,   /* label 2: class 0 wins the tie */
        NAN, -3,  -4,  /* label 1: NaN is ignored */
        -5,  -6,  NAN, /* label 2 */
        1,   2,   3,   /* label 2: right */
        NAN, NAN, NAN,
    };
    const int64_t want[9] = {0, 0, 0, 0, 2, 0, 2, 0, 1};
    const int32_t label[6] = {1, 2, 1, 2, 2, 0};
    const float loss[6] = {0};
    int64_t confusion[9] = {0};
    co_result result;
    const co_metric_batch batch = {
        .form = {CO_TARGET_LABEL, 3, 0}, .n = 6, .output = score, .label = label, .loss = loss};

    (void)state;
    co_metrics_confuse(confusion, &batch);
    assert_memory_equal(confusion, want, sizeof(want));
    co_metrics_count(&result, &batch);
    assert_int_equal(result.correct, confusion[0] + confusion[4] + confusion[8]);
}

static void metrics_reduced_on_one_rank_are_sums(void **state)
{
    co_result result = {.count = 3, .loss_sum = 1.5, .correct = 2, .correct5 = 3}, part = result;
    co_comm *comm = NULL;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    co_metrics_add(&result, &part);
    assert_int_equal(co_metrics_reduce(&result, comm), CO_OK);
    assert_int_equal(result.count, 6);
    assert_int_equal(result.correct, 4);
    assert_int_equal(result.correct5, 6);
    assert_true(result.loss_sum == 3.0);
    co_comm_destroy(comm);
}

/* Like scripts that average over their batches: a small last batch counts as much as a full one, a
   step without samples does not count. */
static void rank_means_weigh_batches_equally(void **state)
{
    const co_result batches[] = {{.count = 64, .loss_sum = 64, .correct = 32},
                                 {.count = 0},
                                 {.count = 2, .loss_sum = 6, .correct = 2}};
    co_rank_means means = {0};
    co_rank_figures figures;
    co_comm *comm = NULL;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(co_ranks_gather(&figures, comm, &means, &batches[0]), CO_OK);
    assert_true(isnan(figures.train_loss) && isnan(figures.train_accuracy));
    assert_true(figures.test_loss == 1 && figures.test_accuracy == 0.5);
    for (size_t i = 0; i < 3; i++)
        co_rank_means_add(&means, &batches[i]);
    assert_int_equal(co_ranks_gather(&figures, comm, &means, NULL), CO_OK);
    assert_true(figures.train_loss == 2 && figures.train_accuracy == 0.75);
    assert_true(isnan(figures.test_loss) && isnan(figures.test_accuracy));
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_count_top_1_and_top_5),
        cmocka_unit_test(metrics_nan_is_never_correct),
        cmocka_unit_test(metrics_of_sequences_count_positions),
        cmocka_unit_test(confusion_matrix_diagonal_equals_correct),
        cmocka_unit_test(metrics_reduced_on_one_rank_are_sums),
        cmocka_unit_test(rank_means_weigh_batches_equally),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
