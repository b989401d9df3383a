/*
 * test_tensorboard.c - event files, parsed independently: every record has its length and
 * checksums, every figure its name, step and value.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "folder.h"
#include "run.h"

typedef struct board_figure {
    char tag[40];
    uint64_t step;
    float value;
} board_figure;

typedef struct board {
    size_t records, n;
    bool has_version;
    uint64_t goes_on; /* step at which a session starts; 0: none */
    board_figure figure[32];
    /* Of the last value that is one: fields 1 to 5, the sum of the buckets, the last limit. */
    double histogram[6], buckets, limit;
    size_t image_bytes, graph_nodes; /* of the last image and graph */
    bool has_config;
} board;

/* Bitwise CRC-32C, most significant bit first on reversed bits, unlike the sink's. */
static uint32_t board_reversed(uint32_t v, int bits)
{
    uint32_t out = 0;

    for (int i = 0; i < bits; i++)
        out |= (v >> i & 1) << (bits - 1 - i);
    return out;
}

static uint32_t board_crc(const uint8_t *byte, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= board_reversed(byte[i], 8) << 24;
        for (int bit = 0; bit < 8; bit++)
            crc = crc << 1 ^ (crc >> 31 ? 0x1edc6f41u : 0);
    }
    return ~board_reversed(crc, 32);
}

static uint64_t board_little(const uint8_t *byte, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)byte[i] << 8 * i;
    return value;
}

static void board_checked(const uint8_t *byte, size_t size, const uint8_t *masked)
{
    const uint32_t crc = (uint32_t)board_little(masked, 4) - 0xa282ead8u;

    assert_int_equal(crc >> 17 | crc << 15, board_crc(byte, size));
}

static uint64_t board_varint(const uint8_t **at)
{
    uint64_t value = 0;

    for (int shift = 0;; shift += 7) {
        const uint8_t byte = *(*at)++;

        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

/* Returns a field's number; `inner` and `size` of a bytes field, `number` of any other. */
static unsigned board_field(const uint8_t **at, const uint8_t **inner, uint64_t *number)
{
    const uint64_t key = board_varint(at);

    *inner = *at;
    *number = 0;
    if ((key & 7) == 2) {
        *number = board_varint(at);
        *inner = *at;
        *at += *number;
    } else if ((key & 7) == 0) {
        *number = board_varint(at);
    } else {
        const size_t size = (key & 7) == 1 ? 8 : 4;

        assert_true((key & 7) == 1 || (key & 7) == 5);
        *number = board_little(*at, size);
        *at += size;
    }
    return (unsigned)(key >> 3);
}

static void board_histogram(board *b, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *inner;
    uint64_t bits;

    b->buckets = 0;
    while (at < end) {
        const unsigned field = board_field(&at, &inner, &bits);
        double number;

        memcpy(&number, &bits, sizeof(number));
        if (field < 6)
            b->histogram[field] = number;
        else if (field == 6)
            b->limit = number;
        else
            b->buckets += number;
    }
}

static void board_graph(board *b, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *inner;
    uint64_t number;

    b->graph_nodes = 0;
    while (at < end)
        b->graph_nodes += board_field(&at, &inner, &number) == 1;
    assert_ptr_equal(at, end);
}

static void board_image(board *b, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *inner;
    uint64_t number;

    while (at < end)
        if (board_field(&at, &inner, &number) == 4)
            b->image_bytes = number;
    assert_ptr_equal(at, end);
}

static void board_value(board *b, const uint8_t *at, const uint8_t *end, uint64_t step)
{
    board_figure *figure = &b->figure[b->n++];
    const uint8_t *inner;
    uint64_t number;

    figure->step = step;
    while (at < end) {
        const unsigned field = board_field(&at, &inner, &number);
        const uint32_t bits = (uint32_t)number;

        if (field == 1)
            snprintf(figure->tag, sizeof(figure->tag), "%.*s", (int)number, (const char *)inner);
        else if (field == 2)
            memcpy(&figure->value, &bits, sizeof(bits));
        else if (field == 4)
            board_image(b, inner, inner + number);
        else if (field == 5)
            board_histogram(b, inner, inner + number);
    }
    b->has_config |= strcmp(figure->tag, "_hparams_/session_start_info") == 0;
    assert_ptr_equal(at, end);
}

static void board_event(board *b, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *inner;
    uint64_t number, step = 0;

    while (at < end) {
        const unsigned field = board_field(&at, &inner, &number);
        const uint8_t *const stop = inner + number;

        if (field == 2)
            step = number;
        else if (field == 3)
            b->has_version = number == 13 && memcmp(inner, "brain.Event:2", 13) == 0;
        else if (field == 4)
            board_graph(b, inner, stop);
        else if (field == 7)
            b->goes_on = step;
        else if (field == 5)
            while (inner < stop) {
                const uint8_t *value;

                assert_int_equal(board_field(&inner, &value, &number), 1);
                board_value(b, value, value + number, step);
            }
    }
    assert_ptr_equal(at, end);
}

/* Reads and removes the only event file of the folder. */
static void board_read(board *b)
{
    DIR *dir = opendir(folder_path("."));
    char path[512] = "";
    uint8_t *byte;
    size_t size;

    memset(b, 0, sizeof(*b));
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (strncmp(e->d_name, "events.out.tfevents.", 20) == 0)
            snprintf(path, sizeof(path), "%s", folder_path(e->d_name));
    closedir(dir);
    assert_int_equal(co_fs_read(&byte, &size, path, 1 << 20, CO_E_DATA), CO_OK);
    for (size_t at = 0; at < size; b->records++) {
        const uint64_t length = board_little(byte + at, 8);

        assert_true(at + 16 + length <= size);
        board_checked(byte + at, 8, byte + at + 8);
        board_checked(byte + at + 12, length, byte + at + 12 + length);
        board_event(b, byte + at + 12, byte + at + 12 + length);
        at += 16 + length;
    }
    co_free(byte);
    unlink(path);
}

static float board_at(const board *b, const char *tag, uint64_t step)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->figure[i].tag, tag) == 0 && b->figure[i].step == step)
            return b->figure[i].value;
    fail_msg("no '%s' at step %llu", tag, (unsigned long long)step);
    return 0;
}

static co_status board_write(uint64_t first_step, co_board_names names)
{
    co_run_info info = run_info;
    co_event event;
    co_sink *sink;
    co_status st = CO_OK;

    info.first_step = first_step;
    CO_TRY(co_sink_tensorboard.open(
        &sink, &info, &(co_sink_options){.run_dir = folder_path("."), .board_names = names}));
    for (uint64_t step = first_step + 1; step <= first_step + 4 && st == CO_OK; step++) {
        event = run_step(step);
        st = sink->ops->event(sink, &event);
    }
    event = run_epoch(first_step / 469, CO_EVENT_EPOCH);
    event.step_seconds = 0.125;
    event.test_samples_per_second = 40000;
    event.test_step_seconds = 0.25;
    if (names == CO_BOARD_COHORT)
        event.train_loss = (double)NAN; /* without samples */
    if (st == CO_OK)
        st = sink->ops->event(sink, &event);
    sink->ops->close(sink);
    return st;
}

static void tensorboard_file_reads_back(void **state)
{
    board b;

    (void)state;
    assert_int_equal(board_crc((const uint8_t *)"123456789", 9), 0xe3069283);
    assert_int_equal(board_write(0, CO_BOARD_COHORT), CO_OK);
    board_read(&b);
    assert_int_equal(b.records, 4); /* version, steps 2 and 4, the epoch */
    assert_true(b.has_version);
    assert_int_equal(b.goes_on, 0);
    assert_true(board_at(&b, "train/loss", 2) == 0.5f);
    assert_true(board_at(&b, "train/loss", 4) == 0.25f);
    assert_true(board_at(&b, "train/lr", 4) == 0.01f);
    assert_true(board_at(&b, "train/gradient_norm", 4) == 1.5f);
    assert_true(board_at(&b, "epoch/test_accuracy", 469) == 0.8612f);
    assert_true(board_at(&b, "epoch/samples_per_second", 469) == 24310.4f);
    for (size_t i = 0; i < b.n; i++)
        assert_string_not_equal(b.figure[i].tag, "epoch/train_loss"); /* NaN */
}

static void tensorboard_imagenet_names_are_used(void **state)
{
    board b;

    (void)state;
    assert_int_equal(board_write(0, CO_BOARD_IMAGENET), CO_OK);
    board_read(&b);
    assert_int_equal(b.records, 2); /* version, the epoch */
    assert_int_equal(b.n, 10);      /* 5 classes or fewer in training: no Top5/train */
    assert_true(board_at(&b, "Throughput/train", 1) == 24310.4f);
    assert_true(board_at(&b, "Throughput/val", 1) == 40000);
    assert_true(board_at(&b, "Time/train", 1) == 0.125f);
    assert_true(board_at(&b, "Time/val", 1) == 0.25f);
    assert_true(board_at(&b, "Loss/train", 1) == 0.5124f);
    assert_true(board_at(&b, "Loss/val", 1) == 0.401f);
    assert_true(board_at(&b, "Top1/train", 1) == 82.31f);
    assert_true(board_at(&b, "Top1/val", 1) == 86.12f);
    assert_true(board_at(&b, "Top5/val", 1) == 99);
    assert_true(board_at(&b, "Lr", 1) == 0.01f);
    /* after step 500, in the second epoch, which is written again */
    assert_int_equal(board_write(500, CO_BOARD_IMAGENET), CO_OK);
    board_read(&b);
    assert_int_equal(b.goes_on, 2);
    assert_true(board_at(&b, "Lr", 2) == 0.01f);
}

static void tensorboard_resumed_run_names_its_step(void **state)
{
    board b;

    (void)state;
    assert_int_equal(board_write(300, CO_BOARD_COHORT), CO_OK);
    board_read(&b);
    assert_int_equal(b.records, 5);
    assert_int_equal(b.goes_on, 301);
    assert_true(board_at(&b, "train/loss", 302) == (float)(1.0 / 302));
}

static void board_show(const co_display *display)
{
    co_sink *sink;

    assert_int_equal(
        co_sink_tensorboard.open(&sink, &run_info, &(co_sink_options){.run_dir = folder_path(".")}),
        CO_OK);
    assert_int_equal(sink->ops->show(sink, display), CO_OK);
    sink->ops->close(sink);
}

static void tensorboard_histogram_counts_what_is_finite(void **state)
{
    const float value[] = {-1, 0, 0.5f, 3, (float)NAN, (float)INFINITY};
    const float equal[] = {2, 2, 2}, none[] = {(float)NAN};
    co_display display = {
        .kind = CO_DISPLAY_VALUES, .step = 7, .name = "weights/a", .value = value, .n = 6};
    board b;

    (void)state;
    board_show(&display);
    board_read(&b);
    assert_string_equal(b.figure[0].tag, "weights/a");
    assert_int_equal(b.figure[0].step, 7);
    assert_true(b.histogram[1] == -1 && b.histogram[2] == 3 && b.histogram[3] == 4);
    assert_true(b.histogram[4] == 2.5 && b.histogram[5] == 10.25);
    assert_true(b.buckets == 4 && b.limit == 3);
    display.value = equal;
    display.n = 3;
    board_show(&display);
    board_read(&b);
    assert_true(b.buckets == 3 && b.limit > 2);
    display.value = none;
    display.n = 1;
    board_show(&display);
    board_read(&b);
    assert_int_equal(b.records, 1);
}

static void tensorboard_network_image_and_config_read_back(void **state)
{
    static const int64_t dim[] = {1, 3, 8, 8};
    static const char *const in[] = {"input"};
    const co_display_node node[] = {{"input", NULL, NULL, 0, dim, 4},
                                    {"layer1.0.conv1", "conv2d", in, 1, dim, 4}};
    const co_display_key key[] = {{"batch", "64"}, {"model", "resnet9"}};
    uint8_t png[5000] = {0}; /* more than the first memory of a message */
    co_display display = {.kind = CO_DISPLAY_NETWORK, .node = node, .n = 2};
    board b;

    (void)state;
    board_show(&display);
    board_read(&b);
    assert_int_equal(b.graph_nodes, 2);
    display = (co_display){.kind = CO_DISPLAY_CONFIG, .key = key, .n = 2};
    board_show(&display);
    board_read(&b);
    assert_true(b.has_config);
    display = (co_display){.kind = CO_DISPLAY_IMAGE, .name = "a", .png = png, .size = sizeof(png)};
    board_show(&display);
    board_read(&b);
    assert_int_equal(b.image_bytes, sizeof(png));
}

/* What fits is complete. */
static void tensorboard_full_disk_leaves_whole_records(void **state)
{
    struct rlimit old, small;
    co_status st;
    board b;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 250;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    st = board_write(0, CO_BOARD_COHORT);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(st, CO_E_IO);
    assert_non_null(strstr(co_error_message(), "events.out.tfevents."));
    board_read(&b);
    assert_int_equal(b.records, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensorboard_file_reads_back),
        cmocka_unit_test(tensorboard_imagenet_names_are_used),
        cmocka_unit_test(tensorboard_resumed_run_names_its_step),
        cmocka_unit_test(tensorboard_histogram_counts_what_is_finite),
        cmocka_unit_test(tensorboard_network_image_and_config_read_back),
        cmocka_unit_test(tensorboard_full_disk_leaves_whole_records),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
