/* test_init.c - `cohort init`: configs for several kinds of data, which train as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/pictures.h"
#include "fixtures.h"
#include "program.h"

static const char *init_program = "";
static bool init_all; /* train on each kind of data; else their configs are only checked */

static void assert_contains(const char *path, const char *words)
{
    char *text = program_read(path);

    assert_non_null(text);
    if (!strstr(text, words))
        fail_msg("%s has no '%s':\n%s", path, words, text);
    free(text);
}

/* Train it for two steps, and with all of its epochs checked. */
static void assert_trains(const char *config)
{
    char line[256];

    snprintf(line, sizeof(line), "train %s --quiet --run-dir %s.run --set max_steps=2", config,
             config);
    program_assert_success(program_line(line));
}

static void assert_sound(const char *config)
{
    char line[256];

    snprintf(line, sizeof(line), "train %s --dry-run", config);
    if (init_all)
        assert_trains(config);
    else
        program_assert_success(program_line(line));
}

static void init_idx_files_train(void **state)
{
    (void)state;
    fixtures_make_idx("digits", FIXTURES_GZIP);
    program_assert_success(program_line("init digits -o idx.yaml"));
    assert_non_null(strstr(program_line("init digits -o one.yaml --epochs 1")->out,
                           ", 1 epoch; `cohort train one.yaml`"));
    assert_contains("idx.yaml", "model: lenet5");
    assert_contains("idx.yaml", "# 64 training and 32 test samples of (1, 28, 28), 10 classes");
    assert_trains("idx.yaml");
}

/* What it writes is what `data info` measures: 0 and 1 once normalised. */
static void init_normalisation_is_that_of_the_data(void **state)
{
    const program_result *r;

    (void)state;
    fixtures_make_idx("digits", FIXTURES_SOUND);
    program_assert_success(program_line("init digits -o norm.yaml -q"));
    r = program_line("data info norm.yaml");
    program_assert_success(r);
    if (!strstr(r->out, "mean, std        0.000") && !strstr(r->out, "mean, std        -0.000"))
        fail_msg("%s", r->out);
    assert_non_null(strstr(r->out, ", 1.0"));
}

static void init_text_is_known(void **state)
{
    char text[4096];

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = "a line of words\n"[i % 16];
    text[sizeof(text) - 1] = '\0';
    program_write_text("it's.txt", text);
    program_assert_success(program_run(
        (const char *const[]){"init", "it's.txt", "-o", "text.yaml", "--context", "16", NULL},
        NULL));
    assert_contains("text.yaml", "context: 16");
    program_assert_success(program_line("data info it's.txt"));
    assert_sound("text.yaml");
}

/* What `cohort data tokenize` writes, and nanoGPT's two files, one of which CIFAR-100 has, too. */
static void init_folder_of_tokens_is_known(void **state)
{
    uint16_t bare[4096];

    (void)state;
    for (size_t i = 0; i < 4096; i++)
        bare[i] = (uint16_t)(i % 7);
    program_assert_success(program_line("data tokenize it's.txt tokenized --tokenizer bytes"));
    program_assert_success(program_line("init tokenized -o tokenized.yaml --context 16"));
    assert_contains("tokenized.yaml", "{name: tokens, path: 'tokenized', context: 16}");
    assert_contains("tokenized.yaml", "of 16 tokens each");
    assert_sound("tokenized.yaml");
    assert_int_equal(mkdir("bare", 0700), 0);
    program_write("bare/train.bin", bare, sizeof(bare));
    program_write("bare/val.bin", bare, sizeof(bare));
    program_assert_success(program_line("init bare -o bare.yaml"));
    assert_contains("bare.yaml", "name: tokens");
    assert_sound("bare.yaml");
}

static void init_write_picture(const char *path, int width, int height, int seed)
{
    const picture p = {.width = width, .height = height, .channels = 3, .seed = (unsigned)seed};
    size_t size;
    uint8_t *bytes = picture_png(&size, &p);

    program_write(path, bytes, size);
    free(bytes);
}

static void init_folder_of_pictures_is_known(void **state)
{
    static const char *const folder[] = {"pets",           "pets/train",     "pets/val",
                                         "pets/train/cat", "pets/train/dog", "pets/val/cat",
                                         "pets/val/dog"};

    (void)state;
    for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++)
        assert_int_equal(mkdir(folder[i], 0700), 0);
    for (size_t i = 3; i < sizeof(folder) / sizeof(folder[0]); i++)
        for (int k = 0; k < 4; k++) {
            char path[64];

            snprintf(path, sizeof(path), "%s/%d.png", folder[i], k);
            init_write_picture(path, 40 + k, 36, (int)i * 16 + k);
        }
    program_assert_success(program_line("init pets -o pets.yaml"));
    assert_contains("pets.yaml", "2 classes: cat, dog");
    assert_contains("pets.yaml", "resize: 36");
    program_assert_error(program_line("data info pets"), 3, "data.resize");
    program_assert_success(program_line("data info pets --set data.resize=36"));
    assert_sound("pets.yaml");
}

/* Samples of CIFAR-10's binary version in one file. */
static void init_write_cifar(const char *path, size_t n)
{
    enum { RECORD = 1 + 3 * 32 * 32 };
    uint8_t *bytes = calloc(n, RECORD);

    assert_non_null(bytes);
    for (size_t i = 0; i < n * RECORD; i++)
        bytes[i] = (uint8_t)(i % RECORD ? i * 31 / 7 : i / RECORD % 10);
    program_write(path, bytes, n * RECORD);
    free(bytes);
}

static void init_cifar_folder_is_known(void **state)
{
    (void)state;
    assert_int_equal(mkdir("small", 0700), 0);
    init_write_cifar("small/data_batch_1.bin", 32);
    init_write_cifar("small/test_batch.bin", 16);
    program_assert_success(program_line("init small -o cifar.yaml"));
    assert_contains("cifar.yaml", "name: cifar10");
    assert_contains("cifar.yaml", "# 32 training and 16 test samples of (3, 32, 32), 10 classes");
    assert_sound("cifar.yaml");
}

static void init_pack_is_known(void **state)
{
    (void)state;
    fixtures_make_idx("digits", FIXTURES_SOUND);
    program_assert_success(program_line("data pack '{name: mnist, path: digits}' digits.pack -q"));
    program_assert_success(program_line("init digits.pack -o pack.yaml"));
    assert_contains("pack.yaml", "name: pack");
    assert_contains("pack.yaml", "# 64 training and 32 test samples of (1, 28, 28), 10 classes");
    assert_sound("pack.yaml");
}

#define ROWS 40 /* of the array of a split */

/* Rows of `each` floats as numpy.save writes them; values are (7 i) mod 11, from `least` on. */
static void write_npy(const char *path, int each, float least, float step)
{
    static float values[ROWS * 8];
    unsigned char file[128 + sizeof(values)] = "\x93NUMPY\x01";
    const size_t bytes = (size_t)(ROWS * each) * sizeof(*values);

    file[8] = 128 - 10;
    memset(file + 10, ' ', 118);
    snprintf((char *)file + 10, 118,
             "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", ROWS, each);
    file[10 + strlen((char *)file + 10)] = ' ';
    file[127] = '\n';
    for (int i = 0; i < ROWS * each; i++)
        values[i] = least + step * (float)(i * 7 % 11);
    memcpy(file + 128, values, bytes);
    program_write(path, file, 128 + bytes);
}

static void write_arrays(float least, float step)
{
    write_npy("arrays/train.input.npy", 6, -1, 0.2f);
    write_npy("arrays/test.input.npy", 6, -1, 0.2f);
    write_npy("arrays/train.target.npy", 3, least, step);
    write_npy("arrays/test.target.npy", 3, least, step);
}

/* Values to learn, labels that are there or not, and inputs that are far from 0. */
static void init_folder_of_arrays_is_known(void **state)
{
    (void)state;
    assert_int_equal(mkdir("arrays", 0700), 0);
    write_arrays(-2, 0.5f);
    program_assert_success(program_line("init arrays -o values.yaml"));
    assert_contains("values.yaml", "data: {name: arrays, path: 'arrays'}\nloss: mse_loss\n");
    assert_contains("values.yaml", "40 training and 40 test samples of (6), each with 3 values");
    assert_trains("values.yaml");
    write_arrays(0, 0);
    program_assert_success(program_line("init arrays -o flags.yaml"));
    assert_contains("flags.yaml", "loss: bce_with_logits_loss\n");
    assert_sound("flags.yaml");
    write_npy("arrays/train.input.npy", 6, 500, 100);
    program_assert_success(program_line("init arrays -o far.yaml"));
    assert_contains("far.yaml", "mean 999");
    assert_contains("far.yaml", "scale\n# them before they are saved");
    program_assert_success(program_line("data info arrays"));
    program_assert_error(program_line("init arrays -o sized.yaml --size 8"), 2, "--size");
    remove("arrays/test.input.npy");
    program_assert_error(program_line("init arrays -o none.yaml"), 3, "no array test.input");
}

/* Labels, in one file, whatever its name; weights are a file of that kind, too. */
static void init_file_of_tensors_is_known(void **state)
{
    static const char header[] =
        "{\"train.input\":{\"dtype\":\"F32\",\"shape\":[8,2],\"data_offsets\":[0,64]},"
        "\"train.label\":{\"dtype\":\"I32\",\"shape\":[8],\"data_offsets\":[64,96]},"
        "\"test.input\":{\"dtype\":\"F32\",\"shape\":[8,2],\"data_offsets\":[96,160]},"
        "\"test.label\":{\"dtype\":\"I32\",\"shape\":[8],\"data_offsets\":[160,192]}}";
    const size_t n = sizeof(header) - 1;
    unsigned char file[8 + sizeof(header) + 192] = {(unsigned char)(n & 255),
                                                    (unsigned char)(n >> 8)};

    (void)state;
    memcpy(file + 8, header, n);
    for (size_t i = 0; i < 8; i++) /* labels of 0 and 1 */
        file[8 + n + 64 + 4 * i] = file[8 + n + 160 + 4 * i] = (unsigned char)(i % 2);
    program_write("numbers.bin", file, 8 + n + 192);
    program_assert_success(program_line("init numbers.bin -o numbers.yaml"));
    assert_contains("numbers.yaml", "data: {name: arrays, path: 'numbers.bin'}\n\nranks");
    assert_contains("numbers.yaml", "of (2), 2 classes.\n# A class has 4 to 4 training samples.");
    assert_sound("numbers.yaml");
    program_assert_success(program_line("data info numbers.bin"));
    memcpy(file + 8, "{\"layer.input\"", 14);
    program_write("weights.bin", file, 8 + n + 192);
    program_assert_error(program_line("init weights.bin -o weights.yaml"), 3, "is none of");
    program_assert_error(program_line("data info weights.bin"), 3, "is none of");
}

/* Files are known by what is in them, and a config by that it is text. */
static void data_info_takes_files_of_any_name(void **state)
{
    unsigned char tokens[1024 + 2048] = {0};
    const uint32_t head[3] = {20240520, 1, 1024};

    (void)state;
    program_assert_success(
        program_line("data pack '{name: synthetic, shape: [1, 8, 8], samples: 96, classes: 4}' "
                     "packed.bin --quiet"));
    program_assert_success(program_line("data info packed.bin"));
    assert_contains("stdout.txt", "training split of pack");
    memcpy(tokens, head, sizeof(head));
    program_write("some.tokens", tokens, sizeof(tokens));
    program_assert_success(program_line("data info some.tokens --set data.context=8"));
    assert_contains("stdout.txt", "training split of tokens");
    program_assert_success(program_line("init some.tokens -o some.yaml --context 8"));
    assert_sound("some.yaml");
    program_write("damaged.tokens", tokens, sizeof(tokens) - 2);
    program_assert_error(program_line("data info damaged.tokens"), 3, "cut short");
    program_write_text("config", "data: {name: synthetic, shape: [1, 8, 8], samples: 96, "
                                 "classes: 4}\n");
    program_assert_success(program_line("data info config"));
    program_write("zeros", tokens + 64, 256);
    program_assert_error(program_line("data info zeros"), 3, "is none of");
}

static void init_existing_file_is_kept(void **state)
{
    (void)state;
    fixtures_make_idx("digits", FIXTURES_SOUND);
    program_write_text("mine.yaml", "mine\n");
    program_assert_error(program_line("init digits -o mine.yaml"), 2, "would be overwritten");
    assert_contains("mine.yaml", "mine\n");
}

static void init_unknown_data_is_refused(void **state)
{
    (void)state;
    mkdir("empty", 0700);
    program_assert_error(program_line("init empty"), 3, "is none of: a folder of pictures");
    program_assert_error(program_line("init gone"), 3, "there is no such file");
    program_assert_error(program_line("init"), 2, "DATA is missing");
    fixtures_make_idx("digits", FIXTURES_CUT);
    program_assert_error(program_line("init digits"), 3, "digits");
    fixtures_make_idx("digits", FIXTURES_SOUND);
    program_assert_error(program_line("init digits --model nothing"), 2, "nothing");
    program_assert_error(program_line("init digits --batch 1000"), 2, "smaller --batch");
    assert_false(program_exists("train.yaml"));
}

/* Answers typed on a terminal, an empty line for what it proposes. */
static void init_on_terminal_asks(void **state)
{
    static const char answers[] = "digits\nmlp\n16\n\n2\nasked.yaml\n";
    int terminal, status;
    char text[512];
    pid_t pid;

    (void)state;
    fixtures_make_idx("digits", FIXTURES_SOUND);
    pid = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(init_program, "cohort", "init", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(write(terminal, answers, sizeof(answers) - 1), sizeof(answers) - 1);
    while (read(terminal, text, sizeof(text)) > 0)
        continue;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(terminal);
    assert_int_equal(status, 0);
    assert_contains("asked.yaml", "model: mlp\n");
    assert_contains("asked.yaml", "batch: 16 ");
    assert_contains("asked.yaml", "epochs: 2\n");
    assert_trains("asked.yaml");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_idx_files_train),
        cmocka_unit_test(init_normalisation_is_that_of_the_data),
        cmocka_unit_test(init_text_is_known),
        cmocka_unit_test(init_folder_of_tokens_is_known),
        cmocka_unit_test(init_folder_of_pictures_is_known),
        cmocka_unit_test(init_cifar_folder_is_known),
        cmocka_unit_test(init_pack_is_known),
        cmocka_unit_test(init_folder_of_arrays_is_known),
        cmocka_unit_test(init_file_of_tensors_is_known),
        cmocka_unit_test(data_info_takes_files_of_any_name),
        cmocka_unit_test(init_existing_file_is_kept),
        cmocka_unit_test(init_unknown_data_is_refused),
        cmocka_unit_test(init_on_terminal_asks),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    init_program = argv[1];
    init_all = argc > 3 && strcmp(argv[3], "all") == 0;
    failed = cmocka_run_group_tests_name("cli_init", tests, NULL, NULL);
    program_fini();
    return failed;
}
