/* test_lists.c - lists describe keys, configs are found by name, and a run is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fixtures.h"
#include "cli/program.h"

static void list_says_what_each_key_takes(void **state)
{
    static const char *const lists[] = {"config",        "models",     "ops",        "datasets",
                                        "partitions",    "schedules",  "optimizers", "strategies",
                                        "augmentations", "compressors"};

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const char *const args[] = {"list", lists[i], NULL};
        const program_result *r = program_run(args, NULL);

        program_assert_success(r);
        if (strstr(r->out, " a value"))
            fail_msg("cohort list %s: a key takes `a value`: say which", lists[i]);
    }
}

static void list_config_has_keys_of_maps(void **state)
{
    const program_result *r = program_line("list config");
    static const char *const keys[] = {"\n    norm ",  "\n    depth ",    "\n    decay ",
                                       "\n    every ", "\n    accuracy ", "\n    skip "};

    (void)state;
    program_assert_success(r);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_non_null(strstr(r->out, keys[i]));
    assert_non_null(strstr(r->out, "`cohort list optimizers`"));
}

static void configs_by_name_are_found(void **state)
{
    const program_result *r = program_line("list configs");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "fashion-mnist "));
    assert_non_null(strstr(r->out, "tutorial/a-sync "));
    assert_non_null(strstr(r->out, "Fashion-MNIST, 10 kinds of clothing"));
    r = program_line("train fashion-mnist -q --run-dir named -s data=synthetic -s max_steps=1");
    program_assert_success(r);
    assert_non_null(strstr(r->err, "configs/fashion-mnist.yaml\n"));
    r = program_line("inspect tutorial/a-sync -s data=synthetic");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "mnist-net"));
    /* a file of that name takes precedence */
    program_write_text("fashion-mnist", FIXTURES_CONFIG);
    r = program_line("train fashion-mnist -q --run-dir nearer -s max_steps=1");
    program_assert_success(r);
    assert_string_equal(r->err, "");
    program_remove("fashion-mnist");
    /* as the documents call it, in a folder that has no configs/ */
    program_assert_success(program_line(
        "train configs/fashion-mnist.yaml -q --run-dir below -s data=synthetic -s max_steps=1"));
    program_assert_error(program_line("train fashion-mnst"), 2, "did you mean 'fashion-mnist'?");
    program_assert_error(program_line("train zzzzzzzzzzzz"), 2, "`cohort list configs`");
    program_assert_error(program_line("train nowhere.yaml"), 2, "No such file");
    program_assert_error(program_line("train ../configs/fashion-mnist"), 2, "No such file");
}

static void inspect_run_directory_is_shown(void **state)
{
    const program_result *r;

    (void)state;
    program_write_text("a.yaml", FIXTURES_CONFIG);
    program_assert_success(program_line("train a.yaml -n 2 -q --run-dir shown"));
    r = program_line("inspect shown");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "config       shown/config.yaml\n"));
    assert_non_null(strstr(r->out, "model        mlp on synthetic\n"));
    assert_non_null(strstr(r->out, "ranks        2, strategy sync, batch 32, seed 1234\n"));
    assert_non_null(strstr(r->out, "finished     16 steps in "));
    assert_non_null(strstr(r->out, "test         accuracy "));
    assert_non_null(strstr(r->out, "checkpoints  step 16, epoch 2, test accuracy "));
    assert_non_null(strstr(r->out, "             step 8, epoch 1, test accuracy "));
    assert_non_null(strstr(r->out, "the best"));
    assert_non_null(strstr(r->out, "`cohort eval shown`"));
    /* without its summary it can be resumed */
    program_remove("shown/summary.json");
    program_remove("shown/final.safetensors");
    r = program_line("inspect shown");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "--run-dir shown --resume"));
    program_write_text("shown/summary.json", "[");
    program_assert_error(program_line("inspect shown"), 3, "shown/summary.json");
    program_write_text("shown/checkpoints/step-16/manifest.json", "{}");
    program_remove("shown/summary.json");
    r = program_line("inspect shown");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "step 16: damaged"));
    program_assert_error(program_line("inspect ."), 2, "neither a run's nor a checkpoint's");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_says_what_each_key_takes),
        cmocka_unit_test(list_config_has_keys_of_maps),
        cmocka_unit_test(configs_by_name_are_found),
        cmocka_unit_test(inspect_run_directory_is_shown),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
