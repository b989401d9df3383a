/*
 * test_images.c - folders of images and packed files: a pack trains to the same weights as its
 * source, and bad files give exit code 3 and their name.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "data/pictures.h"
#include "program.h"

#define SYNTHETIC "{name: synthetic, shape: [1, 8, 8], samples: 96, classes: 4}"
#define FOLDER    "{name: imagefolder, path: set, resize: 16}"

static void put_picture(const char *name, int side, unsigned seed)
{
    const picture p = {.width = side + 10, .height = side, .channels = 3, .seed = seed};
    size_t size;
    uint8_t *bytes = picture_jpeg(&size, &p);

    program_write(name, bytes, size);
    free(bytes);
}

static void make_folder(void)
{
    static const char *const folders[] = {"set",         "set/train", "set/val",  "set/train/a",
                                          "set/train/b", "set/val/a", "set/val/b"};
    char name[64];

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        mkdir(folders[i], 0777);
    for (unsigned i = 0; i < 12; i++) {
        snprintf(name, sizeof(name), "set/%s/%s/%u.jpg", i % 3 ? "train" : "val", i % 2 ? "a" : "b",
                 i);
        put_picture(name, 20 + (int)i, i);
    }
}

static void train(const char *data, const char *dir)
{
    char line[512];

    snprintf(line, sizeof(line),
             "train net.yaml -n 2 --run-dir %s --set 'data=%s' --set loader.threads=1", dir, data);
    program_assert_success(program_line(line));
}

static void expect_same_weights(const char *data, const char *pack)
{
    char a[65], b[65];

    train(data, "one");
    train(pack, "other");
    program_weights(a, "one");
    program_weights(b, "other");
    assert_string_equal(a, b);
    program_remove("one");
    program_remove("other");
}

static void pack_gives_same_weights_as_source(void **state)
{
    (void)state;
    program_assert_success(program_line("data pack '" SYNTHETIC "' made.pack"));
    expect_same_weights(SYNTHETIC, "{name: pack, path: made.pack}");
    program_assert_success(program_line("data pack '" FOLDER "' files.pack --quiet"));
    expect_same_weights(FOLDER, "{name: pack, path: files.pack, resize: 16}");
    program_assert_success(program_line("data pack '" FOLDER "' pixels.pack --decode 16"));
    expect_same_weights(FOLDER, "{name: pack, path: pixels.pack}");
}

static void expect_said(const char *line, const char *words)
{
    const program_result *r = program_line(line);

    program_assert_success(r);
    if (!strstr(r->out, words))
        fail_msg("%s: no '%s' in: %s", line, words, r->out);
}

static void shard_gives_same_weights_as_source(void **state)
{
    (void)state;
    program_assert_success(program_line("data shard '" FOLDER "' sharded --shards 3"));
    expect_same_weights(FOLDER, "{name: tar, path: sharded, resize: 16}");
    program_assert_success(program_line("data shard '" SYNTHETIC "' made-shards --quiet"));
    expect_same_weights(SYNTHETIC, "{name: tar, path: made-shards, channels: 1}");
    expect_said("data info sharded --set data.resize=16", "training split of tar\n");
    expect_said("init sharded -o sharded.yaml --yes", "sharded.yaml: ");
    program_assert_error(program_line("data shard '" FOLDER "' sharded"), 2, "sharded: is there");
    program_assert_error(program_line("data shard synthetic-tokens tokens"), 2, "holds no images");
    assert_false(program_exists("tokens"));
    assert_false(program_exists("tokens.part"));
    remove("sharded/train/train-000001.tar");
    program_assert_error(program_line("data info '{name: tar, path: sharded, resize: 16}'"), 3,
                         "train-000001.tar");
}

static void pack_shards_give_same_weights_as_source(void **state)
{
    (void)state;
    program_assert_success(program_line("data pack '" SYNTHETIC "' packs --shards 3"));
    expect_same_weights(SYNTHETIC, "{name: pack, path: packs}");
    program_assert_success(program_line("data pack '" FOLDER "' file-packs --shards 2 -q"));
    expect_same_weights(FOLDER, "{name: pack, path: file-packs, resize: 16}");
    expect_said("data info packs", "training split of pack\n");
    program_assert_error(program_line("data pack '" FOLDER "' packs --shards 3"), 2,
                         "packs: is there");
    program_assert_error(program_line("data info '{name: tar, path: packs, resize: 16}'"), 3,
                         "packed files, which data: {name: pack} reads");
    remove("packs/train/train-000001.pack");
    program_assert_error(program_line("data info '{name: pack, path: packs}'"), 3,
                         "train-000001.pack");
    remove("packs/val/shards.index");
    program_assert_error(program_line("data info '{name: pack, path: packs, train: val}'"), 3,
                         "shards.index: is not there; `cohort data pack --shards`");
}

static void pack_prints_count_and_size(void **state)
{
    const program_result *r = program_line("data pack '" FOLDER "' said.pack");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "said.pack: 12 samples, "));
    r = program_line("data info '{name: pack, path: said.pack, resize: 16}'");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "stored as image files"));
    r = program_line("data pack '" FOLDER "' said.pack --quiet --only test");
    program_assert_success(r);
    assert_string_equal(r->out, "");
    program_assert_error(program_line("data info '{name: pack, path: said.pack, resize: 16}'"), 3,
                         "said.pack: holds no training split");
}

/* Names of folders are untrusted: they may not break the line or control the terminal. */
static void data_info_escapes_class_names(void **state)
{
    static const char *const classes[] = {"\x1b[2Ja\nb", "exe\xe2\x80\xaegpj\xe2\x80\xac",
                                          "K\xc3\xa4se"};
    const program_result *r;

    (void)state;
    mkdir("odd", 0700);
    for (int split = 0; split < 2; split++) {
        char path[256];

        snprintf(path, sizeof(path), "odd/%s", split ? "val" : "train");
        mkdir(path, 0700);
        for (unsigned i = 0; i < 3; i++) {
            snprintf(path, sizeof(path), "odd/%s/%s", split ? "val" : "train", classes[i]);
            mkdir(path, 0700);
            stpcpy(strchr(path, '\0'), "/0.jpg");
            put_picture(path, 20, i);
        }
    }
    r = program_line("data info '{name: imagefolder, path: odd, resize: 16}'");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "  \\x1b[2Ja\\nb\n"));
    assert_non_null(strstr(r->out, "  exe\\u202egpj\\u202c\n"));
    assert_non_null(strstr(r->out, "  K\xc3\xa4se\n"));
    assert_null(strchr(r->out, '\x1b'));
    program_write_text("odd/train/\x1b[2Ja\nb/1.jpg", "no picture");
    r = program_line("data info '{name: imagefolder, path: odd, resize: 16}'");
    program_assert_error(r, 3, "\\x1b[2Ja\\nb/1.jpg");
    assert_null(strchr(r->err, '\x1b'));
}

static void pack_damaged_file_is_refused(void **state)
{
    char *bytes;

    (void)state;
    program_assert_success(program_line("data pack '" SYNTHETIC "' bad.pack"));
    bytes = program_read("bad.pack");
    bytes[1000] = (char)(bytes[1000] ^ 1);
    program_write("bad.pack", bytes, 5000);
    program_assert_error(program_line("data info '{name: pack, path: bad.pack}'"), 3,
                         "bad.pack: cut short");
    free(bytes);
    program_assert_error(program_line("data info '{name: pack, path: none.pack}'"), 3, "none.pack");
    program_assert_error(program_line("data info pack"), 2, "data.path");
    program_assert_error(program_line("data pack '" SYNTHETIC "' no.pack --resize 8"), 2,
                         "--resize");
    program_assert_error(program_line("data pack '" SYNTHETIC "' no.pack --only both"), 2,
                         "--only takes train or test");
    program_assert_error(program_line("data pack '" SYNTHETIC "' nowhere/no.pack"), 1, "nowhere");
    assert_false(program_exists("no.pack"));
}

/* A full disk leaves neither the file nor a part of it. */
static void pack_full_disk_leaves_no_file(void **state)
{
    const char *args[] = {"data", "pack", SYNTHETIC, "full.pack", NULL};
    const program_options full = {.max_file_bytes = 4096};
    const int before = program_count_entries(".");

    (void)state;
    program_assert_error(program_run(args, &full), 1, "full.pack");
    assert_int_equal(program_count_entries("."), before);
}

static void train_bad_image_is_named(void **state)
{
    const program_result *r;

    (void)state;
    program_write_text("set/train/a/99.jpg", "<html>not found</html>");
    r = program_line("data info '" FOLDER "'");
    program_assert_error(r, 3, "set/train/a/99.jpg: neither JPEG nor PNG");
    r = program_line("train net.yaml -n 2 --run-dir run --set 'data=" FOLDER "'");
    program_assert_error(r, 3, "set/train/a/99.jpg: neither JPEG nor PNG");
    r = program_line("data pack '" FOLDER "' bad2.pack --decode 16");
    program_assert_error(r, 3, "set/train/a/99.jpg: neither JPEG nor PNG");
    assert_false(program_exists("bad2.pack"));
    program_remove("set/train/a/99.jpg");
    mkdir("set/train/empty", 0777);
    program_assert_error(program_line("data info '" FOLDER "'"), 3,
                         "set/train/empty: a class without images");
    program_remove("set/train/empty");
    r = program_line("data info '{name: imagefolder, path: set}'");
    program_assert_error(r, 3, "resize");
}

static void expect_text(const char *path, const char *words)
{
    char *text = program_read(path);

    assert_non_null(text);
    if (!strstr(text, words))
        fail_msg("%s does not say '%s'", path, words);
    free(text);
}

#define SKIPPING "{name: imagefolder, path: set, resize: 16, on_bad_sample: skip}"
#define TRAIN    "train net.yaml -n 2 --run-dir run --set 'data="

/* Only bad.jpg in training and bad.png in the test split: one of each in both epochs. */
static void train_skip_replaces_bad_images(void **state)
{
    char name[64];

    (void)state;
    program_write_text("set/train/a/bad.jpg", "no image");
    program_write_text("set/val/b/bad.png", "no image");
    program_remove("run");
    program_assert_error(program_line(TRAIN FOLDER "'"), 3, "on_bad_sample: skip");
    program_remove("run");
    program_assert_success(program_line(TRAIN SKIPPING "' --set epochs=2"));
    expect_text("stdout.txt", "2 bad samples skipped");
    expect_text("stderr.txt", "set/train/a/bad.jpg: neither JPEG nor PNG");
    expect_text("stderr.txt", "set/val/b/bad.png: neither JPEG nor PNG");
    expect_text("run/summary.json", "\"bad_samples\": 2");
    program_assert_error(program_line("data pack '" SKIPPING "' bad.pack --decode 16"), 3,
                         "bad.jpg: neither JPEG nor PNG: it begins with 6e 6f 20 69; repair it or "
                         "leave it out");
    program_assert_success(program_line("explain run --json"));
    expect_text("stdout.txt", "\"data_not_looked_at\": \"\"");
    expect_text("stdout.txt", "\"weights_not_looked_at\": \"\"");
    program_assert_success(program_line("data info '" SKIPPING "'"));
    expect_text("stdout.txt", "bad sample       set/train/a/bad.jpg: neither JPEG nor PNG");
    expect_text("stdout.txt", "bad samples      1");
    for (int i = 1; i <= 120; i++) {
        snprintf(name, sizeof(name), "set/train/a/bad%d.jpg", i);
        program_write_text(name, "no image");
    }
    program_assert_success(program_line("data info '" SKIPPING "'"));
    expect_text("stdout.txt", "bad samples      121");
    for (int i = 1; i <= 120; i++) {
        snprintf(name, sizeof(name), "set/train/a/bad%d.jpg: neither", i);
        expect_text("stdout.txt", name);
        *strchr(name, ':') = '\0';
        program_remove(name);
    }
    program_remove("run");
    program_remove("set/train/a/bad.jpg");
    program_remove("set/val/b/bad.png");
}

/* "bad_samples": N */
static int bad_samples(const char *dir)
{
    char path[64], *text, *at;
    int n;

    snprintf(path, sizeof(path), "%s/summary.json", dir);
    text = program_read(path);
    assert_non_null(text);
    at = strstr(text, "\"bad_samples\": ");
    assert_non_null(at);
    n = atoi(at + strlen("\"bad_samples\": "));
    free(text);
    return n;
}

/* More than the samples after the interruption, so some are before it, whatever the order; on as
 * many ranks as before it, and on fewer. */
static void resume_counts_bad_images_of_the_whole_epoch(void **state)
{
    static const char *const ranks[] = {"-n 2", "-n 1"};
    char name[64], line[512];
    int whole;

    (void)state;
    for (int i = 1; i <= 9; i++) {
        snprintf(name, sizeof(name), "set/train/%c/bad%d.jpg", "ab"[i % 2], i);
        program_write_text(name, "no image");
    }
    program_assert_success(program_line(TRAIN SKIPPING "' --quiet"));
    whole = bad_samples("run");
    assert_int_equal(whole, 9);
    for (int k = 0; k < 2; k++) {
        program_remove("run");
        program_assert_success(program_line(TRAIN SKIPPING "' --quiet --set max_steps=3"));
        assert_in_range(bad_samples("run"), 1, whole - 1);
        snprintf(line, sizeof(line), "train --resume --run-dir run %s --quiet --set max_steps=0",
                 ranks[k]);
        program_assert_success(program_line(line));
        assert_int_equal(bad_samples("run"), whole);
    }
    program_remove("run");
    for (int i = 1; i <= 9; i++) {
        snprintf(name, sizeof(name), "set/train/%c/bad%d.jpg", "ab"[i % 2], i);
        program_remove(name);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_gives_same_weights_as_source),
        cmocka_unit_test(shard_gives_same_weights_as_source),
        cmocka_unit_test(pack_shards_give_same_weights_as_source),
        cmocka_unit_test(pack_prints_count_and_size),
        cmocka_unit_test(data_info_escapes_class_names),
        cmocka_unit_test(pack_damaged_file_is_refused),
        cmocka_unit_test(pack_full_disk_leaves_no_file),
        cmocka_unit_test(train_bad_image_is_named),
        cmocka_unit_test(train_skip_replaces_bad_images),
        cmocka_unit_test(resume_counts_bad_images_of_the_whole_epoch),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    make_folder();
    program_write_text("net.yaml", "model: {name: mlp, hidden: [8]}\n"
                                   "batch: 4\nepochs: 1\noptimizer: {name: sgd, lr: 0.01}\n"
                                   "shards: 2\ndata: synthetic\n");
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
