/* test_plugins.c - plugins that a program registers itself: errors, and use. Plugin files:
   tests/library/check_plugins.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>
#include <cohort/ext/compress.h>
#include <cohort/ext/dataset.h>
#include <cohort/ext/optim.h>
#include <cohort/ext/strategy.h>

#include "folder.h"

static void move_update(const void *self, const co_update *u)
{
    (void)self;
    for (size_t i = 0; i < u->n; i++)
        u->param[i] -= (float)u->values->given.lr * co_grad_use(u->grad[i], u->values->rule);
}

static const co_optimizer_ops move = {
    .name = "move", .summary = "sgd without momentum", .default_lr = 0.1, .update = move_update};

static void assert_refused(co_status st, const char *words)
{
    assert_int_equal(st, CO_E_USAGE);
    if (!strstr(co_error_message(), words))
        fail_msg("'%s' is not in: %s", words, co_error_message());
}

static void plugin_other_interface_is_refused(void **state)
{
    (void)state;
    assert_refused(co_plugin_register(CO_PLUGIN_OPTIMIZER, &move, sizeof(move), CO_PLUGIN_ABI + 1),
                   "build it again");
    assert_refused(co_plugin_register(CO_PLUGIN_OPTIMIZER, &move, sizeof(move) - 8, CO_PLUGIN_ABI),
                   "build it again");
    assert_refused(co_plugin_register((co_plugin_kind)0, &move, sizeof(move), CO_PLUGIN_ABI),
                   "no kind 0");
    assert_refused(co_plugin_register((co_plugin_kind)1000, &move, sizeof(move), CO_PLUGIN_ABI),
                   "no kind 1000");
    assert_refused(co_plugin_register(CO_PLUGIN_OPTIMIZER, NULL, sizeof(move), CO_PLUGIN_ABI),
                   "its struct is missing (NULL), of the kind 'optimizer'");
}

static void plugin_name_that_configs_cannot_have_is_refused(void **state)
{
    static const char *const names[] = {NULL, "", "two words", "Large", "-n", ".hidden", "a/b"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        co_optimizer_ops ops = move;

        ops.name = names[i];
        assert_refused(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &ops), "small letters");
    }
}

static void plugin_missing_function_is_refused(void **state)
{
    const co_optimizer_ops optimizer = {.name = "nothing"};
    const co_schedule_ops schedule = {.name = "nothing"};
    const co_compressor_ops compressor = {.name = "nothing"};
    const co_dataset_ops data = {.name = "nothing"};

    (void)state;
    assert_refused(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &optimizer), "'update'");
    assert_refused(CO_PLUGIN_REGISTER(CO_PLUGIN_SCHEDULE, &schedule), "'factor'");
    assert_refused(CO_PLUGIN_REGISTER(CO_PLUGIN_COMPRESSOR, &compressor), "'post'");
    assert_refused(CO_PLUGIN_REGISTER(CO_PLUGIN_DATASET, &data), "'open'");
}

static void plugin_keys_that_cannot_be_read_are_refused(void **state)
{
    static const char *const none[] = {NULL};
    static const struct {
        const char *words;
        co_key key[3];
    } cases[] = {
        {"has choices", {{.name = "k", .type = CO_KEY_CHOICE, .fallback = "a"}}},
        {"has choices", {{.name = "k", .type = CO_KEY_CHOICE, .choices = none}}},
        {"outside the plugin's struct",
         {{.name = "k", .type = CO_KEY_REAL, .offset = 12, .fallback = "1"}}},
        {"outside the plugin's struct",
         {{.name = "k", .type = CO_KEY_BOOL, .offset = SIZE_MAX, .fallback = "true"}}},
        {"no field of its type", {{.name = "k", .type = CO_KEY_REAL, .offset = 4}}},
        {"no such type", {{.name = "k", .type = (co_key_type)42}}},
        {"small letters", {{.name = "k: x", .type = CO_KEY_BOOL}}},
        {"key of this name", {{.name = "lr", .type = CO_KEY_REAL}}},
        {"another of this name",
         {{.name = "k", .type = CO_KEY_BOOL}, {.name = "k", .type = CO_KEY_BOOL}}},
        {"expected true or false", {{.name = "k", .type = CO_KEY_BOOL, .fallback = "perhaps"}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_optimizer_ops ops = move;

        ops.name = "keyed";
        ops.keys = cases[i].key;
        ops.self_size = 16;
        assert_refused(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &ops), cases[i].words);
        assert_non_null(strstr(co_error_message(), "optimizer 'keyed'"));
    }
}

static void plugin_taken_name_is_refused(void **state)
{
    co_optimizer_ops ops = move;

    (void)state;
    ops.name = "sgd";
    assert_refused(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &ops), "another of this name");
}

static int one_state(const void *self)
{
    (void)self;
    return 1;
}

static void plugin_state_without_name_is_refused(void **state)
{
    static const char *const none[] = {NULL};
    static co_optimizer_ops unnamed[2];
    const co_model_options options = {
        .model = "[{linear: 2}]", .sample = {1, {4}}, .classes = 2, .seed = 1};

    (void)state;
    unnamed[0] = unnamed[1] = move;
    unnamed[0].name = "unnamed-one";
    unnamed[1].name = "unnamed-two";
    unnamed[1].state_names = none;
    for (int i = 0; i < 2; i++) {
        co_distributed_options how = {.optimizer = unnamed[i].name};
        co_distributed *d;

        unnamed[i].states = one_state;
        assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &unnamed[i]), CO_OK);
        assert_int_equal(co_model_create(&how.model, &options), CO_OK);
        assert_int_equal(co_comm_create_self(&how.comm), CO_OK);
        assert_refused(co_distributed_create(&d, &how), "has 1 array of state, and no name of 0");
        co_comm_destroy(how.comm);
        co_model_destroy(how.model);
    }
}

static void average_update(const void *self, const co_update *u)
{
    move_update(self, u);
    for (size_t i = 0; i < u->n; i++)
        u->state[0][i] += (u->param[i] - u->state[0][i]) * 0.5f;
}

static co_status train_average(co_train_summary *out, const char *name, bool resume,
                               const char *set)
{
    const char *const sets[] = {set, NULL};
    const co_train_options options = {
        .config_text = "model: {name: mlp, hidden: [4]}\noptimizer: average\nbatch: 4\nepochs: 2\n"
                       "data: {name: synthetic, shape: [1, 2, 4], classes: 4, samples: 20}\n",
        .set = sets,
        .ranks = 1,
        .run_dir = folder_path(name),
        .resume = resume,
        .quiet = true};

    return co_train(out, &options);
}

/* An optimizer's state of this name is not the moving average of the run. */
static void plugin_state_called_ema_is_in_checkpoints(void **state)
{
    static const char *const names[] = {"ema", NULL};
    static const co_optimizer_ops average = {.name = "average",
                                             .summary = "sgd, and the mean of its weights",
                                             .default_lr = 0.1,
                                             .states = one_state,
                                             .state_names = names,
                                             .update = average_update};
    co_train_summary whole, parts;

    (void)state;
    assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &average), CO_OK);
    assert_int_equal(train_average(&whole, "whole", false, "threads=1"), CO_OK);
    assert_int_equal(train_average(&parts, "parts", false, "max_steps=3"), CO_OK);
    assert_int_equal(train_average(&parts, "parts", true, "threads=1"), CO_OK);
    assert_string_equal(parts.weights_sha256, whole.weights_sha256);
    assert_refused(train_average(&whole, "both", false, "ema={every: 2}"), "are called 'ema'");
}

/* `st`, with a message that has `words` and none from before. */
static void assert_said(co_status st, co_status wanted, const char *words)
{
    assert_int_equal(st, wanted);
    if (!strstr(co_error_message(), words))
        fail_msg("'%s' is not in: %s", words, co_error_message());
}

/* Create and destroy what makes steps. */
static co_status make_step(const char *optimizer, const char *strategy)
{
    const co_model_options options = {
        .model = "[{linear: 2}]", .sample = {1, {4}}, .classes = 2, .seed = 1};
    co_distributed_options how = {.optimizer = optimizer, .strategy = strategy};
    co_distributed *d = NULL;
    co_status st;

    assert_int_equal(co_model_create(&how.model, &options), CO_OK);
    assert_int_equal(co_comm_create_self(&how.comm), CO_OK);
    (void)co_fail(CO_E_FAILED, "an older message");
    st = co_distributed_create(&d, &how);
    co_distributed_destroy(d);
    co_comm_destroy(how.comm);
    co_model_destroy(how.model);
    return st;
}

static co_status silent_check(const void *self)
{
    (void)self;
    return CO_E_FAILED;
}

static co_status silent_init(co_strategy *strategy)
{
    (void)strategy;
    return CO_E_IO;
}

static void silent_fini(co_strategy *strategy)
{
    (void)strategy;
}

static co_status silent_open(void *self, co_dataset_info *info, const char *path, co_split split)
{
    (void)self;
    (void)info;
    (void)path;
    (void)split;
    return CO_E_DATA;
}

static co_status silent_field(const void *self, void *out, int k, uint64_t i)
{
    (void)self;
    (void)out;
    (void)k;
    (void)i;
    return CO_E_DATA;
}

static const co_strategy_ops silent_strategy = {
    .name = "silent", .init = silent_init, .fini = silent_fini};
static const co_dataset_ops silent_data = {
    .name = "silent", .open = silent_open, .field = silent_field};

static void plugin_that_fails_without_message_is_named(void **state)
{
    static co_optimizer_ops optimizer;
    co_dataset *data = NULL;

    (void)state;
    optimizer = move;
    optimizer.name = "silent";
    optimizer.check = silent_check;
    assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &optimizer), CO_OK);
    assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_STRATEGY, &silent_strategy), CO_OK);
    assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_DATASET, &silent_data), CO_OK);
    assert_said(make_step("silent", NULL), CO_E_FAILED,
                "optimizer 'silent': its function check has returned the status 11 without");
    assert_said(make_step(NULL, "silent"), CO_E_IO,
                "strategy 'silent': its function init has returned the status 8 without");
    (void)co_fail(CO_E_DATA, "an older message");
    assert_said(co_dataset_open(&data, "silent", CO_SPLIT_TRAIN), CO_E_DATA,
                "data set 'silent': its function open has returned the status 2 without");
}

static co_status mislabelled_open(void *self, co_dataset_info *info, const char *path,
                                  co_split split)
{
    (void)self;
    (void)path;
    (void)split;
    info->count = 4;
    info->classes = 3;
    info->field[0] = (co_field){CO_FIELD_INPUT, CO_F32, {1, {1}}, NULL};
    info->field[1] = (co_field){CO_FIELD_LABEL, CO_I32, {0}, NULL};
    return CO_OK;
}

/* The label of sample i is i, also that of the fourth. */
static co_status mislabelled_field(const void *self, void *out, int k, uint64_t i)
{
    const int32_t label = (int32_t)i;
    const float input = 0;

    (void)self;
    memcpy(out, k == 0 ? (const void *)&input : &label, 4);
    return CO_OK;
}

static void plugin_field_with_wrong_label_is_bad_data(void **state)
{
    static const co_dataset_ops ops = {
        .name = "mislabelled", .open = mislabelled_open, .field = mislabelled_field};
    co_dataset *data = NULL;
    int32_t label;

    (void)state;
    assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_DATASET, &ops), CO_OK);
    assert_int_equal(co_dataset_open(&data, "mislabelled", CO_SPLIT_TRAIN), CO_OK);
    assert_int_equal(co_dataset_read_field(data, &label, 1, 2), CO_OK);
    assert_said(co_dataset_read_field(data, &label, 1, 3), CO_E_DATA,
                "label 3; those of this data set are 0 to 2");
    co_dataset_destroy(data);
}

static int states_below_none(const void *self)
{
    (void)self;
    return -1;
}

static int states_many(const void *self)
{
    (void)self;
    return 100;
}

static void plugin_number_of_states_is_checked(void **state)
{
    static const char *const names[] = {"momentum", NULL};
    static co_optimizer_ops ops[2];

    (void)state;
    ops[0] = ops[1] = move;
    ops[0].name = "below-none";
    ops[0].states = states_below_none;
    ops[1].name = "many";
    ops[1].states = states_many;
    for (int i = 0; i < 2; i++) {
        char words[128];

        ops[i].state_names = names;
        assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &ops[i]), CO_OK);
        (void)snprintf(words, sizeof(words), "'%s': optimizer %s: its function states has returned",
                       ops[i].name, ops[i].name);
        assert_refused(make_step(ops[i].name, NULL), words);
    }
}

static float first_weight(const char *optimizer)
{
    const float input[4] = {1, 2, 3, 4};
    const int32_t label[1] = {1};
    const uint32_t sample[1] = {0};
    const co_batch batch = {
        .count = 1,
        .local = 1,
        .global = 1,
        .sample = sample,
        .field = {{CO_FIELD_INPUT, CO_F32, {1, {4}}, input}, {CO_FIELD_LABEL, CO_I32, {0}, label}}};
    const co_model_options options = {
        .model = "[{linear: 2}]", .sample = {1, {4}}, .classes = 2, .seed = 1};
    co_distributed_options how = {.optimizer = optimizer};
    co_distributed *d = NULL;
    float out[2];
    co_result seen;

    assert_int_equal(co_model_create(&how.model, &options), CO_OK);
    assert_int_equal(co_comm_create_self(&how.comm), CO_OK);
    assert_int_equal(co_distributed_create(&d, &how), CO_OK);
    assert_int_equal(co_model_forward(&seen, how.model, &batch), CO_OK);
    assert_int_equal(co_distributed_backward(d, &batch, false), CO_OK);
    assert_int_equal(co_distributed_step(d), CO_OK);
    assert_int_equal(co_model_predict(out, how.model, input, 1), CO_OK);
    co_distributed_destroy(d);
    co_comm_destroy(how.comm);
    co_model_destroy(how.model);
    return out[0];
}

static void plugin_registered_trains_as_built_in(void **state)
{
    (void)state;
    assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &move), CO_OK);
    assert_int_equal(CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &move), CO_OK);
    assert_float_equal(first_weight("{name: move, lr: 0.1}"), first_weight("{name: sgd, lr: 0.1}"),
                       1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugin_other_interface_is_refused),
        cmocka_unit_test(plugin_name_that_configs_cannot_have_is_refused),
        cmocka_unit_test(plugin_missing_function_is_refused),
        cmocka_unit_test(plugin_keys_that_cannot_be_read_are_refused),
        cmocka_unit_test(plugin_taken_name_is_refused),
        cmocka_unit_test(plugin_state_without_name_is_refused),
        cmocka_unit_test(plugin_state_called_ema_is_in_checkpoints),
        cmocka_unit_test(plugin_that_fails_without_message_is_named),
        cmocka_unit_test(plugin_field_with_wrong_label_is_bad_data),
        cmocka_unit_test(plugin_number_of_states_is_checked),
        cmocka_unit_test(plugin_registered_trains_as_built_in),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
