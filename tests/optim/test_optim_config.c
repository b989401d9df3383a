/* test_optim_config.c - optimizers that cannot be made: what is said, and that nothing is lost. */
#include "optim/optim_test.h"

static void optim_bad_config_is_refused_at_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"optimizer: sdg", "bad.yaml:1:12: unknown optimizer 'sdg'; there are sgd, adam, adamw, "
                           "adadelta, lars, lamb"},
        {"optimizer: {name: adamax}",
         "bad.yaml:1:19: unknown optimizer 'adamax'; did you mean 'adam'?"},
        {"optimizer: {lr: fast}", "bad.yaml:1:17: optimizer sgd: key 'lr': expected a number from "
                                  "0 to 1000000, got 'fast'"},
        {"optimizer: [sgd]",
         "bad.yaml:1:12: optimizer: expected a name, or {name: ..., key: value}"},
        {"optimizer:\n  name: sgd\n  momentun: 0.9",
         "bad.yaml:3:13: optimizer sgd: unknown key 'momentun'; did you mean 'momentum'?"},
        {"optimizer: {name: sgd, lr: -0.1}",
         "bad.yaml:1:28: optimizer sgd: key 'lr': expected a number from 0 to 1000000, got "
         "'-0.1'"},
        {"optimizer: {name: sgd, lr: fast}",
         "bad.yaml:1:28: optimizer sgd: key 'lr': expected a number from 0 to 1000000, got "
         "'fast'"},
        {"optimizer: {name: sgd, nesterov: true}",
         "bad.yaml:1:12: optimizer sgd: nesterov needs momentum above 0 and no dampening"},
        {"optimizer: {name: sgd, nesterov: true, momentum: 0.9, dampening: 0.1}",
         "bad.yaml:1:12: optimizer sgd: nesterov needs momentum above 0 and no dampening"},
        {"optimizer: {name: adam, betas: [0.9, 1]}",
         "bad.yaml:1:12: optimizer adam: betas are two numbers below 1, such as [0.9, 0.999]"},
        {"optimizer: {name: adamw, betas: 0.9}",
         "bad.yaml:1:12: optimizer adamw: betas are two numbers below 1, such as [0.9, 0.999]"},
        {"optimizer: {name: adam, eps: 0}",
         "bad.yaml:1:30: optimizer adam: key 'eps': expected a number from "
         "1e-30 to 1000000, got '0'"},
        {"optimizer: {name: lamb, betas: [1, 0.9]}",
         "bad.yaml:1:12: optimizer lamb: betas are two numbers below 1, such as [0.9, 0.999]"},
        {"optimizer: {name: sgd, norm_weight_decay: -0.5}",
         "bad.yaml:1:12: optimizer sgd: norm_weight_decay is 0 or more, or -1 for the model's "
         "default"},
        {"optimizer: {name: sgd, lr_batch: -1}",
         "bad.yaml:1:34: optimizer sgd: key 'lr_batch': expected a whole number from 0 to "
         "16777216, got '-1'"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        co_store *store = optim_test_store(4);
        co_config *config = optim_test_config(cases[c].text);
        const co_value *value = co_value_get(co_config_root(config), "optimizer");
        co_optim *optim = NULL;

        assert_int_equal(co_optim_create(&optim, value, config, store), CO_E_USAGE);
        assert_string_equal(co_error_message(), cases[c].message);
        assert_null(optim);
        assert_int_equal(store->n_state, 0);
        co_config_destroy(config);
        co_store_destroy(store);
    }
}

static void optim_failed_allocation_is_an_error(void **state)
{
    static const char text[] = "optimizer: {name: adam, lr: 0.1, betas: [0.5, 0.9]}";
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_store *store = optim_test_store(4);
        co_config *config = optim_test_config(text);
        co_optim *optim = NULL;

        co_mem_fail_at(++k);
        st = co_optim_create(&optim, co_value_get(co_config_root(config), "optimizer"), config,
                             store);
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        co_optim_destroy(optim);
        co_config_destroy(config);
        co_store_destroy(store);
    } while (st != CO_OK);
    assert_true(k >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optim_bad_config_is_refused_at_its_line),
        cmocka_unit_test(optim_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
