/* test_arguments.c - arrays that a program passes to a model and an optimizer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cohort/launch.h>
#include <cohort/safetensors.h>
#include <cohort/train.h>

#define CLASSES 10
#define COUNT   67 /* not a multiple of any vector length */

typedef struct arrays {
    co_model *model;
    float input[COUNT][4];
    int32_t label[COUNT];
    uint32_t sample[COUNT];
    co_batch batch;
} arrays;

static const co_model_options options = {
    .model = "{name: mlp, hidden: [5]}", .sample = {3, {1, 2, 2}}, .classes = CLASSES, .seed = 1};

static void arrays_open(arrays *a)
{
    memset(a, 0, sizeof(*a));
    assert_int_equal(co_model_create(&a->model, &options), CO_OK);
    for (int i = 0; i < COUNT; i++) {
        a->label[i] = i % CLASSES;
        a->sample[i] = UINT32_MAX - (uint32_t)i;
    }
    a->batch = (co_batch){.count = COUNT,
                          .global = COUNT,
                          .local = COUNT,
                          .sample = a->sample,
                          .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 2, 2}}, a->input[0]},
                                    {CO_FIELD_LABEL, CO_I32, {0}, a->label}}};
}

static void assert_refused(co_status st, const char *message)
{
    assert_int_equal(st, CO_E_USAGE);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void model_label_beyond_classes_is_named(void **state)
{
    static const int32_t wrong[] = {-1, CLASSES, 100000, INT32_MIN, INT32_MAX};
    static const int place[] = {0, 31, COUNT - 1};
    arrays a;

    (void)state;
    arrays_open(&a);
    for (int k = 0; k < 15; k++) {
        const int at = place[k % 3];
        const int32_t right = a.label[at];
        co_result result;
        char want[96];

        a.label[at] = wrong[k / 3];
        snprintf(want, sizeof(want), "label %d is %d; the network's classes are 0 to 9", at,
                 (int)wrong[k / 3]);
        assert_refused(co_model_forward(&result, a.model, &a.batch), want);
        assert_refused(co_model_evaluate(&result, a.model, &a.batch), want);
        a.label[at] = right;
        assert_int_equal(co_model_forward(&result, a.model, &a.batch), CO_OK);
        assert_int_equal(result.count, COUNT);
    }
    co_model_destroy(a.model);
}

/* Of positions -1 is no label; the largest number is not one either, without any overflow. */
static void model_label_of_position_beyond_classes_is_named(void **state)
{
    static const co_model_options tokens = {.model = "[embedding: {vocab: 10, out: 4}, linear: 10]",
                                            .sample = {1, {4}},
                                            .classes = CLASSES,
                                            .seed = 1};
    static const uint32_t sample[1] = {0};
    static const int32_t wrong[] = {-2, CLASSES, INT32_MIN, INT32_MAX};
    int32_t token[4] = {1, 2, 3, 4}, label[4] = {0, -1, 9, 0};
    const co_batch batch = {.count = 1,
                            .global = 1,
                            .local = 1,
                            .sample = sample,
                            .field = {{CO_FIELD_INPUT, CO_I32, {1, {4}}, token},
                                      {CO_FIELD_LABEL, CO_I32, {1, {4}}, label}}};
    co_model *model = NULL;
    co_result result;

    (void)state;
    assert_int_equal(co_model_create(&model, &tokens), CO_OK);
    assert_int_equal(co_model_forward(&result, model, &batch), CO_OK);
    assert_int_equal(result.count, 3);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        label[3] = wrong[i];
        assert_refused(co_model_forward(&result, model, &batch), "label 3 is ");
    }
    co_model_destroy(model);
}

static void model_incomplete_batch_is_refused(void **state)
{
    co_result result;
    co_batch batch;
    arrays a;

    (void)state;
    arrays_open(&a);
    batch = a.batch;
    batch.field[0].data = NULL;
    assert_refused(co_model_evaluate(&result, a.model, &batch),
                   "67 samples without the field 'input'");
    batch = a.batch;
    batch.field[1].name = NULL;
    assert_refused(co_model_evaluate(&result, a.model, &batch),
                   "67 samples without the field 'label'");
    batch = a.batch;
    batch.sample = NULL;
    assert_refused(co_model_forward(&result, a.model, &batch), "without indices");
    assert_int_equal(co_model_evaluate(&result, a.model, &batch), CO_OK);
    batch = a.batch;
    batch.global = COUNT - 1;
    assert_refused(co_model_forward(&result, a.model, &batch), "those of all ranks, is 66");
    batch = a.batch;
    batch.count = batch.global = UINT64_MAX / 4;
    assert_refused(co_model_forward(&result, a.model, &batch), "more than memory can hold");
    assert_int_equal(co_model_forward(&result, a.model, &(co_batch){.count = 0}), CO_OK);
    co_model_destroy(a.model);
}

static void model_mismatched_field_is_refused(void **state)
{
    co_result result;
    co_batch batch;
    arrays a;

    (void)state;
    arrays_open(&a);
    batch = a.batch;
    batch.field[0].shape = (co_shape){3, {2, 2, 1}};
    assert_int_equal(co_model_evaluate(&result, a.model, &batch), CO_OK);
    batch.field[0].shape = (co_shape){1, {4}};
    assert_refused(co_model_evaluate(&result, a.model, &batch),
                   "samples of the field 'input' are (4) of f32; the network takes (1, 2, 2)");
    batch.field[0].shape.ndim = -1;
    assert_refused(co_model_evaluate(&result, a.model, &batch), "the field 'input'");
    batch = a.batch;
    batch.field[1].dtype = CO_I64;
    assert_refused(co_model_evaluate(&result, a.model, &batch),
                   "samples of the field 'label' are () of i64; the network takes () of i32");
    batch = a.batch; /* in another order, and with an extra field */
    batch.field[0] = (co_field){"weight", CO_F64, {1, {3}}, NULL};
    batch.field[2] = a.batch.field[0];
    assert_int_equal(co_model_evaluate(&result, a.model, &batch), CO_OK);
    assert_int_equal(result.count, COUNT);
    co_model_destroy(a.model);
}

/* For losses of values, forward returns PyTorch's mean over all elements, and training reduces
   it. */
static void model_of_values_learns_like_pytorch(void **state)
{
    static const char *const losses[] = {"mse_loss", "bce_with_logits_loss"};
    enum { N = 8 };
    float input[N][2], target[N][3];
    uint32_t sample[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        sample[i] = (uint32_t)i;
        input[i][0] = (float)(i % 2);
        input[i][1] = (float)(i / 2 % 2);
        for (int k = 0; k < 3; k++)
            target[i][k] = (i >> (k % 2)) % 2 ? 1.0f : 0.0f;
    }
    for (int k = 0; k < 2; k++) {
        const co_model_options values = {
            .model = "[linear: 3]", .loss = losses[k], .sample = {1, {2}}, .classes = 3, .seed = 1};
        const co_batch batch = {.count = N,
                                .local = N,
                                .global = N,
                                .sample = sample,
                                .field = {{CO_FIELD_INPUT, CO_F32, {1, {2}}, input},
                                          {CO_FIELD_TARGET, CO_F32, {1, {3}}, target}}};
        co_distributed *optimizer;
        co_result first = {0}, result;
        co_model *model;
        co_comm *comm;

        assert_int_equal(co_model_create(&model, &values), CO_OK);
        assert_int_equal(co_comm_create_self(&comm), CO_OK);
        assert_int_equal(
            co_distributed_create(
                &optimizer,
                &(co_distributed_options){.model = model, .comm = comm, .optimizer = "{lr: 0.5}"}),
            CO_OK);
        for (int step = 0; step < 200; step++) {
            assert_int_equal(co_model_forward(&result, model, &batch), CO_OK);
            first = step ? first : result;
            assert_int_equal(co_distributed_backward(optimizer, &batch, false), CO_OK);
            assert_int_equal(co_distributed_step(optimizer), CO_OK);
        }
        assert_true(result.loss_sum < first.loss_sum / 2);
        co_distributed_destroy(optimizer);
        co_comm_destroy(comm);
        co_model_destroy(model);
    }
}

static void model_predict_bad_arguments_are_refused(void **state)
{
    float score[2][CLASSES];
    arrays a;

    (void)state;
    arrays_open(&a);
    assert_refused(co_model_predict(score[0], a.model, NULL, 2), "2 samples without input");
    assert_refused(co_model_predict(NULL, a.model, a.input[0], 2), "without room");
    assert_refused(co_model_predict(score[0], a.model, a.input[0], UINT64_MAX),
                   "more than memory can hold");
    assert_refused(co_model_predict(score[0], a.model, a.input[0], UINT64_C(1) << 62),
                   "more than memory can hold");
    assert_int_equal(co_model_predict(NULL, a.model, NULL, 0), CO_OK);
    co_model_destroy(a.model);
}

/* As documented, values are not checked. */
static void model_nan_input_is_passed_on(void **state)
{
    float score[CLASSES];
    co_result result;
    arrays a;

    (void)state;
    arrays_open(&a);
    a.input[3][1] = NAN;
    a.input[5][2] = -INFINITY;
    assert_int_equal(co_model_evaluate(&result, a.model, &a.batch), CO_OK);
    assert_true(isnan(result.loss_sum));
    assert_int_equal(co_model_predict(score, a.model, a.input[3], 1), CO_OK);
    co_model_destroy(a.model);
}

static void model_sizes_out_of_bounds_are_refused(void **state)
{
    co_model *model;
    co_model_options o = options;

    (void)state;
    o.classes = 0;
    assert_refused(co_model_create(&model, &o), "0 classes: there is at least 1");
    o.classes = INT64_MAX;
    assert_refused(co_model_create(&model, &o), "");
    o = options;
    o.sample.ndim = 1000;
    assert_refused(co_model_create(&model, &o), "not 1000");
    o = options;
    o.sample.dim[1] = -1;
    assert_refused(co_model_create(&model, &o), "a dimension of -1");
    o.sample.dim[1] = INT64_MAX;
    assert_refused(co_model_create(&model, &o), "2^40");
    o = options;
    o.model = NULL;
    assert_refused(co_model_create(&model, &o), "a config text is missing");
}

static void optimizer_nan_argument_is_refused(void **state)
{
    co_distributed_options o = {.optimizer = "{name: sgd, lr: 0.1}"};
    co_distributed *d;
    co_tree *tree;
    co_comm *comm;
    arrays a;

    (void)state;
    arrays_open(&a);
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(co_tree_create(&tree, 4, 2), CO_OK);
    o.model = a.model;
    o.comm = comm;
    o.clip_norm = NAN;
    assert_refused(co_distributed_create(&d, &o), "clip_norm nan");
    o.clip_norm = 0;
    o.clip_value = -1;
    assert_refused(co_distributed_create(&d, &o), "clip_value -1");
    o.clip_value = 0;
    o.model = NULL;
    assert_refused(co_distributed_create(&d, &o), "give a model");
    o.model = a.model;
    o.comm = NULL;
    assert_refused(co_distributed_create(&d, &o), "give a comm");
    o.comm = comm;
    o.tree = tree;
    assert_refused(co_distributed_create(&d, &o),
                   "the tree is for 2 ranks, the communicator has 1");
    co_tree_destroy(tree);
    co_comm_destroy(comm);
    co_model_destroy(a.model);
}

/* What forward leaves for backward is overwritten by it; the strategy gets the gradient with the
   last one. */
static void optimizer_second_backward_is_refused(void **state)
{
    co_distributed *d;
    co_result result;
    co_comm *comm;
    arrays a;

    (void)state;
    arrays_open(&a);
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(
        co_distributed_create(&d, &(co_distributed_options){.model = a.model, .comm = comm}),
        CO_OK);
    for (int step = 0; step < 2; step++) {
        assert_int_equal(co_model_forward(&result, a.model, &a.batch), CO_OK);
        assert_int_equal(co_distributed_backward(d, &a.batch, true), CO_OK);
        assert_refused(co_distributed_backward(d, &a.batch, false), "needs a forward");
        for (int i = 0; i < 2; i++) {
            assert_int_equal(co_model_forward(&result, a.model, &a.batch), CO_OK);
            if (i == 0)
                assert_int_equal(co_distributed_backward(d, &a.batch, false), CO_OK);
        }
        assert_refused(co_distributed_backward(d, &a.batch, false), "said to be the last");
        assert_refused(co_distributed_backward(d, &a.batch, true), "said to be the last");
        assert_int_equal(co_distributed_step(d), CO_OK);
    }
    co_distributed_destroy(d);
    co_comm_destroy(comm);
    co_model_destroy(a.model);
}

static co_status leave_without_finish(co_comm *comm, void *arg)
{
    co_distributed_options o = {.comm = comm, .strategy = "{name: stale, k: 1}"};
    co_distributed *d = NULL;
    co_result result;
    co_status st;
    arrays a;

    (void)arg;
    arrays_open(&a);
    a.batch.global = 2 * COUNT;
    o.model = a.model;
    st = co_distributed_create(&d, &o);
    if (st == CO_OK)
        st = co_model_forward(&result, a.model, &a.batch);
    if (st == CO_OK)
        st = co_distributed_backward(d, &a.batch, false);
    if (st == CO_OK)
        st = co_distributed_step(d);
    co_distributed_destroy(d);
    co_model_destroy(a.model);
    return st;
}

/* Comes first: ranks would give an earlier failure as their reason. */
static void optimizer_left_with_messages_in_flight_says_so(void **state)
{
    (void)state;
    assert_refused(co_launch(&(co_launch_options){.ranks = 2}, leave_without_finish, NULL),
                   "co_distributed_finish waits for them");
}

/* A step of n shards of `said`, up to its first failure. */
static co_status step_of_shards(co_distributed *d, const arrays *a, int n, int said)
{
    for (int i = 0; i < n; i++) {
        co_result result;

        CO_TRY(co_model_forward(&result, a->model, &a->batch));
        CO_TRY(co_distributed_backward(d, &a->batch, i + 1 < said));
        if (i + 1 < n)
            CO_TRY(co_distributed_next_shard(d));
    }
    return co_distributed_step(d);
}

static void optimizer_wrong_number_of_shards_is_refused(void **state)
{
    static const struct {
        int leaves, shards, said; /* leaves 0: no tree */
        const char *message;
    } wrong[] = {{4, 3, 4, "has 4 shards, and 3 came before"},
                 {4, 3, 3, "of shard 3 of this rank's 4 `more` is true"},
                 {4, 5, 5, "no shard of the step after its 4"},
                 {0, 2, 2, "no shard of the step after its 1"}};

    (void)state;
    for (int k = 0; k < 4; k++) {
        const int right = wrong[k].leaves ? wrong[k].leaves : 1;
        co_distributed_options o = {.optimizer = NULL};
        co_tree *tree;
        co_distributed *d;
        co_comm *comm;
        arrays a;

        arrays_open(&a);
        assert_int_equal(co_comm_create_self(&comm), CO_OK);
        o.comm = comm;
        a.batch.global = 4 * COUNT;
        assert_int_equal(co_tree_create(&tree, right, 1), CO_OK);
        o.model = a.model;
        o.tree = wrong[k].leaves ? tree : NULL;
        assert_int_equal(co_distributed_create(&d, &o), CO_OK);
        for (int step = 0; step < 2; step++)
            assert_int_equal(step_of_shards(d, &a, right, right), CO_OK);
        assert_refused(step_of_shards(d, &a, wrong[k].shards, wrong[k].said), wrong[k].message);
        co_distributed_destroy(d);
        co_tree_destroy(tree);
        co_comm_destroy(comm);
        co_model_destroy(a.model);
    }
}

static void safetensors_incomplete_tensor_is_refused(void **state)
{
    const float value[2] = {1, NAN};
    co_named_tensor tensor = {.name = "a", .shape = {1, {2}}, .data = value, .bytes = 8};

    (void)state;
    tensor.name = NULL;
    assert_refused(co_safetensors_write("never", &tensor, 1, NULL), "tensor 0 has no name");
    tensor.name = "a";
    tensor.data = NULL;
    assert_refused(co_safetensors_write("never", &tensor, 1, NULL), "tensor 0 has no data");
    tensor.data = value;
    tensor.bytes = 4;
    assert_refused(co_safetensors_write("never", &tensor, 1, NULL), "do not fit");
    tensor.shape.ndim = 77;
    assert_refused(co_safetensors_write("never", &tensor, 1, NULL), "do not fit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizer_left_with_messages_in_flight_says_so),
        cmocka_unit_test(model_label_beyond_classes_is_named),
        cmocka_unit_test(model_label_of_position_beyond_classes_is_named),
        cmocka_unit_test(model_incomplete_batch_is_refused),
        cmocka_unit_test(model_mismatched_field_is_refused),
        cmocka_unit_test(model_of_values_learns_like_pytorch),
        cmocka_unit_test(model_predict_bad_arguments_are_refused),
        cmocka_unit_test(model_nan_input_is_passed_on),
        cmocka_unit_test(model_sizes_out_of_bounds_are_refused),
        cmocka_unit_test(optimizer_nan_argument_is_refused),
        cmocka_unit_test(optimizer_second_backward_is_refused),
        cmocka_unit_test(optimizer_wrong_number_of_shards_is_refused),
        cmocka_unit_test(safetensors_incomplete_tensor_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
