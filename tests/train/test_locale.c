/*
 * test_locale.c - a program whose locale writes numbers with a comma trains the same, and its files
 * have points.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/trained.h"

static const char config[] =
    "model: {name: mlp, hidden: [16], dropout: 0.25}\n"
    "data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 96, test_samples: 32}\n"
    "partition: {kind: random, ratios: [0.7, 0.3]}\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "clip: {norm: 1.5}\n"
    "ema: {decay: 0.99}\n"
    "batch: 32\n"
    "epochs: 2\n"
    "threads: 1\n";

/* German, made in the folder; skipped where Debian's `locales` is missing. */
static void set_locale_with_comma(void)
{
    if (shell_run("localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null", folder) != 0) {
        puts("skipped: localedef cannot make the locale de_DE.UTF-8; install locales");
        skip();
    }
    setenv("LOCPATH", folder, 1);
    assert_non_null(setlocale(LC_ALL, "de_DE.UTF-8"));
    assert_string_equal(localeconv()->decimal_point, ",");
}

static void locale_with_comma_changes_nothing(void **state)
{
    const trained plain = trained_run(config, 2, "strategy=sync", NULL);
    char own[512];
    trained german;
    co_train_options again = {.config_path = own, .run_dir = folder_path("2"), .quiet = true};

    (void)state;
    set_locale_with_comma();
    german = trained_run(config, 2, "strategy=sync", NULL);
    assert_string_equal(german.summary.weights_sha256, plain.summary.weights_sha256);
    snprintf(own, sizeof(own), "%s/1/config.yaml", folder);
    if (co_train(&german.summary, &again) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_string_equal(german.summary.weights_sha256, plain.summary.weights_sha256);
    folder_run("cmp 0/config.yaml 1/config.yaml");
    setlocale(LC_ALL, "C");
}

static void locale_with_comma_leaves_models_as_they_are(void **state)
{
    static const char *const models[] = {"{name: gpt2, layers: 1, heads: 2, width: 16}", "alexnet",
                                         "{name: resnet9-wide}", "lenet5"};

    (void)state;
    set_locale_with_comma();
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        co_model_options options = {.model = models[i], .classes = 10};
        co_model *model = NULL;

        options.sample = i == 0 ? (co_shape){1, {8}} : (co_shape){3, {3, 224, 224}};
        if (co_model_create(&model, &options) != CO_OK)
            fail_msg("%s: %s", models[i], co_error_message());
        co_model_destroy(model);
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(locale_with_comma_changes_nothing, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(locale_with_comma_leaves_models_as_they_are, folder_make,
                                        folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
