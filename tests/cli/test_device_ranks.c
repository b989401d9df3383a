/* test_device_ranks.c - several ranks on GPUs with the program, on the stand-in of tests/device:
   what they send each other, and what they divide. */
#include "cli/device_runs.h"

static void device_of_each_rank_trains_as_one(void **state)
{
    char first[65], second[65];

    (void)state;
    program_assert_success(program_line("train good.yaml --quiet --run-dir cpu"));
    check_used(device_run("STANDIN_GPUS=2", "train good.yaml -n 2 -s device=auto --run-dir one"));
    check_like("one", "cpu");
    program_assert_success(
        device_run("STANDIN_GPUS=2", "train good.yaml --quiet -n 2 -s device=cuda --run-dir two"));
    program_weights(first, "one");
    program_weights(second, "two");
    assert_string_equal(first, second);
    program_remove("cpu");
    program_remove("one");
    program_remove("two");
}

/* Sums of two have the same bits whatever adds them up. */
static void device_ranks_exchange_by_nccl_or_through_the_host(void **state)
{
    const program_result *r;
    char first[65], second[65];

    (void)state;
#ifndef TEST_NCCL
    printf("skipped: nccl.h was not found\n");
    skip();
#endif
    r = device_run("STANDIN_GPUS=2", "train small.yaml -n 2 -s device=cuda --run-dir one");
    check_used(r);
    assert_non_null(strstr(r->err, "; ranks exchange by NCCL"));
    program_weights(first, "one");
    program_remove("one");
    check_used(device_run("STANDIN_GPUS=2", "train small.yaml -n 2 -s device.name=cuda -s "
                                            "device.exchange=host --run-dir one"));
    program_weights(second, "one");
    program_remove("one");
    assert_string_equal(first, second);
    r = device_run_with(DEVICE_OLDER, "STANDIN_GPUS=2",
                        "train small.yaml -n 2 -s device=cuda --run-dir one");
    check_used(r);
    assert_non_null(strstr(r->err, "; ranks exchange by NCCL"));
    program_weights(second, "one");
    program_remove("one");
    assert_string_equal(first, second);
    r = device_run_with(DEVICE_LACKING, "STANDIN_GPUS=2",
                        "train small.yaml -n 2 -s device=cuda -s max_steps=2 --run-dir one");
    check_used(r);
    assert_non_null(strstr(r->err, "exchange through the host's memory; cuda: NCCL is missing"));
    program_remove("one");
    r = device_run("STANDIN_GPUS=1", "train small.yaml -n 2 -s device.name=cuda -s "
                                     "device.ranks_per_gpu=2 -s device.exchange=nccl "
                                     "--run-dir one");
    program_assert_error(r, 1, "exchange: nccl needs a GPU for each rank");
    program_remove("one");
}

/* Each rank launches as many graphs; the last batch of an epoch is smaller, and one rank of three
   has none of it. */
static void device_graph_of_a_step_has_its_bits_over_ranks(void **state)
{
    static const struct {
        const char *options;
        long graphs; /* of all ranks, at least */
    } run[] = {{"-n 2 -s epochs=3", 16},
               {"-n 2 -s batch=20 -s epochs=6", 20},
               {"-n 3 -s batch=23 -s epochs=5", 24},
               {"-n 2 -s strategy.update=zero", 8}};
    char line[256], first[65], second[65];

    (void)state;
    (void)device_graphs();
    for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
        snprintf(line, sizeof(line), "train small.yaml %s -s device=cuda --run-dir one",
                 run[i].options);
        check_used(device_run("STANDIN_GPUS=3", line));
        assert_true(device_graphs() >= run[i].graphs);
        program_weights(first, "one");
        program_remove("one");
        snprintf(line, sizeof(line),
                 "train small.yaml %s -s device.name=cuda -s device.graphs=false --run-dir one",
                 run[i].options);
        check_used(device_run("STANDIN_GPUS=3", line));
        assert_int_equal(device_graphs(), 0);
        program_weights(second, "one");
        program_remove("one");
        assert_string_equal(first, second);
    }
}

/* In the middle of an epoch, with as many ranks. */
static void device_ranks_resumed_have_the_bits_of_one_run(void **state)
{
    const char *rest = "train --resume --quiet -n 2 -s max_steps=0 --run-dir parts";
    char first[65], second[65];

    (void)state;
    check_used(device_run("STANDIN_GPUS=2", "train small.yaml -n 2 -s epochs=3 -s device=cuda "
                                            "--run-dir whole"));
    check_used(device_run("STANDIN_GPUS=2", "train small.yaml -n 2 -s epochs=3 -s device=cuda "
                                            "-s max_steps=7 --run-dir parts"));
    program_assert_success(device_run("STANDIN_GPUS=2", rest));
    program_weights(first, "whole");
    program_weights(second, "parts");
    assert_string_equal(first, second);
    program_remove("whole");
    program_remove("parts");
}

/* Ranks with a GPU each, of which each step is a graph, and ranks that share GPUs. */
static void device_shards_have_the_bits_of_any_ranks(void **state)
{
    static const char *const run[][2] = {{"STANDIN_GPUS=1", "1"},
                                         {"STANDIN_GPUS=2", "2"},
                                         {"STANDIN_GPUS=4", "4"},
                                         {"STANDIN_GPUS=1", "2"},
                                         {"STANDIN_GPUS=2", "4"}};
    char line[256], first[65], other[65];

    (void)state;
    for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
        snprintf(line, sizeof(line),
                 "train small.yaml -n %s -s shards=4 -s device.name=cuda "
                 "-s device.ranks_per_gpu=2 --run-dir shards",
                 run[i][1]);
        check_used(device_run(run[i][0], line));
        program_weights(i == 0 ? first : other, "shards");
        program_remove("shards");
        if (i > 0)
            assert_string_equal(other, first);
    }
}

/* Also where one of the ranks has no sample. */
static void device_batch_statistics_over_ranks_agree_with_cpu(void **state)
{
    static const char *const ranks[] = {"-n 2", "-n 3 -s batch=2 -s max_steps=8"};
    char line[256];

    (void)state;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        snprintf(line, sizeof(line),
                 "train small.yaml --quiet %s -s sync_batch_norm=true --run-dir cpu", ranks[i]);
        program_assert_success(program_line(line));
        snprintf(line, sizeof(line),
                 "train small.yaml %s -s sync_batch_norm=true -s device=cuda --run-dir gpu",
                 ranks[i]);
        check_used(device_run("STANDIN_GPUS=3", line));
        check_like("gpu", "cpu");
        program_remove("cpu");
        program_remove("gpu");
    }
}

/* Each rank gets the sum of its part of the gradient, and then the weights of others' parts: the
   bits of a sum for all, for two ranks, and the bytes, but for what divides unevenly. With a limit
   on the norm ranks also exchange the squares of their parts; a small network gets whole sums
   then, as its parts are no whole blocks of these. */
static void device_update_in_parts_sends_no_more_than_a_whole(void **state)
{
    static const struct {
        const char *config, *more;
        bool sends_more;
    } run[] = {{"small.yaml", "", false},
               {"small.yaml", " -s clip.norm=0.5", true},
               {"wide.yaml", " -s clip.norm=0.5", false},
               {"wide.yaml", " -s clip.norm=0.5 -s precision=O1", false}};
    static const char *const update[] = {"whole", "zero", "parts"};
    static const char *const exchange[] = {"auto", "host"};
    char line[256], whole[65], weights[65];
    double bytes, all = 0;

    (void)state;
    program_write_text("wide.yaml", DEVICE_WIDE);
    for (size_t i = 0; i < sizeof(run) / sizeof(run[0]) * 2 * 3; i++) {
        const size_t how = i % 3, by = i / 3 % 2, of = i / 6;

        snprintf(line, sizeof(line),
                 "train %s -n 2 -s device.name=cuda -s device.exchange=%s "
                 "-s strategy.update=%s%s --run-dir sums",
                 run[of].config, exchange[by], update[how], run[of].more);
        check_used(device_run("STANDIN_GPUS=2", line));
        bytes = device_figure("sums", "bytes_sent");
        program_weights(how == 0 ? whole : weights, "sums");
        program_remove("sums");
        if (how == 0)
            all = bytes;
        else
            assert_string_equal(weights, whole);
        if (how > 0)
            assert_true(run[of].sends_more ? bytes > 1.2 * all
                                           : bytes > 0.9 * all && bytes < 1.1 * all);
    }
}

/* Through NCCL and through the host, with the same bits for two ranks; and as the CPU. */
static void device_strategies_that_send_less_agree_with_cpu(void **state)
{
    static const char *const strategies[] = {"{name: sync, update: zero}",
                                             "{name: sync, compress: {name: topk, ratio: 0.2}}"};
    static const char *const exchange[] = {"auto", "host"};
    char line[256], text[1024], weights[2][65];

    (void)state;
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++) {
        snprintf(text, sizeof(text), DEVICE_SMALL "strategy: %s\n", strategies[i]);
        program_write_text("sends.yaml", text);
        program_assert_success(program_line("train sends.yaml --quiet -n 2 --run-dir cpu"));
        for (int k = 0; k < 2; k++) {
            snprintf(line, sizeof(line),
                     "train sends.yaml -n 2 -s device.name=cuda -s device.exchange=%s "
                     "--run-dir gpu",
                     exchange[k]);
            check_used(device_run("STANDIN_GPUS=2", line));
            check_like("gpu", "cpu");
            program_weights(weights[k], "gpu");
            program_remove("gpu");
        }
        assert_string_equal(weights[0], weights[1]);
        program_remove("cpu");
    }
}

static void device_of_each_rank_over_mpi_trains_as_one(void **state)
{
    static const char *const args[] = {"train",     "good.yaml", "-s", "device=cuda",
                                       "--run-dir", "mpi",       NULL};
    const program_options options = {.before = {"env", DEVICE_PATH, "XDG_CACHE_HOME=/dev/null",
                                                "STANDIN_GPUS=2", PROGRAM_MPIEXEC, "-n", "2"}};

    (void)state;
    program_need_mpi();
    program_assert_success(program_line("train good.yaml --quiet --run-dir cpu"));
    check_used(program_run(args, &options));
    check_like("mpi", "cpu");
    program_remove("cpu");
    program_remove("mpi");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_of_each_rank_trains_as_one),
        cmocka_unit_test(device_ranks_exchange_by_nccl_or_through_the_host),
        cmocka_unit_test(device_graph_of_a_step_has_its_bits_over_ranks),
        cmocka_unit_test(device_ranks_resumed_have_the_bits_of_one_run),
        cmocka_unit_test(device_shards_have_the_bits_of_any_ranks),
        cmocka_unit_test(device_batch_statistics_over_ranks_agree_with_cpu),
        cmocka_unit_test(device_update_in_parts_sends_no_more_than_a_whole),
        cmocka_unit_test(device_strategies_that_send_less_agree_with_cpu),
        cmocka_unit_test(device_of_each_rank_over_mpi_trains_as_one),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, device_setup, NULL);
    program_fini();
    return failed;
}
