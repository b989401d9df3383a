/*
 * test_profile.c - profiles add up, traces are valid for their viewers, and neither affects
 * training.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/program.h"

#define PROFILE_CONFIG                                                                             \
    "model: mnist-net\n"                                                                           \
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 400}\n"                     \
    "batch: 32\n"                                                                                  \
    "epochs: 2\n"                                                                                  \
    "threads: 1\n"                                                                                 \
    "loader: {threads: 1}\n"
#define PROFILE_STEPS  7
#define PROFILE_SKIP   3
#define PROFILE_EVENTS 20000
#define PROFILE_DEPTH  16

static double profile_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("no number %s", key);
    return json_number_value(value);
}

static const char *profile_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text)
        fail_msg("no text %s", key);
    return text ? text : "";
}

static json_t *profile_load(const char *path)
{
    json_error_t error;
    json_t *object = json_load_file(path, 0, &error);

    if (!object)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    return object;
}

/* The rows of a rank: their own times add up to the step. Returns the share of kernels. */
static double profile_check_rank(const json_t *rank, int index)
{
    double sum = 0, kernels = 0;
    const json_t *row;
    size_t i;

    assert_int_equal((int)profile_number(rank, "rank"), index);
    assert_int_equal((int)profile_number(rank, "steps"), PROFILE_STEPS);
    assert_int_equal((int)profile_number(rank, "first_step"), PROFILE_SKIP + 1);
    json_array_foreach(json_object_get(rank, "rows"), i, row)
    {
        const bool kernel = strcmp(profile_text(row, "pass"), "none") != 0;

        sum += profile_number(row, "time_us");
        kernels += kernel ? profile_number(row, "time_us") : 0;
        /* the shortest call is of one step, the sum of all */
        assert_true(profile_number(row, "time_us_min") <=
                    profile_number(row, "time_us") * PROFILE_STEPS * 1.001);
        if (kernel && strcmp(profile_text(row, "name"), "conv1") == 0 &&
            strcmp(profile_text(row, "op"), "conv2d") == 0)
            /* (16, 10, 24, 24) of 25 products each; backward only for the weights */
            assert_int_equal((int)profile_number(row, "flops"), 16 * 10 * 24 * 24 * 25 * 2);
    }
    assert_true(fabs(sum - profile_number(rank, "step_us")) < 0.001 * sum);
    assert_true(fabs(kernels - profile_number(rank, "kernels_us")) < 0.001 * sum);
    assert_true(fabs(sum - kernels - profile_number(rank, "outside_us")) < 0.001 * sum);
    return kernels / sum;
}

typedef struct profile_span {
    int pid, tid;
    double begin, end;
    const char *name;
} profile_span;

static int profile_compare(const void *a, const void *b)
{
    const profile_span *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid - y->pid;
    if (x->tid != y->tid)
        return x->tid - y->tid;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end < y->end) - (x->end > y->end);
}

/* Spans of a track are nested or follow each other. Returns the number of steps. */
static int profile_check_nesting(profile_span *span, size_t n)
{
    const profile_span *open[PROFILE_DEPTH];
    int depth = 0, steps = 0;

    qsort(span, n, sizeof(*span), profile_compare);
    for (size_t i = 0; i < n; i++) {
        const profile_span *s = &span[i];

        while (depth > 0 && (open[depth - 1]->pid != s->pid || open[depth - 1]->tid != s->tid ||
                             open[depth - 1]->end <= s->begin))
            depth--;
        if (depth > 0 && s->end > open[depth - 1]->end)
            fail_msg("%s at %f overlaps %s", s->name, s->begin, open[depth - 1]->name);
        assert_true(depth < PROFILE_DEPTH);
        open[depth++] = s;
        steps += s->tid == 0 && strcmp(s->name, "step") == 0;
        if (s->tid == 0 && depth == 1)
            assert_string_equal(s->name, "step");
    }
    return steps;
}

/* Every operation that begins ends once, later, with the same name and category, which viewers use
   to match them. Returns their number. */
static int profile_check_pairs(const json_t *events)
{
    static double begun[PROFILE_EVENTS];
    static const json_t *first[PROFILE_EVENTS];
    const json_t *event;
    int pairs = 0;
    size_t i;

    memset(begun, 0, sizeof(begun));
    json_array_foreach(events, i, event)
    {
        const char *ph = profile_text(event, "ph");
        int id;

        if (ph[0] != 'b' && ph[0] != 'e')
            continue;
        id = (int)profile_number(event, "id");
        assert_int_in_range(id, 0, PROFILE_EVENTS - 1);
        if (ph[0] == 'b') {
            assert_true(begun[id] == 0.0);
            begun[id] = profile_number(event, "ts") + 1;
            first[id] = event;
            continue;
        }
        assert_true(begun[id] > 0 && profile_number(event, "ts") + 1 >= begun[id]);
        assert_string_equal(profile_text(event, "name"), profile_text(first[id], "name"));
        assert_string_equal(profile_text(event, "cat"), profile_text(first[id], "cat"));
        assert_int_equal(profile_number(event, "pid"), profile_number(first[id], "pid"));
        begun[id] = -1;
        pairs++;
    }
    for (i = 0; i < PROFILE_EVENTS; i++)
        assert_true(begun[i] <= 0);
    return pairs;
}

/* The only metadata: name or order of a process or thread. */
static void profile_check_metadata(const json_t *event)
{
    const char *name = profile_text(event, "name");
    const json_t *args = json_object_get(event, "args");

    if (strcmp(name, "process_name") == 0 || strcmp(name, "thread_name") == 0)
        assert_true(profile_text(args, "name")[0]);
    else if (strcmp(name, "process_sort_index") == 0 || strcmp(name, "thread_sort_index") == 0)
        assert_true(json_is_integer(json_object_get(args, "sort_index")));
    else
        fail_msg("metadata %s", name);
}

/* Fields of every event in Chrome's format; returns the steps of all ranks. */
static int profile_check_trace(const json_t *trace, int *operations)
{
    static profile_span span[PROFILE_EVENTS];
    const json_t *events = json_object_get(trace, "traceEvents"), *event;
    size_t n = 0, i;

    assert_string_equal(profile_text(trace, "displayTimeUnit"), "ms");
    assert_int_in_range(json_array_size(events), 100, PROFILE_EVENTS);
    json_array_foreach(events, i, event)
    {
        const char *ph = profile_text(event, "ph");
        const double ts = profile_number(event, "ts");

        assert_true(strlen(ph) == 1 && strchr("XbeM", ph[0]));
        assert_true(profile_text(event, "name")[0] && ts >= 0);
        assert_true(json_is_integer(json_object_get(event, "pid")));
        assert_true(json_is_integer(json_object_get(event, "tid")));
        if (ph[0] != 'M')
            assert_true(profile_text(event, "cat")[0]);
        else
            profile_check_metadata(event);
        assert_true(ph[0] == 'e' || json_is_object(json_object_get(event, "args")));
        assert_true(ph[0] != 'X' || profile_number(event, "dur") >= 0);
        if (ph[0] == 'X')
            span[n++] = (profile_span){
                (int)profile_number(event, "pid"), (int)profile_number(event, "tid"), ts,
                ts + profile_number(event, "dur") - 1e-4, profile_text(event, "name")};
    }
    *operations = profile_check_pairs(events);
    return profile_check_nesting(span, n);
}

static void profile_times_of_every_rank_add_up(void **state)
{
    const program_result *r = program_line(
        "train p.yaml -n 2 --profile --profile-steps 7 --profile-skip 3 --run-dir two");
    const json_t *ranks;
    json_t *profile, *trace;
    int operations = 0;

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "mnist-net, batch 32, rank 0 of 2, steps 4 to 10: "));
    assert_non_null(strstr(r->out, " not in any kernel\n"));
    assert_non_null(strstr(r->out, "\nrank 1: "));
    profile = profile_load("two/profile.json");
    ranks = json_object_get(profile, "per_rank");
    assert_int_equal(json_array_size(ranks), 2);
    for (int i = 0; i < 2; i++) {
        const double share = profile_check_rank(json_array_get(ranks, (size_t)i), i);

        assert_true(share > 0 && share < 1);
    }
    json_decref(profile);
    trace = profile_load("two/trace.json");
    assert_int_equal(profile_check_trace(trace, &operations), 2 * PROFILE_STEPS);
    assert_true(operations >= 2 * PROFILE_STEPS);
    json_decref(trace);
}

static void profile_of_run_changes_no_weight(void **state)
{
    char with[65], without[65];

    (void)state;
    program_assert_success(program_line("train p.yaml -n 2 --run-dir plain"));
    assert_false(program_exists("plain/profile.json") || program_exists("plain/trace.json"));
    program_weights(with, "two");
    program_weights(without, "plain");
    assert_string_equal(with, without);
}

/* A language model of many tokens computes its logits in parts: the work of a step is that of all
   of them. */
static void profile_of_parts_has_the_work_of_a_step(void **state)
{
    enum { POSITIONS = 128 * 8, WIDTH = 4, TOKENS = 8192 };
    const json_t *rank, *row;
    char text[8001];
    json_t *profile;
    int found = 0;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(text) - 1; i++)
        text[i] = (char)('a' + i * i % 23);
    text[i] = '\0';
    program_write_text("text.txt", text);
    program_write_text("parts.yaml",
                       "model: {name: gpt2, layers: 1, heads: 1, width: 4, vocab: 8192}\n"
                       "data: {name: text, path: text.txt, context: 8}\n"
                       "batch: 128\nmax_steps: 3\nevaluate: false\nthreads: 1\n");
    program_assert_success(program_line(
        "train parts.yaml --profile --profile-steps 2 --profile-skip 1 --run-dir parts"));
    profile = profile_load("parts/profile.json");
    rank = json_array_get(json_object_get(profile, "per_rank"), 0);
    json_array_foreach(json_object_get(rank, "rows"), i, row)
    {
        const bool forward = strcmp(profile_text(row, "pass"), "forward") == 0;

        if (strcmp(profile_text(row, "name"), "lm_head") != 0)
            continue;
        assert_int_equal((int)profile_number(row, "calls"), 2);
        assert_true(profile_number(row, "flops") ==
                    (forward ? 2. : 4.) * POSITIONS * WIDTH * TOKENS);
        found++;
    }
    assert_int_equal(found, 2);
    json_decref(profile);
}

/* Over MPI, requests may belong to a communicator below the observed one. */
static void profile_over_mpi_is_written(void **state)
{
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};
    const char *const args[] = {"train", "p.yaml",    "--profile", "--profile-steps",
                                "7",     "--run-dir", "mpi",       NULL};
    json_t *trace;
    int operations = 0;

    (void)state;
    program_need_mpi();
    program_assert_success(program_run(args, &options));
    trace = profile_load("mpi/trace.json");
    assert_int_equal(profile_check_trace(trace, &operations), 2 * PROFILE_STEPS);
    assert_true(operations >= 2 * PROFILE_STEPS);
    json_decref(trace);
}

/* With shards, micro-batches, a plan for the last batch, evaluation and checkpoints in the
   window. */
static void profile_of_whole_run_is_written(void **state)
{
    const program_result *r = program_line(
        "train p.yaml -n 2 --profile --profile-steps 1000 --profile-skip 0 --run-dir whole -q "
        "-s shards=4 -s accumulate=2 -s batch=48 -s 'checkpoint={every: 2 steps}'");
    json_t *profile, *trace;
    int operations = 0;

    (void)state;
    program_assert_success(r);
    assert_string_equal(r->out, "");
    profile = profile_load("whole/profile.json");
    assert_int_equal(
        (int)profile_number(json_array_get(json_object_get(profile, "per_rank"), 1), "steps"), 18);
    json_decref(profile);
    trace = profile_load("whole/trace.json");
    assert_int_equal(profile_check_trace(trace, &operations), 2 * 18);
    json_decref(trace);
}

/* The run ends before the window begins: the profile is empty, with a message. */
static void profile_after_end_of_run_is_empty(void **state)
{
    const program_result *r =
        program_line("train p.yaml --profile --profile-skip 500 --run-dir none");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->err, "the run ended before the step 501"));
}

/* What a rank has to say is taken all the same, or it would wait for ever. */
static void profile_unwritable_leaves_run_complete(void **state)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "way/trace.json"};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const program_result *r;
    json_t *summary;

    (void)state;
    program_assert_success(program_line("train p.yaml -n 2 -q --run-dir way -s epochs=1"));
    assert_int_equal(symlink("/dev/full", "way/profile.json"), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    r = program_line("train p.yaml -n 2 --profile --run-dir way --resume");
    program_assert_success(r);
    assert_non_null(strstr(r->err, "way/profile.json: cannot write: "));
    assert_non_null(strstr(r->err, "way/trace.json: cannot write: "));
    assert_non_null(strstr(r->err, "the results of the run are complete"));
    assert_null(strstr(r->out, "profile: "));
    summary = program_summary("way");
    assert_int_equal(profile_number(summary, "epochs"), 2);
    json_decref(summary);
}

/* Each line is an object; a layer has forward and backward. */
static void bench_ops_times_every_layer(void **state)
{
    const program_result *r = program_line("bench ops --model mnist-net --batch 8 --ms 1");
    int lines = 0, conv = 0;

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->err, "mnist-net, batch 8, each step by itself: "));
    for (const char *line = r->out; *line; line = strchr(line, '\n') + 1) {
        json_t *object = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);

        assert_non_null(object);
        assert_string_equal(profile_text(object, "bench"), "ops");
        lines++;
        if (json_object_get(object, "roof")) {
            assert_true(profile_number(object, "step_us") > 0);
        } else if (strcmp(profile_text(object, "name"), "conv2") == 0) {
            conv++;
            assert_true(profile_number(object, "time_us") > 0);
            assert_true(profile_number(object, "flops") >= 8. * 20 * 8 * 8 * 250 * 2);
        }
        json_decref(object);
    }
    assert_true(lines > 20);
    assert_int_equal(conv, 2);
}

/* Only the first and last steps convert to and from 16 bits. */
static void bench_ops_follows_precision(void **state)
{
    const program_result *r = program_line("bench ops --model mnist-net --batch 8 --ms 1");

    (void)state;
    program_assert_success(r);
    assert_null(strstr(r->out, "\"op\": \"cast\""));
    r = program_line("bench ops --model mnist-net --batch 8 --ms 1 --set precision=bf16");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "\"op\": \"cast\""));
    assert_non_null(strstr(r->out, "\"roof_share\""));
    assert_non_null(strstr(r->err, "% of the roof\n"));
}

static void bench_ops_bad_arguments_are_refused(void **state)
{
    (void)state;
    program_assert_error(program_line("bench ops"), 2, "give either a config or --model");
    program_assert_error(program_line("bench ops --model mnist-nett"), 2, "mnist-net");
    program_assert_error(program_line("bench ops --model resnet18 --data-shape 3,x"), 2, "shape");
    program_assert_error(program_line("bench ops p.yaml --data-shape 1,8,8"), 2, "--model");
    program_assert_error(program_line("train p.yaml --profile-steps 3"), 2, "--profile");
}

static int profile_setup(void **state)
{
    (void)state;
    program_write_text("p.yaml", PROFILE_CONFIG);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profile_times_of_every_rank_add_up),
        cmocka_unit_test(profile_of_run_changes_no_weight),
        cmocka_unit_test(profile_of_parts_has_the_work_of_a_step),
        cmocka_unit_test(profile_over_mpi_is_written),
        cmocka_unit_test(profile_of_whole_run_is_written),
        cmocka_unit_test(profile_after_end_of_run_is_empty),
        cmocka_unit_test(profile_unwritable_leaves_run_complete),
        cmocka_unit_test(bench_ops_times_every_layer),
        cmocka_unit_test(bench_ops_follows_precision),
        cmocka_unit_test(bench_ops_bad_arguments_are_refused),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, profile_setup, NULL);
    program_fini();
    return failed;
}
