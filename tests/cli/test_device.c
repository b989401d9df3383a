/*
 * test_device.c - training on GPUs with the program: on the stand-in of tests/device, which shows
 * that the whole of it works, and nothing of speed. With the argument "residual" a network of which
 * the stand-in takes long; with "gpu" on the machine's own GPU, and skipped where there is none.
 */
#include <signal.h>

#include "cli/device_runs.h"

static void check_trains_alike(const char *words)
{
    char line[512];

    snprintf(line, sizeof(line), "train %s --quiet --run-dir cpu", words);
    program_assert_success(program_line(line));
    snprintf(line, sizeof(line), "train %s -s device=cuda --run-dir gpu", words);
    check_used(device_run("STANDIN_GPUS=1", line));
    check_like("gpu", "cpu");
    program_remove("cpu");
    program_remove("gpu");
}

static void device_training_agrees_with_cpu(void **state)
{
    (void)state;
    device_need();
    check_trains_alike("good.yaml");
    check_trains_alike("good.yaml -s model=lenet5");
    check_trains_alike("good.yaml -s model=psgd-cnn -s data.shape=[1,32,32]");
}

/* In 16 bits as far apart as the same network in fp32 and in 16 bits on the CPU. */
static void device_residual_network_agrees_with_cpu(void **state)
{
    (void)state;
    device_need();
    check_trains_alike("resnet.yaml");
    program_assert_success(program_line("train resnet.yaml --quiet --run-dir cpu"));
    check_used(device_run("STANDIN_GPUS=1",
                          "train resnet.yaml -s device=cuda -s precision=bf16 --run-dir gpu"));
    assert_true(fabs(device_figure("gpu", "train_loss") - device_figure("cpu", "train_loss")) <
                DEVICE_HALF_TOLERANCE);
    program_remove("cpu");
    program_remove("gpu");
}

static void device_residual_network_has_its_bits_on_two_ranks(void **state)
{
    const char *train = "train resnet.yaml --quiet -s device=cuda -s precision=bf16 -s shards=4";
    char line[256], first[65], second[65];

    (void)state;
    snprintf(line, sizeof(line), "%s --run-dir one", train);
    program_assert_success(device_run("STANDIN_GPUS=2", line));
    snprintf(line, sizeof(line), "%s -n 2 --run-dir two", train);
    program_assert_success(device_run("STANDIN_GPUS=2", line));
    program_weights(first, "one");
    program_weights(second, "two");
    assert_string_equal(first, second);
    program_remove("one");
    program_remove("two");
}

/* Sequences whose last is shorter than the others, and labels that do not count. */
static void device_transformers_agree_with_cpu(void **state)
{
    (void)state;
    device_need();
    check_trains_alike("text.yaml");
    check_trains_alike("text.yaml -s model.name=llama -s model.kv_heads=1");
    check_trains_alike("vit.yaml");
}

/* Drawn on the GPU and read on the host, the test split too, whose last batch is short; without
   room for them, said in a line. */
static void device_samples_in_its_memory_change_no_bit(void **state)
{
    static const char *const keys[][3] = {
        {"-1", " training (on the GPU) and 325 test (on the GPU) samples", ""},
        {"0", " training (read on the host) and 325 test (read on the host) samples", ""},
        {"1", " training (on the GPU) and 325 test (read on the host) samples",
         "test batches are read on the host: 2 MiB of samples, and data_mib allows 1"},
    };
    char line[512], first[65], other[65];
    double test[3];

    (void)state;
    device_need();
    for (int i = 0; i < 3; i++) {
        const program_result *r;

        snprintf(line, sizeof(line),
                 "train good.yaml -s data.samples=1300 -s max_steps=6 -s device.name=cuda "
                 "-s device.data_mib=%s -s data.augment=[random-crop,horizontal-flip,cutout] "
                 "--run-dir drawn",
                 keys[i][0]);
        r = device_run("STANDIN_GPUS=1", line);
        check_used(r);
        assert_non_null(strstr(r->out, keys[i][1]));
        assert_non_null(strstr(r->err, keys[i][2]));
        program_weights(i == 0 ? first : other, "drawn");
        test[i] = device_figure("drawn", "test_loss");
        program_remove("drawn");
        if (i > 0)
            assert_string_equal(other, first);
        assert_true(test[i] == test[0]);
    }
}

/* Of 8 steps most are replayed, unless the config wants none to be. */
static void device_graph_of_a_step_has_its_bits(void **state)
{
    char first[65], second[65];

    (void)state;
    device_need();
    check_used(device_run("STANDIN_GPUS=1", "train small.yaml -s device=cuda --run-dir graphs"));
    check_used(device_run("STANDIN_GPUS=1", "train small.yaml -s device.name=cuda "
                                            "-s device.graphs=false --run-dir kernels"));
    program_weights(first, "graphs");
    program_weights(second, "kernels");
    assert_string_equal(first, second);
    program_remove("graphs");
    program_remove("kernels");
}

static void device_is_another_after_resume(void **state)
{
    static const char *const way[][2] = {{"cpu", "cuda"}, {"cuda", "cpu"}};
    char line[256];

    (void)state;
    device_need();
    program_assert_success(program_line("train small.yaml --quiet --run-dir whole"));
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof(line),
                 "train small.yaml --quiet -s device=%s -s max_steps=5 --run-dir parts", way[i][0]);
        program_assert_success(device_run("STANDIN_GPUS=1", line));
        snprintf(line, sizeof(line),
                 "train --resume --quiet -s device=%s -s max_steps=0 --run-dir parts", way[i][1]);
        program_assert_success(device_run("STANDIN_GPUS=1", line));
        check_like("parts", "whole");
        program_remove("parts");
    }
    program_remove("whole");
}

/* Its GPU goes with it, and the next one takes its place. */
static void device_rank_killed_is_replaced(void **state)
{
    static const char *const args[] = {"train", "small.yaml",  "-n",        "2",
                                       "-s",    "device=cuda", "-s",        "on_failure=respawn",
                                       "-s",    "epochs=6",    "--run-dir", "killed",
                                       NULL};
    const program_options options = {
        .before = {"env", DEVICE_PATH, "XDG_CACHE_HOME=/dev/null", "STANDIN_GPUS=2"},
        .signal = SIGKILL,
        .signal_child = true,
        .signal_at = "killed/metrics.jsonl"};
    const program_result *r = program_run(args, &options);

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->err, "killed by signal 9"));
    assert_true(device_figure("killed", "steps") == 24);
    program_remove("killed");
}

/* Each by kernel 300 of one of the ranks: the run ends, or the rank is replaced. */
static void device_that_is_lost_ends_its_rank(void **state)
{
    static const char *const ranks[] = {"1", "2"};
    const char *train[] = {"train",     "small.yaml",
                           "-n",        NULL,
                           "-s",        "device.name=cuda",
                           "-s",        "device.graphs=false",
                           "-s",        "epochs=6",
                           "-s",        "checkpoint={every: 1 steps}",
                           "--run-dir", "lost",
                           NULL,        NULL,
                           NULL};
    const program_options options = {.before = {"env", DEVICE_PATH, "XDG_CACHE_HOME=/dev/null",
                                                "STANDIN_GPUS=2", "STANDIN_LOSE=gpu",
                                                "STANDIN_AT=300"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        program_write_text("gpu", "");
        train[3] = ranks[i];
        train[14] = NULL;
        program_assert_error(program_run(train, &options), 4, "the GPU is lost to this process");
        assert_true(program_count_entries("lost/checkpoints") > 0);
        train[14] = "--resume";
        program_assert_success(program_run(train, &options));
        assert_true(device_figure("lost", "steps") == 24);
        program_remove("lost");
    }
    program_write_text("gpu", "");
    train[14] = "-s";
    train[15] = "on_failure=respawn";
    assert_non_null(strstr(program_run(train, &options)->err, "the GPU is lost to this process"));
    assert_true(device_figure("lost", "steps") == 24);
    program_remove("lost");
}

static void device_without_memory_says_what_fits(void **state)
{
    const program_result *r =
        device_run("STANDIN_GPUS=1", "train good.yaml --run-dir refused -s device=cuda -s "
                                     "batch=40000 -s data.samples=40000 -s epochs=1");
    const char *fits;

    (void)state;
    program_assert_error(r, 1, "tensors of 40000 samples at once in training: cuda: ");
    fits = strstr(r->err, "; about ");
    assert_non_null(fits);
    assert_non_null(strstr(fits, " would fit: lower batch, or raise accumulate"));
    assert_int_in_range(atol(fits + strlen("; about ")), 1000, 39999);
    program_remove("refused");
}

static void device_auto_without_gpu_is_the_cpu(void **state)
{
    char cpu[65], other[65];

    (void)state;
    program_assert_success(program_line("train small.yaml --quiet --run-dir cpu"));
    program_assert_success(
        device_run("STANDIN_GPUS=0", "train small.yaml --quiet -s device=auto --run-dir other"));
    program_weights(cpu, "cpu");
    program_weights(other, "other");
    assert_string_equal(cpu, other);
    program_remove("cpu");
    program_remove("other");
}

static void device_listing_names_kernel_and_missing_library(void **state)
{
    const char *list = "list kernels --config good.yaml --why -s device=cuda";
    const program_result *r = device_run("STANDIN_GPUS=1", list);

    (void)state;
#ifndef TEST_LIBRARIES
    printf("skipped: cublasLt.h or cudnn_graph.h was not found\n");
    skip();
#endif
    program_assert_success(r);
    assert_non_null(strstr(r->out, "cuda cublaslt"));
    assert_non_null(strstr(r->out, "cuda cudnn"));
    assert_null(strstr(r->out, "missing"));
    r = device_run_with(DEVICE_LACKING, "STANDIN_GPUS=1", list);
    program_assert_success(r);
    assert_non_null(strstr(r->out, "cuda tiles"));
    assert_non_null(strstr(r->out, "not cuda cublaslt: cuBLASLt is missing"));
    assert_non_null(strstr(r->out, "cuda implicit-gemm"));
    assert_non_null(strstr(r->out, "not cuda cudnn: cuDNN is missing"));
    r = device_run_with(DEVICE_LACKING, "STANDIN_GPUS=1", "doctor");
    assert_non_null(strstr(r->out, "libcublasLt.so.13"));
    assert_non_null(strstr(r->out, "libcudnn.so.9"));
    assert_non_null(strstr(r->out, "libnccl.so.2"));
    r = device_run("STANDIN_GPUS=1", "doctor");
    assert_non_null(strstr(r->out, "cuBLASLt 13.0.2"));
    assert_non_null(strstr(r->out, "cuDNN 9.13.0"));
}

static void check_refused(const char *gpus, const char *set, const char *words)
{
    char line[256];

    snprintf(line, sizeof(line), "train good.yaml --run-dir refused %s", set);
    program_assert_error(device_run(gpus, line), 1, words);
    program_remove("refused");
}

static void device_that_cannot_train_is_refused(void **state)
{
    (void)state;
    check_refused("STANDIN_GPUS=0", "-s device=cuda", "no GPU is visible to this process");
    check_refused("STANDIN_VERSION=11080", "-s device=cuda", "12.0");
    check_refused("STANDIN_GPUS=2", "-s device=cuda -n 3",
                  "or let 2 share one: `device: {name: cuda, ranks_per_gpu: 2}`");
    program_assert_error(device_run("STANDIN_GPUS=1", "train good.yaml --run-dir refused "
                                                      "-s device=cuda -s strategy=hogwild"),
                         2, "weights that all ranks share");
    program_remove("refused");
    program_assert_success(
        device_run("STANDIN_GPUS=1",
                   "list kernels --config good.yaml -s device.name=cuda -s device.tf32=true"));
    program_assert_error(
        device_run("STANDIN_GPUS=1", "inspect good.yaml -s device.name=cpu -s device.tf32=true"), 2,
        "tf32 is of GPUs");
    program_assert_error(
        device_run("STANDIN_GPUS=1", "train good.yaml --run-dir refused -s device=gpu"), 2,
        "expected one of cpu, auto, cuda");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest own[] = {
        cmocka_unit_test(device_training_agrees_with_cpu),
        cmocka_unit_test(device_residual_network_agrees_with_cpu),
        cmocka_unit_test(device_transformers_agree_with_cpu),
        cmocka_unit_test(device_samples_in_its_memory_change_no_bit),
        cmocka_unit_test(device_graph_of_a_step_has_its_bits),
        cmocka_unit_test(device_is_another_after_resume),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_training_agrees_with_cpu),
        cmocka_unit_test(device_transformers_agree_with_cpu),
        cmocka_unit_test(device_samples_in_its_memory_change_no_bit),
        cmocka_unit_test(device_graph_of_a_step_has_its_bits),
        cmocka_unit_test(device_is_another_after_resume),
        cmocka_unit_test(device_rank_killed_is_replaced),
        cmocka_unit_test(device_that_is_lost_ends_its_rank),
        cmocka_unit_test(device_without_memory_says_what_fits),
        cmocka_unit_test(device_auto_without_gpu_is_the_cpu),
        cmocka_unit_test(device_listing_names_kernel_and_missing_library),
        cmocka_unit_test(device_that_cannot_train_is_refused),
    };
    const struct CMUnitTest residual[] = {
        cmocka_unit_test(device_residual_network_agrees_with_cpu),
        cmocka_unit_test(device_residual_network_has_its_bits_on_two_ranks),
    };
    const char *part = argc > 3 ? argv[3] : "";
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    real = strcmp(part, "gpu") == 0;
    if (real)
        failed = cmocka_run_group_tests(own, device_setup, NULL);
    else if (strcmp(part, "residual") == 0)
        failed = cmocka_run_group_tests(residual, device_setup, NULL);
    else
        failed = cmocka_run_group_tests(tests, device_setup, NULL);
    program_fini();
    return failed;
}
