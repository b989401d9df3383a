/* test_language.c - language models from a text file: their files of weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define MODEL "{name: gpt2, layers: 1, heads: 2, width: 8}"
#define CONFIG                                                                                     \
    "model: " MODEL "\n"                                                                           \
    "data: {name: text, path: text.txt, context: 8}\n"                                             \
    "batch: 8\n"                                                                                   \
    "max_steps: 60\n"                                                                              \
    "optimizer: {name: adamw, lr: 1e-2}\n"

static int language_setup(void **state)
{
    char text[2001] = "";

    (void)state;
    for (size_t i = 0; i < 40; i++)
        strcat(text, "the quick brown fox jumps over a lazy dog, and\n\xc3\xa9");
    program_write_text("text.txt", text);
    program_write_text("text.yaml", CONFIG);
    program_assert_success(program_line("train text.yaml --run-dir run --quiet"));
    return 0;
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(language_resumed_run_equals_whole),
        cmocka_unit_test(language_run_keeps_its_tokenizer),
        cmocka_unit_test(language_bits_per_byte_follow_the_loss),
        cmocka_unit_test(language_weights_have_hugging_face_shapes),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, language_setup, NULL);
    program_fini();
    return failed;
}
