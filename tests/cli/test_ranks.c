/* test_ranks.c - figures per rank, and what scales with the number of ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/fixtures.h"
#include "cli/program.h"

static double ranks_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* Rank 0 has three quarters of both splits; the ranks' figures add up to the run's. */
static void train_rank_metrics_add_up_to_run(void **state)
{
    static const char *const parts[] = {
        "-s",
        "partition={kind: random, ratios: [0.75, 0.25]}",
        "-s",
        "test_partition={kind: random, ratios: [0.75, 0.25]}",
    };
    const char *args[] = {"train",     "good.yaml", "-n",     "2",      "--run-dir", "apart", "-s",
                          "log=ranks", parts[0],    parts[1], parts[2], parts[3],    NULL};
    const program_result *r = program_run(args, NULL);
    const char *line = strstr(r->out, "\nRank 0, epoch 1:  Train Loss ");
    double loss[2], accuracy[2], test_loss[2], test_accuracy[2];
    json_t *summary;

    (void)state;
    program_assert_success(r);
    for (int i = 0, rank; i < 2; i++) {
        assert_non_null(line);
        assert_int_equal(sscanf(line,
                                "\nRank %d, epoch 1:  Train Loss %lf  Train Acc. %lf  --|-- Val. "
                                "Loss %lf Val. Acc. %lf",
                                &rank, &loss[i], &accuracy[i], &test_loss[i], &test_accuracy[i]),
                         5);
        assert_int_equal(rank, i);
        line = strchr(line + 1, '\n');
    }
    assert_non_null(strstr(r->out, "\nepoch 2/2  loss "));
    summary = program_summary("apart");
    assert_true(fabs(0.75 * test_loss[0] + 0.25 * test_loss[1] -
                     ranks_number(summary, "test_loss")) < 0.002);
    assert_true(fabs(0.75 * test_accuracy[0] + 0.25 * test_accuracy[1] -
                     ranks_number(summary, "test_accuracy")) < 0.002);
    assert_true(fabs(0.75 * loss[0] + 0.25 * loss[1] - ranks_number(summary, "train_loss")) < 0.05);
    json_decref(summary);
    /* the config can be evaluated on another number of ranks */
    program_assert_success(program_line("eval apart -n 3"));
    program_remove("apart");
}

static void train_batch_per_rank_scales_with_ranks(void **state)
{
    const program_result *r = program_line("train good.yaml -n 4 -s batch_per_rank=8 "
                                           "-s max_steps=3 --run-dir grown");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, " test samples, 32 a step, 3 steps"));
    program_remove("grown");
    r = program_line("inspect good.yaml -s batch_per_rank=8 -s ranks=4");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "batch        32 over 4 ranks"));
}

static int ranks_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_rank_metrics_add_up_to_run),
        cmocka_unit_test(train_batch_per_rank_scales_with_ranks),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, ranks_setup, NULL);
    program_fini();
    return failed;
}
