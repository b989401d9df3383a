/*
 * test_bad_input.c - for anything wrong with a config, a data set or a weights file: one clear
 * error, the right exit code, nothing left behind.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/fixtures.h"
#include "cli/program.h"

/* Files with final names would be mistaken for those of a finished run. */
static void assert_no_results(const char *run_dir)
{
    static const char *const files[] = {"final.safetensors", "summary.json"};

    for (size_t i = 0; i < 2; i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", run_dir, files[i]);
        assert_false(program_exists(path));
    }
}

/* `cohort train CONFIG --run-dir out --set SET`; `set` may be NULL. */
static const program_result *bad_train(const char *config, const char *set, const char *ranks)
{
    const char *args[] = {"train", config, "--run-dir", "out", "-n", ranks, "--set", set, NULL};

    if (!set)
        args[6] = NULL;
    return program_run(args, NULL);
}

static void config_bad_value_names_its_key(void **state)
{
    static const struct {
        const char *set, *words;
    } cases[] = {
        {"batch=-1", "batch"},
        {"batch=0", "batch"},
        {"batch=1.5", "batch"},
        {"batch=many", "batch"},
        {"batch=[32]", "batch"},
        {"batch=", "batch"},
        {"batch={size: 3}", "batch"},
        {"epochs=0", "epochs"},
        {"epochs=99999999999999999999", "epochs"},
        {"seed=-1", "seed"},
        {"evaluate=2", "evaluate"},
        {"ranks=0", "ranks"},
        {"accumulate=0", "accumulate"},
        {"recompute=true", "no blocks"},
        {"timeout=0", "timeout"},
        {"epoch=3", "did you mean 'epochs'"},
        {"bacth=3", "did you mean 'batch'"},
        {"no_such_key=1", "no_such_key"},
        {"model=mnistnet", "mnist-net"},
        {"model=no-such-model", "no-such-model"},
        {"model.hiden=3", "did you mean 'hidden'"},
        {"model.hidden=0", "hidden"},
        {"layers=[flatten, linear: 4]", "either"},
        {"optimizer.name=sdg", "sgd"},
        {"optimizer.lr=-1", "lr"},
        {"optimizer.lr=fast", "lr"},
        {"optimizer.lr=nan", "lr"},
        {"optimizer.momentun=0.5", "did you mean 'momentum'"},
        {"schedule=cosin", "cosine"},
        {"strategy=synch", "sync"},
        {"strategy={name: sync, no_such_key: 3}", "no_such_key"},
        {"partition={kind: randon}", "random"},
        {"partition={kind: random, ratios: [0.9, 0.2, 0.1]}", "ratios"},
        {"data=fashion", "fashion"},
        {"data.classes=0", "classes"},
        {"data.shape=[1, 8]", "shape"},
        {"data.sampels=3", "did you mean 'samples'"},
        {"data.normalize={mean: x, std: 1}", "mean"},
        {"backend=cuda", "cuda"},
        {"precision=fp8", "precision"},
        {"clip={norm: -1}", "norm"},
        {"loader={threads: -2}", "threads"},
        {"loss=nll_loss", "log_softmax"},
        {"=3", "key=value"},
        {"batch", "key=value"},
        {"optimizer..lr=3", "between dots"},
        {"batch=[1, 2", "batch"},
    };

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("  %s\n", cases[i].set);
        program_assert_error(bad_train("good.yaml", cases[i].set, "2"), 2, cases[i].words);
        assert_false(program_exists("out"));
    }
}

static void config_bad_layer_names_its_position(void **state)
{
    static const struct {
        const char *layers, *words;
    } cases[] = {
        {"[conv2: {out: 3, kernel: 3}]", "did you mean 'conv2d'"},
        {"[conv2d: {out: 3}]", "kernel"},
        {"[conv2d: {out: 3, kernel: 99}]", "conv2d"},
        {"[conv2d: {out: 3, kernel: 3, groups: 2}]", "groups"},
        {"[conv2d: {out: 3, kernel: 3, strid: 2}]", "did you mean 'stride'"},
        {"[linear: 4]", "flatten"},
        {"[flatten, conv2d: {out: 3, kernel: 3}]", "flatten"},
        {"[flatten, linear: {out: 4, name: a}, linear: {out: 4, name: a}]", "a"},
        {"[flatten, linear: 3]", "class"},
        {"[]", "layers"},
        {"relu", "layers"},
        {"[[relu]]", "layer"},
        {"[residual: {body: [conv2d: {out: 3, kernel: 3}]}, flatten, linear: 4]", "add"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[1024];

        snprintf(config, sizeof(config),
                 "layers: %s\ndata: {name: synthetic, shape: [1, 8, 8], classes: 4}\n",
                 cases[i].layers);
        program_write_text("layers.yaml", config);
        print_message("  %s\n", cases[i].layers);
        program_assert_error(bad_train("layers.yaml", NULL, "1"), 2, cases[i].words);
        assert_false(program_exists("out"));
    }
}

static void config_bad_file_names_line_and_column(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {FIXTURES_CONFIG "epoch: 3\n", "bad.yaml:6:"},
        {FIXTURES_CONFIG "  seed: 3\n", "bad.yaml:6:"},
        {FIXTURES_CONFIG "batch: 64\n", "batch"},
        {"model: [\n", "bad.yaml:"},
        {"- model\n", "bad.yaml:1:"},
        {"just text\n", "bad.yaml:1:"},
        {"model: mlp\n", "'data' is missing"},
        {"data: {name: synthetic}\n", "model"},
        {"", "data"},
        {"model: &a mlp\ndata: *a\n", "bad.yaml:"},
        {"\xff\xfe\x00", "bad.yaml"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        program_write_text("bad.yaml", cases[i].text);
        print_message("  case %zu\n", i);
        program_assert_error(bad_train("bad.yaml", NULL, "1"), 2, cases[i].words);
        assert_false(program_exists("out"));
    }
}

static void config_path_of_no_file_is_refused(void **state)
{
    (void)state;
    mkdir("folder", 0700);
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_assert_error(program_line("train missing.yaml"), 2, "missing.yaml");
    program_assert_error(program_line("train folder"), 2, "folder");
    program_assert_error(program_line("train /dev/null"), 2, "/dev/null");
    program_assert_error(program_line("bench train missing.yaml"), 2, "missing.yaml");
    program_assert_error(program_line("inspect missing.yaml"), 2, "missing.yaml");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    program_assert_error(program_line("inspect pipe"), 2, "regular");
    program_assert_error(program_line("train pipe"), 2, "regular");
    program_assert_error(program_line("eval pipe --config pipe"), 2, "regular");
    program_assert_error(program_line("eval pipe --config good.yaml"), 3, "regular");
    program_assert_error(program_line("data info missing.yaml"), 2, "missing.yaml");
}

static void train_more_ranks_than_samples_is_refused(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_assert_error(bad_train("good.yaml", "data.samples=3", "4"), 2, "4 ranks");
    assert_false(program_exists("out"));
}

/* One entry per fixtures_damage, in its order. */
static const struct {
    fixtures_damage damage;
    const char *words;
} idx_cases[] = {
    {FIXTURES_MISSING, "images"},         {FIXTURES_EMPTY, "empty"},
    {FIXTURES_CUT_HEADER, "cut short"},   {FIXTURES_CUT, "cut short"},
    {FIXTURES_LONG, "too long"},          {FIXTURES_OTHER_MAGIC, "mixed up"},
    {FIXTURES_OTHER_TYPE, "type 0x0d"},   {FIXTURES_NOT_IDX, "not an IDX file"},
    {FIXTURES_HUGE_COUNT, "cut short"},   {FIXTURES_HUGE_IMAGE, "IDX header"},
    {FIXTURES_FEWER_LABELS, "10 labels"}, {FIXTURES_BAD_LABEL, "label 10"},
    {FIXTURES_GZIP_CUT, "gzip"},          {FIXTURES_GZIP_DAMAGED, "gzip"},
    {FIXTURES_GZIP_LYING, "gzip"},        {FIXTURES_FOLDER, "folder"},
};

static void train_damaged_idx_file_is_refused(void **state)
{
    char config[512];

    (void)state;
    snprintf(config, sizeof(config), FIXTURES_IDX_CONFIG, "idx");
    program_write_text("idx.yaml", config);
    for (size_t i = 0; i < sizeof(idx_cases) / sizeof(idx_cases[0]); i++) {
        print_message("  damage %d\n", (int)idx_cases[i].damage);
        fixtures_make_idx("idx", idx_cases[i].damage);
        program_assert_error(bad_train("idx.yaml", NULL, "2"), 3, idx_cases[i].words);
        assert_false(program_exists("out"));
        program_assert_error(program_line("data info idx.yaml"), 3, idx_cases[i].words);
    }
}

static void train_sound_idx_file_is_read(void **state)
{
    static const fixtures_damage sound[] = {FIXTURES_SOUND, FIXTURES_GZIP};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fixtures_make_idx("idx", sound[i]);
        program_assert_success(bad_train("idx.yaml", NULL, "2"));
        assert_true(program_exists("out/final.safetensors"));
        program_remove("out");
    }
    program_assert_success(program_line("data info idx.yaml"));
}

enum { TRAIN_INPUT = 0, TEST_INPUT = 4 };

/* Two training samples of one value, and `test_samples` of the test split, of `width` values. The
   second of `bad` is NaN. */
static void write_arrays(int test_samples, int width, int bad)
{
    float value[8] = {1, 2, 3, 5};
    char header[512];
    const uint64_t length = (uint64_t)snprintf(
        header, sizeof(header),
        "{\"train.input\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
        "\"train.target\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]},"
        "\"test.input\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[16,24]},"
        "\"test.target\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[24,32]}}",
        test_samples, width, test_samples, width);
    uint8_t file[sizeof(length) + sizeof(header) + sizeof(value)];

    value[bad + 1] = NAN;
    memcpy(file, &length, sizeof(length));
    memcpy(file + sizeof(length), header, length);
    memcpy(file + sizeof(length) + length, value, sizeof(value));
    program_write("arrays.safetensors", file, sizeof(length) + length + sizeof(value));
}

static void data_info_value_that_is_no_number_is_shown(void **state)
{
    const program_result *r;

    (void)state;
    write_arrays(2, 1, TRAIN_INPUT);
    r = program_line("data info '{name: arrays, path: arrays.safetensors}'");
    program_assert_success(r);
    assert_non_null(strstr(r->out,
                           "input: (1) of f32; mean 1.0000, std 0.0000; 1 sample with NaN or "
                           "infinity, the first "));
    assert_non_null(strstr(r->out, "target: (1) of f32; mean 4.0000, std 1.0000\n"));
}

/* Of whatever rank, and though a ReLU makes 0 of it. */
static void train_value_that_is_no_number_is_named(void **state)
{
    static const char *const backends[] = {"backend=auto", "backend=ref"};
    static const char *const ranks[] = {"1", "2"};

    (void)state;
    write_arrays(2, 1, TRAIN_INPUT);
    program_write_text("arrays.yaml", "model: mlp\nloss: mse_loss\nbatch: 2\n"
                                      "data: {name: arrays, path: arrays.safetensors}\n");
    for (size_t b = 0; b < 2; b++)
        for (size_t r = 0; r < 2; r++) {
            program_assert_error(bad_train("arrays.yaml", backends[b], ranks[r]), 3,
                                 "sample 1 of arrays.safetensors: value 0 of its field 'input' is "
                                 "nan, so ");
            assert_no_results("out");
            program_remove("out");
        }
}

static void eval_value_that_is_no_number_is_named(void **state)
{
    static const char said[] =
        "sample 1 of arrays.safetensors: value 0 of its field 'input' is nan, "
        "so the test loss is not a number; ";

    (void)state;
    write_arrays(2, 1, TEST_INPUT);
    program_write_text("arrays.yaml", "model: {name: mlp, hidden: []}\nloss: mse_loss\nbatch: 2\n"
                                      "data: {name: arrays, path: arrays.safetensors}\n");
    assert_non_null(strstr(bad_train("arrays.yaml", NULL, "2")->err, said));
    assert_true(program_exists("out/final.safetensors"));
    program_assert_error(program_line("eval out"), 3, said);
    program_remove("out");
}

/* To its end, which says what to do. */
static void train_long_error_of_rank_is_whole(void **state)
{
    char set[1100] = "data.path=", *at = strchr(set, '\0'), *said;
    const program_result *r;

    (void)state;
    write_arrays(2, 1, TRAIN_INPUT);
    for (int i = 0; i < 60; i++)
        at = stpcpy(at, "./././././");
    stpcpy(at, "arrays.safetensors");
    program_write_text("arrays.yaml", "model: mlp\nloss: mse_loss\nbatch: 2\n"
                                      "data: {name: arrays, path: arrays.safetensors}\n");
    r = bad_train("arrays.yaml", set, "1");
    program_assert_error(r, 3, "correct it, or leave the sample out");
    said = program_read("out/metrics.jsonl");
    assert_non_null(strstr(said, "correct it, or leave the sample out"));
    free(said);
    program_remove("out");
}

static void train_arrays_of_other_shape_are_not_to_be_resized(void **state)
{
    const program_result *r;

    (void)state;
    write_arrays(1, 2, TRAIN_INPUT);
    program_write_text("arrays.yaml", "model: mlp\nloss: mse_loss\n"
                                      "data: {name: arrays, path: arrays.safetensors}\n");
    r = program_line("train arrays.yaml --run-dir out");
    program_assert_error(r, 3, "the test split does not fit the training split: samples (2), ");
    assert_null(strstr(r->err, "resize"));
    program_assert_error(program_line("data info '{name: arrays, path: arrays.safetensors}'"), 3,
                         "the test split does not fit the training split");
}

static void train_data_path_of_no_folder_is_refused(void **state)
{
    (void)state;
    program_write_text("a-file", "text");
    program_assert_error(bad_train("idx.yaml", "data.path=nowhere", "1"), 3, "nowhere");
    program_assert_error(bad_train("idx.yaml", "data.path=a-file", "1"), 3, "a-file");
    assert_false(program_exists("out"));
}

static void train_used_run_directory_is_refused(void **state)
{
    char *before, *after;

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_assert_success(bad_train("good.yaml", NULL, "1"));
    before = program_read("out/summary.json");
    program_assert_error(bad_train("good.yaml", NULL, "1"), 2, "--run-dir");
    after = program_read("out/summary.json");
    assert_string_equal(before, after);
    free(after);
    free(before);
    program_remove("out");
    program_write_text("out", "a file");
    program_assert_error(bad_train("good.yaml", NULL, "1"), 2, "out cannot be a folder");
    program_assert_error(program_line("train nowhere.yaml --run-dir out --dry-run"), 2,
                         "out cannot be");
    program_assert_error(program_line("train nowhere.yaml --run-dir out/a"), 2, "out/a cannot be");
    program_remove("out");
}

/* The disk is full after any number of bytes: a file is complete or absent. */
static void train_full_disk_leaves_no_partial_file(void **state)
{
    static const char *const args[] = {"train", "good.yaml", "--run-dir", "out",
                                       "-q",    "-n",        "2",         NULL};
    static const uint64_t limits[] = {1, 300, 700, 1500, 3000, 4500};

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const program_options full = {.max_file_bytes = limits[i]};
        const program_result *r = program_run(args, &full);

        /* stderr.txt is on the same disk, so the message may be cut, but not the exit code */
        if (r->exit_code != 1)
            fail_msg("exit code %d with files of up to %d bytes: %s", r->exit_code, (int)limits[i],
                     r->err);
        assert_int_equal(r->orphans, 0);
        assert_no_results("out");
        program_remove("out");
    }
    program_assert_success(program_run(args, NULL));
    program_remove("out");
}

static void eval_mismatched_weights_are_refused(void **state)
{
    char *bytes;

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_assert_success(bad_train("good.yaml", NULL, "1"));
    program_assert_error(program_line("eval nowhere"), 3, "nowhere");
    program_assert_error(program_line("eval out --config missing.yaml"), 2, "missing.yaml");
    program_assert_error(program_line("eval out --set model.hidden=8"), 3, "shape");
    program_assert_error(program_line("eval out --set model.hidden=[16,16]"), 3, "tensor");
    program_assert_error(program_line("eval good.yaml --config good.yaml"), 3, "good.yaml");
    mkdir("empty", 0700);
    program_assert_error(program_line("eval empty --config good.yaml"), 3, "final.safetensors");
    program_assert_error(program_line("eval empty"), 3, "final.safetensors");
    program_write("empty/final.safetensors", "", 0);
    program_assert_error(program_line("eval empty"), 2, "--config");
    bytes = program_read("out/final.safetensors");
    program_write("cut.safetensors", bytes, 900);
    program_write("tiny.safetensors", bytes, 5);
    free(bytes);
    program_assert_error(program_line("eval cut.safetensors -c good.yaml"), 3, "cut.safetensors");
    program_assert_error(program_line("inspect cut.safetensors"), 3, "cut.safetensors");
    program_assert_error(program_line("inspect tiny.safetensors"), 3, "tiny.safetensors");
    program_assert_error(program_line("inspect nowhere.safetensors"), 3, "nowhere");
    program_assert_error(program_line("inspect ."), 2, "is a folder");
    program_assert_error(program_line("inspect out/final.safetensors -n 2"), 2, "--set");
    program_remove("out");
}

static void inspect_of_other_file_says_what_it_takes(void **state)
{
    static const char words[] = "other is no text, so no config, and no .safetensors file";

    (void)state;
    program_write("other", "\x08\x08\x12\x06onnx", 8);
    program_assert_error(program_line("inspect other"), 2, words);
    program_write("other", "\x93NUMPY\x01\x00v", 9);
    program_assert_error(program_line("inspect other"), 2, words);
}

static void train_diverged_run_fails(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_assert_error(
        bad_train("good.yaml", "optimizer={name: sgd, lr: 1e6, weight_decay: 1e6}", "2"), 1,
        "diverged");
    assert_no_results("out");
    program_remove("out");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_bad_value_names_its_key),
        cmocka_unit_test(config_bad_layer_names_its_position),
        cmocka_unit_test(config_bad_file_names_line_and_column),
        cmocka_unit_test(config_path_of_no_file_is_refused),
        cmocka_unit_test(train_more_ranks_than_samples_is_refused),
        cmocka_unit_test(train_damaged_idx_file_is_refused),
        cmocka_unit_test(train_sound_idx_file_is_read),
        cmocka_unit_test(data_info_value_that_is_no_number_is_shown),
        cmocka_unit_test(train_value_that_is_no_number_is_named),
        cmocka_unit_test(eval_value_that_is_no_number_is_named),
        cmocka_unit_test(train_long_error_of_rank_is_whole),
        cmocka_unit_test(train_arrays_of_other_shape_are_not_to_be_resized),
        cmocka_unit_test(train_data_path_of_no_folder_is_refused),
        cmocka_unit_test(train_used_run_directory_is_refused),
        cmocka_unit_test(train_full_disk_leaves_no_partial_file),
        cmocka_unit_test(eval_mismatched_weights_are_refused),
        cmocka_unit_test(inspect_of_other_file_says_what_it_takes),
        cmocka_unit_test(train_diverged_run_fails),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
