/* test_weights.c - weights into and out of runs: initial weights, eval, import, export. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fixtures.h"
#include "program.h"

/* The run `base`: an mlp with layers fc1 (16, 64) and fc2 (4, 16). */
static int weights_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_assert_success(program_line("train good.yaml --run-dir base --quiet"));
    return 0;
}

/* The line about `tensor` in the output of `inspect`, to be freed. */
static char *weights_line(const char *file, const char *tensor)
{
    char command[256], *copy;
    const char *line;

    snprintf(command, sizeof(command), "inspect %s", file);
    line = strstr(program_line(command)->out, tensor);
    assert_non_null(line);
    copy = strndup(line, strcspn(line, "\n"));
    assert_non_null(copy);
    return copy;
}

static void assert_same_tensor(const char *tensor, const char *a, const char *b, int same)
{
    char *of_a = weights_line(a, tensor), *of_b = weights_line(b, tensor);

    if ((strcmp(of_a, of_b) == 0) != same)
        fail_msg("%s: %s\n%s: %s", a, of_a, b, of_b);
    free(of_a);
    free(of_b);
}

/* Of its last value, which no training has made. */
static void weights_that_are_no_numbers_are_refused(void **state)
{
    static const char *const lines[] = {
        "train good.yaml --set init=bad.safetensors", "eval bad.safetensors --config good.yaml",
        "import bad.safetensors out.safetensors --config good.yaml"};
    const float nan = NAN;
    FILE *file;

    (void)state;
    program_assert_success(program_line("export base bad.safetensors"));
    file = fopen("bad.safetensors", "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -(long)sizeof(nan), SEEK_END), 0);
    assert_int_equal(fwrite(&nan, sizeof(nan), 1, file), 1);
    assert_int_equal(fclose(file), 0);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        program_assert_error(program_line(lines[i]), 3, "bad.safetensors: value ");
}

/* A tiny learning rate, so that weights stay as they were at the start. */
#define STILL "--set optimizer.lr=1e-30 --set epochs=1 --quiet"

static void init_from_file_gives_its_weights(void **state)
{
    (void)state;
    program_assert_success(program_line("train good.yaml --run-dir tuned " STILL
                                        " --set init=base/final.safetensors"));
    assert_same_tensor("fc1.weight", "base/final.safetensors", "tuned/final.safetensors", 1);
    assert_same_tensor("fc2.weight", "base/final.safetensors", "tuned/final.safetensors", 1);
    program_assert_success(program_line("train good.yaml -n 2 --run-dir ranks " STILL
                                        " --set strategy=threads"
                                        " --set init=base/final.safetensors"));
    assert_same_tensor("fc2.weight", "base/final.safetensors", "ranks/final.safetensors", 1);
    /* The run's config names the file again, but evaluating does not need it. */
    program_assert_success(program_line("eval tuned --set init=nowhere.safetensors"));
}

static void init_skip_leaves_classifier_random(void **state)
{
    (void)state;
    program_assert_error(
        program_line("train good.yaml --run-dir seven " STILL " --set data.classes=7"
                     " --set init=base/final.safetensors"),
        3,
        "2 of another shape: fc2.weight (4, 16) for (7, 16), fc2.bias (4) for (7); "
        "init.skip names layers that begin afresh, e.g. skip: [fc2]");
    assert_false(program_exists("seven"));
    program_assert_success(program_line("train good.yaml --run-dir seven " STILL
                                        " --set data.classes=7 --set "
                                        "'init={weights: base/final.safetensors, skip: [fc2]}'"));
    assert_same_tensor("fc1.weight", "base/final.safetensors", "seven/final.safetensors", 1);
    assert_same_tensor("fc2.weight", "base/final.safetensors", "seven/final.safetensors", 0);
}

static void init_bad_file_is_refused(void **state)
{
    static const struct {
        const char *init;
        int exit_code;
        const char *words;
    } cases[] = {
        {"init=nowhere.safetensors", 3, "nowhere.safetensors: No such file"},
        {"init=good.yaml", 3, "good.yaml"},
        {"init=base", 3, "is a folder"},
        {"init={skip: fc2}", 2, "weights"},
        {"init={weight: x}", 2, "did you mean 'weights'"},
        {"init=[x]", 2, "init"},
        {"init={weights: base/final.safetensors, skip: fc}", 2, "no layer 'fc'"},
        {"init={weights: base/final.safetensors, skip: [[fc2]]}", 2, "the name of a layer"},
        {"init={weights: base/final.safetensors, skip: {fc2: 1}}", 2, "the name of a layer"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const args[] = {"train", "good.yaml",   "--run-dir", "bad",
                                    "--set", cases[i].init, NULL};

        program_assert_error(program_run(args, NULL), cases[i].exit_code, cases[i].words);
        assert_false(program_exists("bad"));
    }
    program_assert_error(
        program_line("train good.yaml -n 2 --run-dir drawn --set init=base/final.safetensors --set "
                     "'strategy={name: one-shot, init: per-rank}'"),
        2, "use init: common");
}

/* The output of `eval --json`, to be freed. */
static char *weights_eval(const char *words)
{
    char line[512];
    const program_result *r;

    snprintf(line, sizeof(line), "eval %s --json", words);
    r = program_line(line);
    program_assert_success(r);
    return strdup(r->out);
}

static void export_then_import_gives_same_weights(void **state)
{
    char *want = weights_eval("base"), *got;

    (void)state;
    program_assert_success(program_line("export base out.safetensors"));
    program_assert_success(program_line("import out.safetensors in.safetensors -c good.yaml"));
    got = weights_eval("in.safetensors --config good.yaml");
    assert_string_equal(want, got);
    free(got);
    got = weights_eval("out.safetensors --config good.yaml");
    assert_string_equal(want, got);
    free(got);
    free(want);
    /* a model by its name instead of a config */
    program_assert_success(
        program_line("import out.safetensors named.safetensors --shape 1,8,8 --classes 4 "
                     "--model '{name: mlp, hidden: [16]}'"));
    assert_same_tensor("sha256", "named.safetensors", "in.safetensors", 1);
    /* which says itself what its samples are like */
    program_assert_success(program_line("import out.safetensors said.safetensors --model '{name: "
                                        "mlp, hidden: [16]}'"));
    assert_same_tensor("sha256", "said.safetensors", "in.safetensors", 1);
}

/* Of a network that takes images of any size. */
static void export_of_other_shape_says_no_crop(void **state)
{
    char *line;

    (void)state;
    program_write_text("crop.yaml",
                       "layers: [{conv2d: {out: 4, kernel: 3}}, {adaptive_avgpool: 1}, flatten, "
                       "{linear: 4}]\n"
                       "data: {name: synthetic, shape: [1, 12, 12], classes: 4, samples: 32, "
                       "center_crop: 8}\nbatch: 16\nepochs: 1\noptimizer: {name: sgd, lr: 0.1}\n");
    program_assert_success(program_line("train crop.yaml --run-dir crop --quiet"));
    program_assert_success(program_line("export crop crop.safetensors"));
    line = weights_line("crop.safetensors", "cohort.center_crop");
    assert_string_equal(line, "cohort.center_crop: 8");
    free(line);
    program_assert_success(program_line("export crop wide.safetensors --shape 1,20,20"));
    line = weights_line("wide.safetensors", "cohort.sample");
    assert_string_equal(line, "cohort.sample: 1,20,20");
    free(line);
    assert_null(strstr(program_line("inspect wide.safetensors")->out, "center_crop"));
}

/* Sum of one row of the confusion matrix in `eval --classes --json`, and its diagonal element. */
static void weights_add_row(json_int_t *all, json_int_t *right, const json_t *object, size_t row)
{
    const json_t *counts = json_array_get(json_object_get(object, "confusion"), row);

    assert_int_equal(json_array_size(counts), 4);
    for (size_t k = 0; k < 4; k++)
        *all += json_integer_value(json_array_get(counts, k));
    *right += json_integer_value(json_array_get(counts, row));
}

static void eval_with_classes_gives_confusion_matrix(void **state)
{
    static const char *const lines[] = {"base --classes", "base --classes -n 3"};
    char *first = NULL;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *text = weights_eval(lines[i]);
        json_t *object = json_loads(text, 0, NULL);
        json_int_t all = 0, right = 0;
        double accuracy;

        assert_non_null(object);
        for (size_t row = 0; row < 4; row++)
            weights_add_row(&all, &right, object, row);
        assert_int_equal(all, json_integer_value(json_object_get(object, "test_samples")));
        accuracy = json_real_value(json_object_get(object, "test_accuracy"));
        assert_true((double)right == accuracy * (double)all);
        json_decref(object);
        if (i == 0) {
            first = text;
            continue;
        }
        assert_string_equal(strstr(first, "confusion"), strstr(text, "confusion"));
        free(text);
    }
    free(first);
    assert_non_null(strstr(program_line("eval base --classes")->out, "class    samples accuracy"));
}

/* Initial weights are needed only once. */
static void resume_needs_no_initial_weights(void **state)
{
    static const char line[] = "train good.yaml --run-dir going --resume --quiet --set "
                               "init=start.safetensors --set max_steps=8";

    (void)state;
    program_assert_error(program_line(line), 3, "start.safetensors: No such file");
    program_assert_success(program_line("export base start.safetensors"));
    program_assert_success(program_line(line));
    program_remove("start.safetensors");
    program_remove("going/final.safetensors");
    program_remove("going/summary.json");
    program_assert_success(program_line(line));
    assert_true(program_exists("going/final.safetensors"));
}

/* A run of 16 steps that keeps its last two checkpoints, at 12 and 16. */
static void eval_of_checkpoint_finds_weights(void **state)
{
    char *last, *other;

    (void)state;
    program_assert_success(program_line("train good.yaml --run-dir kept --quiet --set "
                                        "'checkpoint={every: 4 steps, keep: 2}'"));
    last = weights_eval("kept");
    other = weights_eval("kept -k 16");
    assert_string_equal(last, other);
    free(other);
    other = weights_eval("kept/checkpoints/step-12");
    assert_string_not_equal(last, other);
    free(last);
    last = weights_eval("kept --checkpoint 12");
    assert_string_equal(last, other);
    free(last);
    free(other);
    free(weights_eval("kept --checkpoint best"));
    program_assert_success(program_line("export kept kept.safetensors -k 12"));
    program_assert_error(program_line("eval kept -k 13"), 3, "'13'; the latest is of step ");
    program_assert_error(program_line("eval kept -k -1"), 2, "say latest, best, or a step");
    program_assert_error(program_line("eval kept -k worst"), 2, "worst");
    program_assert_error(program_line("eval kept/final.safetensors -k best"), 2, "is a file");
    /* a run that is not finished, or has lost its final weights */
    last = weights_eval("kept -k latest");
    program_remove("kept/final.safetensors");
    other = weights_eval("kept");
    assert_string_equal(last, other);
    free(last);
    free(other);
    program_remove("kept/checkpoints");
    program_assert_error(program_line("eval kept"), 3, "no final.safetensors, and no checkpoint");
}

/* Cohort's files describe their samples. */
static void export_without_data_set_succeeds(void **state)
{
    (void)state;
    program_assert_success(program_line(
        "export base x.safetensors --set 'data={name: mnist, path: /nowhere, normalize: {mean: "
        "0.5}}'"));
    assert_non_null(strstr(program_line("inspect x.safetensors")->out,
                           "metadata   cohort.mean: 0.5\nmetadata   cohort.std: 1\n"));
    assert_non_null(strstr(program_line("inspect x.safetensors")->out, "cohort.sample: 1,8,8"));
}

static void import_and_export_bad_arguments_are_refused(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
        const char *words;
    } cases[] = {
        {"export base model", 2, "NAME.onnx or NAME.safetensors"},
        {"export base .onnx", 2, "NAME.onnx or NAME.safetensors"},
        {"export base", 2, "DST is missing"},
        {"export nowhere x.onnx", 3, "nowhere: no such run directory"},
        {"export good.yaml x.safetensors -c good.yaml", 3, "good.yaml"},
        {"export base x.safetensors --shape 1,8", 2, "--shape takes channels"},
        {"export base x.safetensors --shape 0,8,8", 2, "--shape takes channels"},
        {"export base x.safetensors --shape 1,9,9", 3, "fc1.weight (16, 64) for (16, 81)"},
        {"export base x.safetensors --set model.hidden=8", 3, "does not fit the model"},
        {"export base nowhere/x.safetensors", 1, "nowhere/x.safetensors"},
        {"import base/final.safetensors x.safetensors", 2, "--model MODEL or --config CONFIG"},
        {"import base/final.safetensors x.safetensors -m mlp -c good.yaml", 2, "either --model"},
        {"import base/final.safetensors x.safetensors -c good.yaml --classes 3", 2, "--model"},
        {"import base/final.safetensors x.safetensors -m mlp --set seed=1", 2, "--config"},
        {"import base/final.safetensors x.pt -c good.yaml", 2, "end in .safetensors"},
        {"import base/final.safetensors x.safetensors -m nonsuch", 2, "unknown model 'nonsuch'"},
        {"import base/final.safetensors x.safetensors -m lenet5 --shape 1,28,28", 3,
         "does not fit the model"},
        {"import good.yaml x.safetensors -c good.yaml", 3, "is it a safetensors file?"},
        {"import nowhere x.safetensors -c good.yaml", 3, "nowhere: No such file"},
    };

    (void)state;
    program_remove("x.safetensors");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        program_assert_error(program_line(cases[i].line), cases[i].exit_code, cases[i].words);
        assert_false(program_exists("x.safetensors"));
    }
}

static void import_of_pytorch_file_names_remedy(void **state)
{
    (void)state;
    program_write("zip.pt", "PK\3\4\0\0\0\0 archive/data.pkl", 26);
    program_assert_error(program_line("import zip.pt x.safetensors -c good.yaml"), 3, "torch.save");
    program_write("old.pt", "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P", 14);
    program_assert_error(program_line("import old.pt x.safetensors -c good.yaml"), 3, "torch.save");
}

/* The page is written all the same, and nothing is lost on the way: `make asan` sees that. */
static void report_of_damaged_weights_says_so(void **state)
{
    char *page;

    (void)state;
    program_assert_success(program_line("train good.yaml --run-dir damaged --quiet"));
    program_write_text("damaged/final.safetensors", "no weights");
    program_assert_success(program_line("report damaged -o damaged.html"));
    page = program_read("damaged.html");
    assert_non_null(strstr(page, "\"missing\""));
    assert_non_null(strstr(page, "damaged/final.safetensors"));
    free(page);
    program_remove("damaged");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_that_are_no_numbers_are_refused),
        cmocka_unit_test(init_from_file_gives_its_weights),
        cmocka_unit_test(init_skip_leaves_classifier_random),
        cmocka_unit_test(init_bad_file_is_refused),
        cmocka_unit_test(export_then_import_gives_same_weights),
        cmocka_unit_test(export_of_other_shape_says_no_crop),
        cmocka_unit_test(eval_of_checkpoint_finds_weights),
        cmocka_unit_test(resume_needs_no_initial_weights),
        cmocka_unit_test(eval_with_classes_gives_confusion_matrix),
        cmocka_unit_test(export_without_data_set_succeeds),
        cmocka_unit_test(import_and_export_bad_arguments_are_refused),
        cmocka_unit_test(import_of_pytorch_file_names_remedy),
        cmocka_unit_test(report_of_damaged_weights_says_so),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, weights_setup, NULL);
    program_fini();
    return failed;
}
