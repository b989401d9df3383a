/* test_device_measure.c - what the program measures of GPUs, on the stand-in of tests/device: by
   their clock, with times that mean nothing. */
#include "cli/device_runs.h"

static json_t *load(const char *path)
{
    json_t *object = json_load_file(path, 0, NULL);

    assert_non_null(object);
    return object;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("no number %s", key);
    return json_number_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

/* Rows add up to the step, kernels have their names, and none is without a time. */
static void check_rows(const json_t *rank)
{
    double sum = 0;
    const json_t *row;
    size_t i, named = 0;

    assert_int_equal((int)number(rank, "steps"), 3);
    json_array_foreach(json_object_get(rank, "rows"), i, row)
    {
        sum += number(row, "time_us");
        if (strcmp(text(row, "pass"), "none") == 0)
            continue;
        assert_true(number(row, "time_us") > 0 && number(row, "roof_share") >= 0);
        named += strcmp(text(row, "op"), "linear") == 0 && *text(row, "kernel");
    }
    assert_true(fabs(sum - number(rank, "step_us")) < 0.001 * sum);
    assert_true(named > 0);
    rank = json_object_get(rank, "roof");
    assert_string_equal(text(rank, "gpu"), "GPU 0 (stand-in)");
    assert_true(number(rank, "gflop_per_s") > 0);
    assert_int_equal(json_array_size(json_object_get(rank, "memory")), 2);
}

static void device_profile_has_layers_by_its_clock(void **state)
{
    const program_result *r =
        device_run("STANDIN_GPUS=1", "train small.yaml -s device=cuda --profile --profile-skip "
                                     "2 --profile-steps 3 --run-dir one");
    json_t *profile;

    (void)state;
    check_used(r);
    assert_non_null(strstr(r->out, "roof of GPU 0 (stand-in): "));
    profile = load("one/profile.json");
    check_rows(json_array_get(json_object_get(profile, "per_rank"), 0));
    json_decref(profile);
    program_remove("one");
}

/* The spans of a step of a rank in the trace: backward's, from the first kernel to the last, and
   those of all-reduces of gradients. */
typedef struct spans {
    double backward[2], exchange[2];
    int exchanges;
} spans;

static void find_spans(spans *out, const json_t *events, int rank, int step)
{
    double begun[1000] = {0};
    const json_t *event;
    size_t i;

    *out = (spans){{0}, {0}, 0};
    json_array_foreach(events, i, event)
    {
        const char *ph = text(event, "ph"), *category = text(event, "cat");
        const json_t *args = json_object_get(event, "args");
        const double ts = *ph == 'M' ? 0 : number(event, "ts");

        if (*ph == 'M' || number(event, "pid") != rank)
            continue;
        if (*ph == 'e' && begun[(int)number(event, "id")] > 0) {
            out->exchange[1] = ts;
            out->exchanges++;
        }
        if (*ph == 'e' || json_number_value(json_object_get(args, "step")) != step)
            continue;
        if (*ph == 'X' && strcmp(text(event, "name"), "backward") == 0) {
            out->backward[0] = ts;
            out->backward[1] = ts + number(event, "dur");
        }
        if (*ph == 'b' && strcmp(category, "communication") == 0 && number(args, "bytes") > 1000) {
            assert_string_equal(text(event, "name"), "allreduce");
            assert_int_in_range((int)number(event, "id"), 0, 999);
            begun[(int)number(event, "id")] = out->exchange[0] = ts;
        }
    }
}

/* By NCCL, whose operations have a queue of their own: after what they add up, before the step
 * ends.
 */
static void device_profile_has_exchanges_beside_backward(void **state)
{
    json_t *trace;

    (void)state;
#ifndef TEST_NCCL
    printf("skipped: nccl.h was not found\n");
    skip();
#endif
    check_used(device_run("STANDIN_GPUS=2",
                          "train small.yaml -n 2 -s device=cuda --profile --profile-skip 2 "
                          "--profile-steps 3 --run-dir two"));
    trace = load("two/trace.json");
    for (int rank = 0; rank < 2; rank++)
        for (int step = 3; step < 6; step++) {
            spans s;

            find_spans(&s, json_object_get(trace, "traceEvents"), rank, step);
            assert_int_equal(s.exchanges, 1);
            assert_true(s.backward[1] > s.backward[0] && s.backward[0] > 0);
            assert_true(s.exchange[0] > s.backward[0] && s.exchange[1] > s.exchange[0]);
        }
    json_decref(trace);
    program_remove("two");
}

/* Each of the lines of JSON on standard output. */
static void check_lines(const char *out, const char *key, size_t least)
{
    size_t lines = 0;

    for (const char *at = out; *at; lines++) {
        const char *end = strchr(at, '\n');
        json_t *line;

        assert_non_null(end);
        line = json_loadb(at, (size_t)(end - at), 0, NULL);
        assert_non_null(line);
        if (json_object_get(line, key))
            assert_true(number(line, key) > 0);
        json_decref(line);
        at = end + 1;
    }
    assert_true(lines >= least);
}

/* One object, with the host's memory and, of at least `least` bytes or 0 for none, the device's. */
static void check_memory(const char *out, double least)
{
    json_t *line = json_loads(out, 0, NULL);
    const json_t *device;

    assert_non_null(line);
    assert_true(number(line, "peak_memory_bytes") > 1 << 20);
    device = json_object_get(line, "peak_device_memory_bytes");
    assert_int_equal(device != NULL, least > 0);
    if (device) {
        assert_true(json_number_value(device) >= least);
        assert_true(json_number_value(device) < 64 << 20);
    }
    json_decref(line);
}

static void device_benchmarks_measure_steps_and_messages(void **state)
{
    const program_result *r =
        device_run("STANDIN_GPUS=1", "bench ops small.yaml --ms 1 -s device=cuda");

    (void)state;
    program_assert_success(r);
    check_lines(r->out, "time_us", 12);
    assert_non_null(strstr(r->out, "\"gpu\": \"GPU 0 (stand-in)\""));
    r = device_run("STANDIN_GPUS=1", "bench train small.yaml --steps 2 --warmup 3 --rounds 1 "
                                     "--utilization -s device=cuda");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "\"model_flops_utilization\": "));
    check_memory(r->out, 3 * sizeof(float) * (36 + 8 + 1010)); /* weights, gradients, momentum */
    r = program_line("bench train small.yaml --steps 2 --warmup 3 --rounds 1");
    program_assert_success(r);
    check_memory(r->out, 0);
    r = device_run("STANDIN_GPUS=2",
                   "bench comm -n 2 --device cuda --op allreduce --op tree_allreduce --op send "
                   "--op reduce_scatter --repeats 3 --min-bytes 4096 --max-bytes 4096");
    program_assert_success(r);
    check_lines(r->out, "latency_us", 4);
#ifdef TEST_NCCL
    assert_non_null(strstr(r->out, "\"transport\": \"nccl\""));
#endif
    assert_non_null(strstr(r->out, "\"memory\": \"cuda\""));
    program_assert_error(device_run("STANDIN_GPUS=1", "bench comm --device gpu"), 2, "--device");
    program_assert_error(device_run("STANDIN_GPUS=1", "bench comm -n 2 --device cuda"), 1,
                         "2 ranks of this machine, and 1 of NVIDIA's GPUs");
}

static void device_doctor_says_which_gpus_reach_each_other(void **state)
{
    const program_result *r = device_run("STANDIN_GPUS=2", "doctor");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "each GPU reads and writes the memory of the others"));
    r = device_run("STANDIN_GPUS=3", "doctor");
    assert_non_null(strstr(r->out, "not between GPUs 0-2, 1-2: "));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_profile_has_layers_by_its_clock),
        cmocka_unit_test(device_profile_has_exchanges_beside_backward),
        cmocka_unit_test(device_benchmarks_measure_steps_and_messages),
        cmocka_unit_test(device_doctor_says_which_gpus_reach_each_other),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, device_setup, NULL);
    program_fini();
    return failed;
}
