/* test_language.c - language models from a text file: their files, and the text they write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "program.h"

#define MODEL "{name: gpt2, layers: 1, heads: 2, width: 8}"
#define CONFIG                                                                                     \
    "model: " MODEL "\n"                                                                           \
    "data: {name: text, path: text.txt, context: 8}\n"                                             \
    "batch: 8\n"                                                                                   \
    "max_steps: 60\n"                                                                              \
    "optimizer: {name: adamw, lr: 1e-2}\n"

/* 40 times 48 characters, of which `last` is one. */
static void write_text(const char *name, const char *last)
{
    char text[2001] = "", *at = text;

    for (size_t i = 0; i < 40; i++)
        at = stpcpy(stpcpy(at, "the quick brown fox jumps over a lazy dog, and\n"), last);
    program_write_text(name, text);
}

static int language_setup(void **state)
{
    (void)state;
    write_text("text.txt", "\xc3\xa9");
    program_write_text("text.yaml", CONFIG);
    program_assert_success(program_line("train text.yaml --run-dir run --quiet"));
    return 0;
}

/* As many characters, one of them another. */
static void language_text_of_other_characters_is_refused(void **state)
{
    (void)state;
    write_text("other.txt", "\xc3\xab");
    program_assert_error(program_line("eval run -s data.path=other.txt"), 3,
                         "other.txt: has other characters");
    program_assert_error(program_line("eval run -k latest -s data.path=other.txt"), 3,
                         "other.txt: has other characters");
    program_assert_error(
        program_line("train --resume --run-dir run -s max_steps=70 -s data.path=other.txt"), 3,
        "other.txt: has other characters");
}

/* By the numbers of the run, which go on to the next: a text that lacks some of its characters. */
static void language_text_takes_the_characters_of_a_run(void **state)
{
    char *text;

    (void)state;
    write_text("part.txt", "e");
    program_assert_error(
        program_line("train text.yaml --run-dir tuned --quiet -s data.path=part.txt "
                     "-s init=run/final.safetensors"),
        3, "part.txt: has other characters");
    program_assert_success(program_line("eval run -s data.path=part.txt -s data.characters=run"));
    program_assert_success(program_line(
        "train text.yaml --run-dir tuned --quiet -s data.path=part.txt -s max_steps=8 "
        "-s init=run/checkpoints/step-60/weights.safetensors -s data.characters=run/tokenizer"));
    text = program_read("tuned/tokenizer/characters.txt");
    assert_non_null(text);
    assert_string_equal(text, "\n ,abcdefghijklmnopqrstuvwxyz\xc3\xa9");
    free(text);
    program_assert_success(program_line("eval tuned"));
    assert_int_equal(rename("run", "gone"), 0);
    program_assert_success(program_line("eval tuned"));
    program_assert_success(
        program_line("train --resume --run-dir tuned --quiet -s max_steps=9 -s init=~"));
    assert_int_equal(rename("gone", "run"), 0);
    program_remove("tuned");
}

static void language_character_of_another_text_is_named(void **state)
{
    (void)state;
    write_text("other.txt", "\xc3\xab");
    program_assert_error(program_line("eval run -s data.path=other.txt -s data.characters=run"), 3,
                         "other.txt: line 2, byte 47: U+00EB is none of the 30 characters of run");
    program_assert_error(program_line("train text.yaml -s data.characters=nowhere"), 3,
                         "nowhere: no tokenizer");
    program_assert_error(
        program_line("train text.yaml -s data.tokenizer=bytes -s data.characters=run"), 2,
        "characters: goes with tokenizer: char");
}

/* Of the same shapes, by another kind of tokenizer; and weights that have a config of their own. */
static void language_tokens_of_another_tokenizer_are_refused(void **state)
{
    static const char *const lines[] = {
        "eval of -s data.path=pairs",
        "train --resume --run-dir of -s max_steps=9 -s data.path=pairs",
        "train text.yaml -s 'data={name: tokens, path: pairs, context: 8}' -s "
        "init=of/final.safetensors",
        "train text.yaml -s 'data={name: tokens, path: pairs, context: 8}' "
        "-s 'init={weights: of/final.safetensors, skip: h.0}'"};

    (void)state;
    program_assert_success(program_line("data tokenize text.txt bytes --tokenizer bytes --quiet"));
    program_assert_success(
        program_line("data tokenize text.txt pairs --tokenizer bpe --vocab 256 --quiet"));
    program_assert_success(program_line("train text.yaml --run-dir of --quiet -s max_steps=8 "
                                        "-s 'data={name: tokens, path: bytes, context: 8}'"));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        program_assert_error(program_line(lines[i]), 3, "its tokens are of another tokenizer");
    program_assert_success(program_line("train text.yaml --run-dir skipped --quiet -s max_steps=8 "
                                        "-s 'data={name: tokens, path: pairs, context: 8}' "
                                        "-s 'init={weights: of/final.safetensors, skip: wte}'"));
    program_assert_error(program_line("eval of -s 'data={name: text, path: text.txt, context: 8}'"),
                         3, "its tokens are characters, and the weights were trained on bytes");
    write_text("other.txt", "\xc3\xab");
    program_write_text("other.yaml", "model: " MODEL "\n"
                                     "data: {name: text, path: other.txt, context: 8}\n");
    program_assert_error(program_line("eval run -c other.yaml"), 3, "has other characters");
    program_remove("of");
    program_remove("skipped");
    program_remove("bytes");
    program_remove("pairs");
}

static void language_embedding_of_fewer_tokens_is_refused(void **state)
{
    (void)state;
    program_write_text("layers.yaml",
                       "layers: [embedding: {vocab: 29, out: 8}, layernorm, linear: 30]\n"
                       "data: {name: text, path: text.txt, context: 8}\n");
    program_assert_error(program_line("train layers.yaml"), 2,
                         "it knows 29 tokens, and the data has 30");
}

static void language_resumed_run_equals_whole(void **state)
{
    char whole[65], parts[65];

    (void)state;
    program_assert_success(program_line("train text.yaml -s max_steps=35 --run-dir parts --quiet"));
    program_assert_success(program_line("train --resume -s max_steps=60 --run-dir parts --quiet"));
    program_weights(whole, "run");
    program_weights(parts, "parts");
    assert_string_equal(whole, parts);
    program_remove("parts");
}

static void language_weights_have_hugging_face_shapes(void **state)
{
    static const char *const lines[] = {
        "h.0.attn.c_attn.weight", "(8, 24)", "h.0.attn.c_proj.weight", "(8, 8)",
        "h.0.mlp.c_fc.weight",    "(8, 32)", "h.0.mlp.c_proj.weight",  "(32, 8)"};
    char command[128];

    (void)state;
    for (int file = 0; file < 3; file++) {
        const char *const files[] = {"run/final.safetensors",
                                     "run/checkpoints/step-60/weights.safetensors",
                                     "exported.safetensors"};

        if (file == 2)
            program_assert_success(program_line("export run exported.safetensors"));
        snprintf(command, sizeof(command), "inspect %s", files[file]);
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i += 2) {
            const char *line = strstr(program_line(command)->out, lines[i]);

            assert_non_null(line);
            assert_true(strstr(line, lines[i + 1]) < strchr(line, '\n'));
        }
    }
}

static void language_run_keeps_its_tokenizer(void **state)
{
    char *text;

    (void)state;
    text = program_read("run/tokenizer/characters.txt");
    assert_non_null(text);
    assert_string_equal(text, "\n ,abcdefghijklmnopqrstuvwxyz\xc3\xa9");
    free(text);
    program_assert_success(
        program_line("data tokenize text.txt pairs --tokenizer bpe --vocab 270 --quiet"));
    program_assert_success(program_line("train text.yaml --run-dir by-pairs --quiet -s "
                                        "'data={name: tokens, path: pairs, context: 8}'"));
    assert_true(program_exists("by-pairs/tokenizer/vocab.json"));
    assert_true(program_exists("by-pairs/tokenizer/merges.txt"));
}

/* A text has few of the 256 bytes, and the model predicts them all. */
static void language_model_of_a_tokenized_file_writes_text(void **state)
{
    const program_result *r;

    (void)state;
    program_assert_success(program_line("data tokenize text.txt bytes --tokenizer bytes --quiet"));
    program_assert_success(program_line("train text.yaml --run-dir of-bytes --quiet -s max_steps=8 "
                                        "-s 'data={name: tokens, path: bytes, context: 8}'"));
    r = program_line("generate of-bytes --prompt the --tokens 4");
    program_assert_success(r);
    assert_int_equal(strncmp(r->out, "the", 3), 0);
    program_remove("of-bytes");
    program_remove("bytes");
}

/* With bytes and with pairs: loss over log 2 and the bytes of a token. */
static void language_bits_per_byte_follow_the_loss(void **state)
{
    json_t *bytes, *pairs;
    double loss, bits;

    (void)state;
    program_assert_success(program_line(
        "train text.yaml --run-dir by-bytes --quiet -s max_steps=8 -s data.tokenizer=bytes"));
    bytes = program_summary("by-bytes");
    pairs = program_summary("by-pairs");
    loss = json_real_value(json_object_get(bytes, "test_loss"));
    bits = json_real_value(json_object_get(bytes, "test_bits_per_byte"));
    assert_true(loss > 0 && fabs(bits - loss / log(2)) < 1e-6);
    loss = json_real_value(json_object_get(pairs, "test_loss"));
    bits = json_real_value(json_object_get(pairs, "test_bits_per_byte"));
    assert_true(bits > 0 && bits < 0.9 * loss / log(2));
    json_decref(bytes);
    json_decref(pairs);
}

/* Nine tenths of two bytes a character, and then one. */
static void language_bits_per_byte_are_of_the_split(void **state)
{
    char text[1901] = "", *at = text;
    json_t *run;

    (void)state;
    for (int i = 0; i < 900; i++)
        at = stpcpy(at, i % 2 ? "\xc3\xa9" : "\xc3\xab");
    memset(at, 'a', 100);
    at[100] = '\0';
    program_write_text("two.txt", text);
    program_assert_success(
        program_line("train text.yaml --run-dir two --quiet -s max_steps=8 -s data.path=two.txt"));
    run = program_summary("two");
    for (int test = 0; test < 2; test++) {
        const char *const keys[] = {"train_loss", "train_bits_per_byte", "test_loss",
                                    "test_bits_per_byte"};
        const double loss = json_real_value(json_object_get(run, keys[2 * test]));
        const double bits = json_real_value(json_object_get(run, keys[2 * test + 1]));

        assert_true(loss > 0 && fabs(bits * (test ? 1 : 2) - loss / log(2)) < 1e-6);
    }
    json_decref(run);
    program_remove("two");
}

/* A tenth of 40 times 48 characters, of which the first is not predicted, in windows of 8. */
static void language_eval_counts_samples_and_tokens(void **state)
{
    json_t *eval = program_json("eval run --json");

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(eval, "test_samples")), 24);
    assert_int_equal(json_integer_value(json_object_get(eval, "test_tokens")), 191);
    json_decref(eval);
}

/* The epochs, counted from 0, of the lowest test loss and of the highest test accuracy. */
static void language_best_epochs(int *by_loss, int *by_accuracy, const char *metrics)
{
    double least = 1e9, most = 0;
    char *text = program_read(metrics), *line, *rest;

    assert_non_null(text);
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *event = json_loads(line, 0, NULL);
        const double loss = json_real_value(json_object_get(event, "test_loss"));
        const double accuracy = json_real_value(json_object_get(event, "test_accuracy"));
        const int epoch = (int)json_integer_value(json_object_get(event, "epoch"));

        if (strcmp(json_string_value(json_object_get(event, "event")), "epoch") == 0) {
            *by_loss = loss < least ? epoch : *by_loss;
            least = loss < least ? loss : least;
            *by_accuracy = accuracy > most ? epoch : *by_accuracy;
            most = accuracy > most ? accuracy : most;
        }
        json_decref(event);
    }
    free(text);
}

static int language_summary_count(const char *dir, const char *name)
{
    json_t *summary = program_summary(dir);
    const int count = (int)json_integer_value(json_object_get(summary, name));

    json_decref(summary);
    return count;
}

/* Its test loss rises again while the accuracy does not fall yet. */
static void language_best_epoch_has_the_lowest_loss(void **state)
{
    int by_loss = -1, by_accuracy = -1;
    const program_result *r;
    char words[64];

    (void)state;
    program_write_text("overfits.yaml", "model: {name: gpt2, layers: 1, heads: 2, width: 16}\n"
                                        "data: {name: synthetic-tokens, context: 16, vocabulary: "
                                        "64, samples: 64}\n"
                                        "batch: 8\n"
                                        "epochs: 8\n"
                                        "threads: 1\n"
                                        "optimizer: {name: adamw, lr: 3e-2}\n");
    r = program_line("train overfits.yaml --run-dir overfits");
    program_assert_success(r);
    language_best_epochs(&by_loss, &by_accuracy, "overfits/metrics.jsonl");
    assert_int_in_range(by_loss, 0, 6);
    assert_true(by_accuracy > by_loss);
    assert_int_equal(language_summary_count("overfits", "best_epoch"), by_loss);
    snprintf(words, sizeof(words), "in epoch %d)", by_loss + 1);
    assert_non_null(strstr(r->out, words));

    program_assert_success(
        program_line("train overfits.yaml --run-dir patient --quiet -s stop_at.patience=1"));
    assert_int_equal(language_summary_count("patient", "steps"), 8 * (by_loss + 2));
    program_assert_success(program_line("train overfits.yaml --run-dir patient-by-accuracy --quiet "
                                        "-s stop_at.patience=1 -s stop_at.metric=accuracy"));
    assert_int_equal(language_summary_count("patient-by-accuracy", "steps"), 8 * (by_accuracy + 2));
}

/* It is measured without being asked for. */
static void language_run_stops_at_a_perplexity(void **state)
{
    json_t *summary;

    (void)state;
    program_assert_success(
        program_line("train overfits.yaml --run-dir perplexed --quiet -s stop_at.perplexity=20 "
                     "-s checkpoint.best=perplexity"));
    summary = program_summary("perplexed");
    assert_string_equal(json_string_value(json_object_get(summary, "stopped_by")), "perplexity");
    assert_true(json_real_value(json_object_get(summary, "test_perplexity")) <= 20);
    json_decref(summary);
    program_assert_error(program_line("train overfits.yaml -s model=mlp -s 'data={name: synthetic, "
                                      "shape: [1, 8, 8], classes: 4, samples: 64}' "
                                      "-s stop_at.perplexity=20"),
                         2, "such a network has no perplexity");
}

static void language_generate_writes_text(void **state)
{
    char *first;

    (void)state;
    program_assert_success(program_line("generate run --prompt 'the quick' --seed 7 --tokens 50"));
    first = strdup(program_line("generate run --prompt 'the quick' --seed 7 --tokens 50")->out);
    assert_non_null(first);
    assert_int_equal(strncmp(first, "the quick", 9), 0);
    assert_string_equal(
        program_line("generate run -p 'the quick' --seed 7 --tokens 50 --top-k 30")->out, first);
    assert_string_not_equal(
        program_line("generate run --prompt 'the quick' --seed 8 --tokens 50")->out, first);
    free(first);
    program_assert_success(program_line("generate by-pairs -p quick --temperature 0 --top-p 0.9"));
    program_assert_success(program_line(
        "generate run/final.safetensors -p a --tokenizer run/tokenizer --config text.yaml"));
}

static void language_generate_bad_requests_are_refused(void **state)
{
    static const struct {
        const char *line;
        int exit_code;
        const char *words;
    } cases[] = {
        {"generate run", 2, "--prompt TEXT is missing"},
        {"generate run -p ''", 2, "--prompt needs a value"},
        {"generate run -p QUICK", 2, "the character U+0051 has no token"},
        {"generate run -p a --top-p 2", 2, "--top-p takes a number from 0 to 1"},
        {"generate run -p a --temperature hot", 2, "--temperature takes a number from 0"},
        {"generate run -p a --top-k 0", 2, "--top-k"},
        {"generate run -p a --tokenizer nowhere", 3, "nowhere: no tokenizer"},
        {"generate run -p a --tokenizer by-pairs/tokenizer", 2,
         "the tokenizer has 270 tokens, and the model predicts 30"},
        {"generate images -p a", 2, "no tokenizer"},
        {"generate images -p a --tokenizer run/tokenizer", 2, "is no language model"},
        {"generate nowhere -p a", 3, "nowhere: no such run directory"},
    };

    (void)state;
    program_write_text("images.yaml", FIXTURES_CONFIG);
    program_assert_success(
        program_line("train images.yaml --run-dir images --quiet -s data.classes=40"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        program_assert_error(program_line(cases[i].line), cases[i].exit_code, cases[i].words);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(language_text_takes_the_characters_of_a_run),
        cmocka_unit_test(language_character_of_another_text_is_named),
        cmocka_unit_test(language_tokens_of_another_tokenizer_are_refused),
        cmocka_unit_test(language_embedding_of_fewer_tokens_is_refused),
        cmocka_unit_test(language_resumed_run_equals_whole),
        cmocka_unit_test(language_run_keeps_its_tokenizer),
        cmocka_unit_test(language_model_of_a_tokenized_file_writes_text),
        cmocka_unit_test(language_bits_per_byte_follow_the_loss),
        cmocka_unit_test(language_bits_per_byte_are_of_the_split),
        cmocka_unit_test(language_text_of_other_characters_is_refused),
        cmocka_unit_test(language_eval_counts_samples_and_tokens),
        cmocka_unit_test(language_best_epoch_has_the_lowest_loss),
        cmocka_unit_test(language_run_stops_at_a_perplexity),
        cmocka_unit_test(language_generate_writes_text),
        cmocka_unit_test(language_generate_bad_requests_are_refused),
        cmocka_unit_test(language_weights_have_hugging_face_shapes),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, language_setup, NULL);
    program_fini();
    return failed;
}
