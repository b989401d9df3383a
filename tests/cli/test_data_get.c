/*
 * test_data_get.c - `cohort data get` and the folder that it fills: sets are found there by their
 * names, a set that is missing has the command in its error, and a wrong file leaves nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixtures.h"
#include "program.h"

#define CONFIG "model: {name: mlp, hidden: [8]}\ndata: mnist\nbatch: 16\nepochs: 1\n"

static int data_get_setup(void **state)
{
    char folder[512];

    (void)state;
    assert_non_null(getcwd(folder, sizeof(folder) - 8));
    stpcpy(strchr(folder, '\0'), "/xdg");
    setenv("XDG_DATA_HOME", folder, 1);
    program_write_text("net.yaml", CONFIG);
    return 0;
}

static void train_missing_set_names_the_command(void **state)
{
    (void)state;
    program_assert_error(program_line("train net.yaml --run-dir run"), 3,
                         "data mnist: is not on this machine; `cohort data get mnist` fetches it");
    program_assert_error(program_line("data info cifar100"), 3, "`cohort data get cifar100`");
    assert_false(program_exists("xdg"));
}

static void train_set_of_the_user_is_found(void **state)
{
    (void)state;
    mkdir("xdg", 0700);
    mkdir("xdg/cohort", 0700);
    fixtures_make_idx("xdg/cohort/mnist", FIXTURES_SOUND);
    program_assert_success(program_line("train net.yaml --run-dir run --quiet"));
    assert_non_null(strstr(program_line("data get --list")->out, "here: "));
    assert_non_null(strstr(program_line("data get mnist")->out, "in a config: `data: mnist`"));
    program_remove("xdg");
    /* torchvision's layout */
    mkdir("torch", 0700);
    mkdir("torch/MNIST", 0700);
    fixtures_make_idx("torch/MNIST/raw", FIXTURES_SOUND);
    program_assert_success(program_line("data info '{name: mnist, path: torch}'"));
}

static void get_list_names_sets_and_sources(void **state)
{
    const program_result *r = program_line("data get --list");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "\ncifar10 "));
    assert_non_null(strstr(r->out, "from https://"));
    assert_non_null(strstr(r->out, "checksums as published by torchvision"));
    assert_null(strstr(r->out, "here: "));
    program_assert_error(program_line("data get imagenet"), 2, "no data set 'imagenet' to get");
    program_assert_error(program_line("data get"), 2, "NAME is missing");
}

static void get_wrong_file_leaves_nothing(void **state)
{
    (void)state;
    fixtures_make_idx("mirror", FIXTURES_SOUND);
    program_write_text("mirror/input.txt", "to be or not");
    program_assert_error(program_line("data get tinyshakespeare --from mirror"), 3,
                         "mirror/input.txt: its SHA-256 is ");
    program_assert_error(program_line("data get mnist --from mirror --to here"), 3,
                         "mirror/train-images-idx3-ubyte.gz: ");
    assert_int_equal(program_count_entries("xdg/cohort"), 0);
    assert_false(program_exists("here"));
    assert_false(program_exists("here.part"));
    program_assert_error(program_line("data get mnist --to mirror"), 2, "mirror: is there");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_missing_set_names_the_command),
        cmocka_unit_test(get_list_names_sets_and_sources),
        cmocka_unit_test(train_set_of_the_user_is_found),
        cmocka_unit_test(get_wrong_file_leaves_nothing),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests_name("cli_data_get", tests, data_get_setup, NULL);
    program_fini();
    return failed;
}
