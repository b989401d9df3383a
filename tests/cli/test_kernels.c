/*
 * test_kernels.c - kernels that are measured or named in a config: recorded, agreed by the ranks,
 * resumed with the same bits, and refused with the layer's name where they cannot run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "core/isa.h"

/* Layers with several kernels each; 37 samples in batches of 32: a short last one of 5. */
static const char config[] =
    "layers:\n"
    "  - conv2d: {out: 16, kernel: 3, padding: 1, name: conv1}\n"
    "  - relu\n"
    "  - conv2d: {out: 16, kernel: 3, padding: 1, name: conv2}\n"
    "  - batchnorm: {name: bn2}\n"
    "  - relu\n"
    "  - maxpool: 2\n"
    "  - flatten\n"
    "  - linear: {out: 10, name: fc}\n"
    "data: {name: synthetic, shape: [3, 16, 16], classes: 10, samples: 37}\n"
    "batch: 32\n"
    "epochs: 4\n"
    "threads: 1\n"
    "checkpoint: {every: 1 epoch, keep: 1}\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n";

#define MEASURED "-s 'kernels={choice: measured, seconds: 20}'"

/* The value of `kernels` in a run's config.yaml; freed by the caller. */
static char *recorded(const char *run)
{
    char path[128], *text, *line, *out;

    snprintf(path, sizeof(path), "%s/config.yaml", run);
    text = program_read(path);
    assert_non_null(text);
    line = strstr(text, "\nkernels: ");
    assert_non_null(line);
    line += strlen("\nkernels: ");
    line[strcspn(line, "\n")] = '\0';
    out = malloc(strlen(line) + 1);
    assert_non_null(out);
    memcpy(out, line, strlen(line) + 1);
    free(text);
    return out;
}

static void assert_same_weights(const char *a, const char *b)
{
    char first[65], second[65];

    program_weights(first, a);
    program_weights(second, b);
    assert_string_equal(first, second);
}

static void kernels_measured_are_recorded_for_every_layer(void **state)
{
    static const char *const layers[] = {"conv1: ", "conv2: ", "bn2: ", "fc: ", "batch: 16"};
    const program_result *r = program_line("train c.yaml -n 2 " MEASURED " --run-dir m");
    char *kernels, *manifest;

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "kernels: measuring which run each layer fastest, 16 samples"));
    assert_non_null(strstr(r->out, "kernels: measured "));
    kernels = recorded("m");
    manifest = program_read("m/checkpoints/step-8/manifest.json");
    assert_non_null(manifest);
    assert_non_null(strstr(manifest, kernels));
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        assert_non_null(strstr(kernels, layers[i]));
    free(kernels);
    free(manifest);
}

/* The recorded config measures nothing; on two ranks and on three all have the same kernels. */
static void kernels_recorded_give_same_bits(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 3; ranks++) {
        char line[160];
        const program_result *r;

        snprintf(line, sizeof(line), "train c.yaml -n %d " MEASURED " --run-dir a%d", ranks, ranks);
        program_assert_success(program_line(line));
        snprintf(line, sizeof(line), "train a%d/config.yaml --run-dir b%d", ranks, ranks);
        r = program_line(line);
        program_assert_success(r);
        assert_null(strstr(r->out, "kernels: measur"));
        snprintf(line, sizeof(line), "a%d", ranks);
        snprintf(line + 80, 80, "b%d", ranks);
        assert_same_weights(line, line + 80);
    }
}

/* The config of the command wants to measure, and the checkpoint has what was measured. */
static void kernels_of_checkpoint_are_resumed(void **state)
{
    const program_result *r;
    char *before, *after;

    (void)state;
    program_assert_success(
        program_line("train c.yaml -n 2 " MEASURED " -s max_steps=3 --run-dir cut"));
    before = recorded("cut");
    program_assert_success(program_line("train cut/config.yaml -s max_steps=0 --run-dir whole"));
    r = program_line("train c.yaml -n 2 " MEASURED " --resume --run-dir cut");
    program_assert_success(r);
    assert_null(strstr(r->out, "kernels: measur"));
    assert_null(strstr(r->err, "kernels"));
    after = recorded("cut");
    assert_string_equal(before, after);
    assert_same_weights("cut", "whole");
    free(before);
    free(after);
}

static void kernels_over_mpi_are_agreed(void **state)
{
    const char *args[] = {"train",     "c.yaml", "-s", "kernels={choice: measured, seconds: 20}",
                          "--run-dir", "mpi",    NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};

    (void)state;
    program_need_mpi();
    program_assert_success(program_run(args, &options));
    program_assert_success(program_line("train mpi/config.yaml -n 2 --run-dir shm"));
    assert_same_weights("mpi", "shm");
}

static void kernels_of_threads_are_agreed(void **state)
{
    (void)state;
    program_assert_success(
        program_line("train c.yaml -n 2 -s strategy=threads " MEASURED " --run-dir threads"));
    program_assert_success(program_line("train threads/config.yaml -n 2 --run-dir again"));
    assert_same_weights("threads", "again");
}

static void kernels_named_by_hand_are_used(void **state)
{
    const program_result *r;

    (void)state;
    program_assert_success(
        program_line("train c.yaml --quiet -s 'kernels={layers: {conv2: cpu-general/direct, "
                     "bn2: ref}}' --run-dir hand"));
    r = program_line("list kernels --config hand/config.yaml");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "conv2                conv2d             cpu-general direct"));
    assert_non_null(strstr(r->out, "bn2                  batchnorm          ref"));
}

static void kernels_with_wrong_names_are_refused(void **state)
{
    static const struct {
        const char *set, *words;
        int exit_code; /* 0: 2, a mistake in the config */
    } cases[] = {
        {"{layers: {conv3: onednn}}", "no layer is called 'conv3'", 0},
        {"{layers: {conv1: cpu/winogard}}", "layer conv1: no kernel 'cpu/winogard' for conv2d; ",
         0},
        {"{layers: {conv1: cpu/winogard}}", "with this `backend`, cpu/sample-lanes, ", 0},
        {"{layers: {conv1: cpu/gemm}}", "layer conv1: no kernel 'cpu/gemm' for conv2d; ", 0},
        {"{layers: {conv1: [ref]}}", "layer conv1: no kernel '' for conv2d; ", 0},
        {"{layers: conv1}", "expected a map of layers to kernels", 0},
        {"{choice: fastest}", "fixed, measured", 0},
        {"measured", "kernels", 0},
        /* there is such a kernel, and it cannot run the layer */
        {"{layers: {conv1: cpu/winograd}}",
         "layer conv1: `kernels` names cpu/winograd, which cannot run it: ", 1},
        {"{layers: {conv1: cpu/winograd}}", "here it can be ", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *args[] = {"train", "c.yaml", "-s", NULL, "--run-dir", "no", NULL};
        char set[128];

        snprintf(set, sizeof(set), "kernels=%s", cases[i].set);
        args[3] = set;
        program_assert_error(program_run(args, NULL), cases[i].exit_code ? cases[i].exit_code : 2,
                             cases[i].words);
    }
    assert_false(program_exists("no/metrics.jsonl"));
}

/* With fewer backends, as in another build: the name of the layer and those that there are. */
static void kernels_that_resume_lacks_are_refused(void **state)
{
    (void)state;
    program_assert_success(program_line("train c.yaml -n 2 -s max_steps=3 --quiet -s "
                                        "'kernels={layers: {conv2: cpu-general/direct}}' "
                                        "--run-dir lacks"));
    program_assert_error(program_line("train --resume --run-dir lacks -s backend=ref"), 2,
                         "layer conv2: no kernel 'cpu-general/direct' for conv2d; this build has, "
                         "with this `backend`, ref");
    program_assert_success(program_line("train --resume --quiet --run-dir lacks"));
}

static void kernels_that_cpu_lacks_are_refused(void **state)
{
    const char *args[] = {"train", "--resume", "--quiet", "--run-dir", "isa", NULL, NULL, NULL};
    const program_options lesser = {.before = {"env", "COHORT_ISA=base"}};

    (void)state;
    if (!co_isa_has(CO_ISA_AVX2)) {
        print_message("skipped: this CPU has no AVX2\n");
        skip();
    }
    program_assert_success(program_line("train c.yaml -n 2 -s max_steps=3 --quiet -s "
                                        "'kernels={layers: {conv2: cpu/winograd}}' --run-dir isa"));
    program_assert_error(program_run(args, &lesser), 1,
                         "layer conv2: `kernels` names cpu/winograd, which cannot run it: this CPU "
                         "has no AVX2; here it can be ");
    args[5] = "-s";
    args[6] = "kernels={choice: fixed}";
    program_assert_success(program_run(args, &lesser));
}

static void bench_kernels_names_each_layer(void **state)
{
    const program_result *r = program_line("bench kernels c.yaml --threads 1 --seconds 20");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "{\"bench\": \"kernels\", \"name\": \"conv2\", \"op\": "
                                   "\"conv2d\", \"fixed\": \""));
    assert_non_null(strstr(r->err, "choices measured in"));
}

/* The fixed choice, which depends on the level of instructions. */
static void kernels_with_stride_at_avx2_are_direct(void **state)
{
    const char *args[] = {"list", "kernels", "--config", "strided.yaml", NULL};
    const program_options avx2 = {.before = {"env", "COHORT_ISA=avx2"}};
    const program_result *r;

    (void)state;
    if (!co_isa_has(CO_ISA_AVX2)) {
        print_message("skipped: this CPU has no AVX2\n");
        skip();
    }
    program_write_text("strided.yaml", "model: resnet18\n"
                                       "data: {name: synthetic, shape: [3, 64, 64]}\n"
                                       "batch: 8\n");
    r = program_run(args, &avx2);
    program_assert_success(r);
    assert_non_null(strstr(r->out, "layer2.0.conv1       conv2d             cpu direct"));
    assert_null(strstr(r->out, "layer2.0.downsample.0 conv2d             cpu direct"));
}

/* oneDNN's kernels named "ref" take a thousand times as long as others. */
static void kernels_with_stride_and_few_channels_are_fast(void **state)
{
    const program_result *r;
    char *profile;

    (void)state;
    if (!co_isa_has(CO_ISA_AVX2)) {
        print_message("skipped: this CPU has no AVX2\n");
        skip();
    }
    program_write_text("few.yaml", "layers:\n"
                                   "  - conv2d: {out: 8, kernel: 3, stride: 2, padding: 1}\n"
                                   "  - relu\n"
                                   "  - conv2d: {out: 16, kernel: 3, stride: 2, padding: 1}\n"
                                   "  - flatten\n"
                                   "  - linear: 10\n"
                                   "data: {name: synthetic, shape: [3, 32, 32], samples: 64}\n"
                                   "batch: 8\n"
                                   "threads: 1\n"
                                   "optimizer: sgd\n");
    r = program_line("train few.yaml -q --profile --run-dir few");
    program_assert_success(r);
    profile = program_read("few/profile.json");
    assert_non_null(profile);
    assert_non_null(strstr(profile, "\"pass\": \"backward\""));
    assert_null(strstr(profile, "ref:any"));
    free(profile);
}

static int kernels_setup(void **state)
{
    (void)state;
    program_write_text("c.yaml", config);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_measured_are_recorded_for_every_layer),
        cmocka_unit_test(kernels_recorded_give_same_bits),
        cmocka_unit_test(kernels_of_checkpoint_are_resumed),
        cmocka_unit_test(kernels_over_mpi_are_agreed),
        cmocka_unit_test(kernels_of_threads_are_agreed),
        cmocka_unit_test(kernels_named_by_hand_are_used),
        cmocka_unit_test(kernels_with_wrong_names_are_refused),
        cmocka_unit_test(kernels_that_resume_lacks_are_refused),
        cmocka_unit_test(kernels_that_cpu_lacks_are_refused),
        cmocka_unit_test(bench_kernels_names_each_layer),
        cmocka_unit_test(kernels_with_stride_at_avx2_are_direct),
        cmocka_unit_test(kernels_with_stride_and_few_channels_are_fast),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, kernels_setup, NULL);
    program_fini();
    return failed;
}
