/*
 * test_predict.c - `cohort predict`: images have the logits that `cohort eval` has of them, to the
 * bit, and the names of the classes of the run; what is no image is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "bits.h"
#include "data/pictures.h"
#include "program.h"

#define SIDE    28
#define TEST    290 /* a full batch of an evaluation on one rank, and a shorter one */
#define CLASSES 10
#define HEADER  128 /* bytes of the .npy file's */

static picture digit(unsigned i)
{
    return (picture){.width = SIDE, .height = SIDE, .channels = 1, .seed = i * 31 + 7};
}

static void put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* MNIST's two files of a split, of the first `n` pictures. */
static void make_split(const char *images, const char *labels, unsigned n)
{
    const size_t size = (size_t)SIDE * SIDE;
    uint8_t *image = calloc(16 + n * size, 1), *label = calloc(8 + n, 1);

    assert_true(image && label);
    put_u32(image, 0x803);
    put_u32(image + 4, n);
    put_u32(image + 8, SIDE);
    put_u32(image + 12, SIDE);
    put_u32(label, 0x801);
    put_u32(label + 4, n);
    for (unsigned i = 0; i < n; i++) {
        const picture p = digit(i);

        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                image[16 + i * size + (size_t)(y * SIDE + x)] = picture_pixel(&p, 0, y, x);
        label[8 + i] = (uint8_t)(i % CLASSES);
    }
    program_write(images, image, 16 + n * size);
    program_write(labels, label, 8 + n);
    free(image);
    free(label);
}

static void put_png(const char *path, const picture *p)
{
    size_t size;
    uint8_t *bytes = picture_png(&size, p);

    program_write(path, bytes, size);
    free(bytes);
}

/* The run `digits` on a small MNIST, its logits by all kernels and by Cohort's own, and the folder
   `found` of its test images; then the data are gone. */
static int predict_setup(void **state)
{
    char path[64];

    (void)state;
    mkdir("set", 0700);
    make_split("set/train-images-idx3-ubyte", "set/train-labels-idx1-ubyte", 128);
    make_split("set/t10k-images-idx3-ubyte", "set/t10k-labels-idx1-ubyte", TEST);
    program_write_text("digits.yaml",
                       "model: mnist-net\ndata: {name: mnist, path: set, normalize: mnist}\n"
                       "batch: 32\nepochs: 1\noptimizer: {name: sgd, lr: 0.1}\n");
    program_assert_success(program_line("train digits.yaml --run-dir digits --quiet"));
    program_assert_success(program_line("eval digits -n 1 --logits all.npy"));
    program_assert_success(program_line("eval digits -n 1 --set backend=cpu --logits own.npy"));
    mkdir("found", 0700);
    mkdir("found/more", 0700);
    for (unsigned i = 0; i < TEST; i++) {
        const picture p = digit(i);

        snprintf(path, sizeof(path), i < 100 ? "found/%03u.png" : "found/more/%03u.png", i);
        put_png(path, &p);
    }
    program_remove("set");
    return 0;
}

/* The object on the line of an image in the output. */
static json_t *said_of(const char *out, const char *image)
{
    for (const char *line = out; *line; line += strcspn(line, "\n") + 1) {
        json_t *object = json_loadb(line, strcspn(line, "\n"), 0, NULL);
        const char *name = json_string_value(json_object_get(object, "image"));

        if (name && strcmp(name, image) == 0)
            return object;
        json_decref(object);
    }
    fail_msg("no line of %s in: %s", image, out);
    return NULL;
}

/* How many of the logits of an image are not those of the evaluation, bit for bit. */
static int count_other_logits(const char *out, const char *npy, const char *image, unsigned sample)
{
    json_t *object = said_of(out, image);
    const json_t *top = json_object_get(object, "top");
    char *file = program_read(npy);
    int other = 0;

    assert_non_null(file);
    assert_int_equal(json_array_size(top), CLASSES);
    for (size_t k = 0; k < CLASSES; k++) {
        const json_t *item = json_array_get(top, k);
        const json_int_t label = json_integer_value(json_object_get(item, "label"));
        const float logit = (float)json_real_value(json_object_get(item, "logit"));

        other += !bits_are_same(
            &logit, file + HEADER + 4 * ((size_t)sample * CLASSES + (size_t)label), sizeof(logit));
    }
    free(file);
    json_decref(object);
    return other;
}

/* The images of the test split in its order, which is that of their names. */
static void predict_logits_equal_those_of_eval(void **state)
{
    const program_result *r = program_line("predict digits found --json --top 10");
    char path[64];

    (void)state;
    program_assert_success(r);
    for (unsigned i = 0; i < TEST; i++) {
        snprintf(path, sizeof(path), i < 100 ? "found/%03u.png" : "found/more/%03u.png", i);
        assert_int_equal(count_other_logits(r->out, "all.npy", path, i), 0);
    }
    assert_int_equal(count_other_logits(r->out, "all.npy", "found/003.png", 4), CLASSES);
}

/* Images of the last batch of an evaluation, which is shorter, in the first one here. */
static void predict_other_order_has_the_same_logits(void **state)
{
    const program_result *r =
        program_line("predict digits found/more found/007.png --json --top 10");
    char path[64];

    (void)state;
    program_assert_success(r);
    for (unsigned i = 100; i < TEST; i++) {
        snprintf(path, sizeof(path), "found/more/%03u.png", i);
        assert_int_equal(count_other_logits(r->out, "all.npy", path, i), 0);
    }
    assert_int_equal(count_other_logits(r->out, "all.npy", "found/007.png", 7), 0);
}

/* Cohort's own kernels round an image the same at any place of a batch. */
static void predict_alone_equals_eval_by_own_kernels(void **state)
{
    const program_result *r = program_line("predict digits found/more/249.png found/077.png "
                                           "--json --top 10 --set backend=cpu");

    (void)state;
    program_assert_success(r);
    assert_int_equal(count_other_logits(r->out, "own.npy", "found/077.png", 77), 0);
    assert_int_equal(count_other_logits(r->out, "own.npy", "found/more/249.png", 249), 0);
    program_assert_success(program_line("predict digits found/003.png --quick"));
}

static void predict_probabilities_add_up_and_descend(void **state)
{
    const program_result *r = program_line("predict digits found/000.png --json --top 99");
    json_t *object = said_of(r->out, "found/000.png");
    double sum = 0, before = 1;

    (void)state;
    program_assert_success(r);
    for (size_t k = 0; k < CLASSES; k++) {
        const json_t *item = json_array_get(json_object_get(object, "top"), k);
        const double p = json_real_value(json_object_get(item, "probability"));

        assert_true(p > 0 && p <= before);
        before = p;
        sum += p;
    }
    assert_true(sum > 1 - 1e-6 && sum < 1 + 1e-6);
    json_decref(object);
}

static void predict_list_on_input_gives_a_row_each(void **state)
{
    const program_options from_list = {
        .before = {"sh", "-c", "exec \"$@\" <list", "sh"},
    };
    const char *const args[] = {"predict", "digits", "-", NULL};
    const program_result *r;

    (void)state;
    program_write_text("list", "found/003.png\n\nfound/more\n");
    r = program_run(args, &from_list);
    program_assert_success(r);
    assert_true(strncmp(r->out, "image ", 6) == 0);
    assert_non_null(strstr(r->out, "\nfound/003.png "));
    assert_non_null(strstr(r->out, "\nfound/more/249.png "));
    assert_null(strstr(r->out, "found/000.png"));
}

/* Names of classes come from the folders that were trained on, which are gone. */
static void predict_folder_names_are_kept(void **state)
{
    static const char *const folders[] = {"pets",           "pets/train",     "pets/val",
                                          "pets/train/cat", "pets/train/dog", "pets/val/cat",
                                          "pets/val/dog"};
    const program_result *r;
    char path[64];

    (void)state;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        mkdir(folders[i], 0700);
    for (unsigned i = 0; i < 8; i++) {
        const picture p = {.width = 30, .height = 20, .channels = 3, .seed = i};

        snprintf(path, sizeof(path), "pets/%s/%s/%u.png", i < 4 ? "train" : "val",
                 i % 2 ? "cat" : "dog", i);
        put_png(path, &p);
    }
    program_write_text("pets.yaml", "model: {name: mlp, hidden: [8]}\nbatch: 4\nepochs: 1\n"
                                    "data: {name: imagefolder, path: pets, resize: 16}\n");
    program_assert_success(program_line("train pets.yaml --run-dir pets-run --quiet"));
    rename("pets/val/cat/5.png", "mine.png");
    program_remove("pets");
    r = program_line("predict pets-run mine.png --top 2");
    program_assert_success(r);
    assert_true(strstr(r->out, " cat ") && strstr(r->out, " dog "));
    program_assert_error(program_line("predict pets-run mine.png --set data.resize=8"), 3,
                         "mine.png: becomes a sample of (3, 8, 8)");
}

static void predict_other_size_is_resampled(void **state)
{
    picture p = digit(3);

    (void)state;
    p.width = 3 * SIDE;
    p.height = 2 * SIDE;
    p.channels = 3;
    put_png("large.png", &p);
    program_assert_success(program_line("predict digits large.png"));
}

static void predict_names_beyond_ascii_are_aligned(void **state)
{
    const picture p = digit(3);
    const program_result *r;

    (void)state;
    put_png("\xc3\xa9.png", &p);
    put_png("eee.png", &p);
    r = program_line("predict digits \xc3\xa9.png eee.png");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "\n\xc3\xa9.png    "));
    assert_non_null(strstr(r->out, "\neee.png  "));
}

/* The run's weights, each of them as large as floats nearly are. */
static void put_huge_weights(const char *path)
{
    const float huge = 1e38F;
    struct stat info;
    char *file = program_read("digits/final.safetensors");
    uint64_t header;

    assert_non_null(file);
    assert_int_equal(stat("digits/final.safetensors", &info), 0);
    memcpy(&header, file, sizeof(header));
    for (size_t at = 8 + header; at < (size_t)info.st_size; at += sizeof(huge))
        memcpy(file + at, &huge, sizeof(huge));
    program_write(path, file, (size_t)info.st_size);
    free(file);
}

static void predict_overflow_names_no_class(void **state)
{
    const program_result *r;
    json_t *object;

    (void)state;
    put_huge_weights("huge.safetensors");
    r = program_line("predict huge.safetensors found/000.png found/001.png -c digits/config.yaml");
    program_assert_error(r, 3, "found/000.png and others: what the network gives overflows");
    assert_non_null(strstr(r->out, "\nfound/000.png  -      -\n"));
    assert_null(strstr(r->err, "test loss"));
    r = program_line("predict huge.safetensors found/000.png -c digits/config.yaml --json");
    program_assert_error(r, 3, "found/000.png: what the network gives overflows");
    object = said_of(r->out, "found/000.png");
    assert_int_equal(json_array_size(json_object_get(object, "top")), 0);
    json_decref(object);
}

static void predict_bad_image_is_named(void **state)
{
    (void)state;
    mkdir("nothing", 0700);
    program_write_text("page.png", "<html>");
    program_assert_error(program_line("predict digits none.png"), 3, "none.png: No such file");
    program_assert_error(program_line("predict digits page.png"), 3,
                         "; repair it, or leave it out");
    program_assert_error(program_line("predict digits found page.png"), 3, "page.png: ");
    program_assert_error(program_line("predict digits nothing"), 3, "nothing: holds no images");
    program_assert_error(program_line("predict digits"), 2, "IMAGE... is missing");
    program_write_text("digits/data.json", "{}");
    program_assert_error(program_line("predict digits found"), 3, "digits/data.json: is not what");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict_logits_equal_those_of_eval),
        cmocka_unit_test(predict_other_order_has_the_same_logits),
        cmocka_unit_test(predict_alone_equals_eval_by_own_kernels),
        cmocka_unit_test(predict_probabilities_add_up_and_descend),
        cmocka_unit_test(predict_list_on_input_gives_a_row_each),
        cmocka_unit_test(predict_folder_names_are_kept),
        cmocka_unit_test(predict_other_size_is_resampled),
        cmocka_unit_test(predict_names_beyond_ascii_are_aligned),
        cmocka_unit_test(predict_overflow_names_no_class),
        cmocka_unit_test(predict_bad_image_is_named), /* last: damages the run */
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests_name("cli_predict", tests, predict_setup, NULL);
    program_fini();
    return failed;
}
