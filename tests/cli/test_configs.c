/*
 * test_configs.c - the configs that come with Cohort: all run; with "accuracy" as the argument
 * after the folder, each reaches its documented accuracy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "core/isa.h"

/* The folder of the sources: the second argument. */
static const char *configs_source;

static const struct {
    const char *name;
    double accuracy; /* 0: none documented */
    bool mnist;      /* needs MNIST, which is not in any package */
} configs_all[] = {
    {"fashion-mnist", 0.91, false},
    {"mnist-net", 0.97, true},
    {"lenet-sync", 0.985, true},
    {"tutorial/a-sync", 0.97, true},
    {"tutorial/b-sync-70-30", 0.97, true},
    {"tutorial/c-async-70-30", 0.96, true},
    {"tutorial/d-async-70-30-bn", 0.97, true},
    {"tutorial/c-published", 0, true},
    {"tutorial/d-published", 0, true},
    {"tutorial/e-published", 0, true},
    {"tutorial/e-labels", 0, true},
    {"tutorial/e-labels-sync", 0.97, true},
    {"psgd/common", 0, true},
    {"psgd/per-rank", 0, true},
    {"psgd/hogwild", 0, true},
    {"psgd/mnist-hogwild", 0.98, true},
    {"resnet9-cifar10", 0, false},
    {"resnet9-wide-cifar10", 0, false},
    {"resnet18-cifar10", 0, false},
    {"resnet18-imagenette", 0, false},
    {"resnet50-imagenet", 0, false},
    {"shakespeare-char", 0, false},
    {"shakespeare-llama", 0, false},
    {"vit-cifar10", 0, false},
};

/* Large enough for every network; the residual ones take long anyway. */
#define CONFIGS_SYNTHETIC "data={name: synthetic, shape: [1, 32, 32], classes: 10, samples: 4096}"
#define CONFIGS_COLOR     "data={name: synthetic, shape: [3, 32, 32], classes: 10, samples: 8}"

#define CONFIGS_TOKENS "data={name: synthetic-tokens, context: 32}"

#define CONFIGS (sizeof(configs_all) / sizeof(configs_all[0]))

static const char *configs_path(size_t i)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%s/configs/%s.yaml", configs_source, configs_all[i].name);
    return path;
}

static bool configs_is(const char *name, const char *kind)
{
    return strncmp(name, kind, strlen(kind)) == 0;
}

/* In place of a config's data. */
static const char *configs_data(const char *name)
{
    return configs_is(name, "resnet") || configs_is(name, "vit") ? CONFIGS_COLOR
           : configs_is(name, "shakespeare")                     ? CONFIGS_TOKENS
                                                                 : CONFIGS_SYNTHETIC;
}

static void configs_all_of_them_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIGS; i++) {
        const char *name = configs_all[i].name;
        const char *args[] = {"train",       configs_path(i), "-q",  "-s", "",        "-s",
                              "max_steps=2", "--run-dir",     "out", "-s", "batch=4", NULL};

        args[4] = configs_data(name);
        if (!configs_is(name, "resnet"))
            args[9] = NULL;

        program_assert_success(program_run(args, NULL));
        program_remove("out");
    }
}

/* Reference kernels define the ops, and are slow. */
static void assert_not_on_ref(const char *path, const char *data, const char *precision)
{
    const char *args[] = {"list", "kernels", "--config", path, "--set",
                          data,   "--set",   precision,  NULL};
    const program_result *r = program_run(args, NULL);

    program_assert_success(r);
    assert_non_null(strstr(r->out, "loss "));
    if (strstr(r->out, " ref\n"))
        fail_msg("%s, %s, runs a layer on reference kernels:\n%s", path, precision, r->out);
}

/* Those of the benchmarks in bf16, where a layer runs in fp32 if no kernel takes it in bf16. */
static void configs_run_no_layer_on_reference_kernels(void **state)
{
    static const char *const bench[] = {"alexnet",    "lenet5",     "mnist-example",  "mnist-net",
                                        "psgd-cnn",   "resnet18",   "resnet18-cifar", "resnet50",
                                        "resnet9",    "vgg11",      "resnet9-wide",   "gpt2-char",
                                        "gpt2-small", "llama-small"};
    char path[4096];

    (void)state;
    if (!co_isa_has(CO_ISA_AVX2) && !co_isa_has(CO_ISA_NEON)) {
        print_message("skipped: no linear layers but ref's without AVX2 or NEON\n");
        skip();
    }
    for (size_t i = 0; i < CONFIGS; i++)
        assert_not_on_ref(configs_path(i), configs_data(configs_all[i].name), "precision=fp32");
    for (size_t i = 0; i < sizeof(bench) / sizeof(bench[0]); i++) {
        snprintf(path, sizeof(path), "%s/bench/configs/%s.yaml", configs_source, bench[i]);
        assert_not_on_ref(path, "batch=4", "precision=bf16");
    }
}

static double configs_accuracy(const char *dir)
{
    json_t *summary = program_summary(dir);
    double accuracy = json_number_value(json_object_get(summary, "test_accuracy"));

    json_decref(summary);
    return accuracy;
}

/* "data.path=..." of MNIST; NULL if there is none. */
static const char *configs_mnist(void)
{
    static char set[4096];
    const char *root = getenv("COHORT_DATA");
    const size_t key = strlen("data.path=");

    if (root)
        snprintf(set, sizeof(set), "data.path=%s/mnist", root);
    else
        snprintf(set, sizeof(set), "data.path=%s/../shared/data/mnist", configs_source);
    return program_exists(set + key) ? set : NULL;
}

static void assert_reaches(size_t i, const char *ranks, const char *set)
{
    const char *args[] = {"train",     configs_path(i), "-q", "-n", ranks,
                          "--run-dir", "out",           "-s", set,  NULL};
    const program_options patient = {.timeout_s = 3600};
    double accuracy;

    if (!set)
        args[7] = NULL;
    program_assert_success(program_run(args, &patient));
    accuracy = configs_accuracy("out");
    print_message("%s on %s ranks: %.4f\n", configs_all[i].name, ranks, accuracy);
    if (!(accuracy >= configs_all[i].accuracy))
        fail_msg("%s: %g, not the %g that it promises", configs_all[i].name, accuracy,
                 configs_all[i].accuracy);
    program_remove("out");
}

static void configs_all_of_them_learn(void **state)
{
    const char *mnist = configs_mnist();
    const bool fashion = program_line("data info fashion-mnist")->exit_code == 0;
    size_t reached = 0;

    (void)state;
    for (size_t i = 0; i < CONFIGS; i++) {
        if (configs_all[i].accuracy == 0)
            continue;
        if (configs_all[i].mnist ? !mnist : !fashion) {
            print_message("skipped: the data of %s is not here\n", configs_all[i].name);
            continue;
        }
        assert_reaches(i, "2", configs_all[i].mnist ? mnist : NULL);
        reached++;
    }
    if (reached == 0)
        skip();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest quick[] = {cmocka_unit_test(configs_all_of_them_run),
                                       cmocka_unit_test(configs_run_no_layer_on_reference_kernels)};
    const struct CMUnitTest slow[] = {cmocka_unit_test(configs_all_of_them_learn)};
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0 || argc < 3)
        return 1;
    configs_source = argv[2];
    failed = argc > 3 && strcmp(argv[3], "accuracy") == 0
                 ? cmocka_run_group_tests(slow, NULL, NULL)
                 : cmocka_run_group_tests(quick, NULL, NULL);
    program_fini();
    return failed;
}
