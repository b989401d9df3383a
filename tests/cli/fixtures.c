/* fixtures.c - IDX files, valid and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/fixtures.h"
#include "cli/program.h"

#define FIXTURES_PIXELS ((size_t)28 * 28)
#define FIXTURES_TRAIN  64
#define FIXTURES_TEST   32

static size_t fixtures_put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
    return 4;
}

/* Images whose brightness encodes the label, so that a network can learn them. */
static size_t fixtures_fill_images(uint8_t *out, uint32_t n)
{
    size_t used = fixtures_put_u32(out, 0x803);

    used += fixtures_put_u32(out + used, n);
    used += fixtures_put_u32(out + used, 28);
    used += fixtures_put_u32(out + used, 28);
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < FIXTURES_PIXELS; k++)
            out[used++] = (uint8_t)(i % 10 * 20 + (k * 7 + i) % 20);
    return used;
}

static size_t fixtures_fill_labels(uint8_t *out, uint32_t n)
{
    size_t used = fixtures_put_u32(out, 0x801);

    used += fixtures_put_u32(out + used, n);
    for (uint32_t i = 0; i < n; i++)
        out[used++] = (uint8_t)(i % 10);
    return used;
}

static void fixtures_write(const char *folder, const char *file, const uint8_t *bytes, size_t n)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    program_write(path, bytes, n);
}

/* Returns the compressed size; `out` has room for n + 100 bytes. */
static size_t fixtures_gzip(uint8_t *out, const uint8_t *bytes, size_t n)
{
    struct libdeflate_compressor *gzip = libdeflate_alloc_compressor(6);
    size_t packed;

    assert_non_null(gzip);
    packed = libdeflate_gzip_compress(gzip, bytes, n, out, n + 100);
    libdeflate_free_compressor(gzip);
    assert_true(packed > 100);
    return packed;
}

static void fixtures_write_packed(const char *folder, const uint8_t *bytes, size_t n,
                                  fixtures_damage damage)
{
    uint8_t *packed = malloc(n + 100);
    size_t size;

    assert_non_null(packed);
    size = fixtures_gzip(packed, bytes, n);
    if (damage == FIXTURES_GZIP_CUT)
        size -= 20;
    if (damage == FIXTURES_GZIP_DAMAGED)
        packed[size / 2] ^= 0x55;
    if (damage == FIXTURES_GZIP_LYING)
        memset(packed + size - 4, 0xff, 4);
    fixtures_write(folder, "train-images-idx3-ubyte.gz", packed, size);
    free(packed);
}

static void fixtures_write_train(const char *folder, fixtures_damage damage)
{
    uint8_t *bytes = calloc(1, 32 + FIXTURES_TRAIN * FIXTURES_PIXELS);
    size_t n;

    assert_non_null(bytes);
    n = fixtures_fill_images(bytes, FIXTURES_TRAIN);
    if (damage == FIXTURES_EMPTY)
        n = 0;
    if (damage == FIXTURES_CUT_HEADER)
        n = 7;
    if (damage == FIXTURES_CUT)
        n -= 100;
    if (damage == FIXTURES_LONG)
        n++;
    if (damage == FIXTURES_OTHER_MAGIC)
        bytes[3] = 1;
    if (damage == FIXTURES_OTHER_TYPE)
        bytes[2] = 0x0d;
    if (damage == FIXTURES_NOT_IDX)
        n = (size_t)sprintf((char *)bytes, "<html><body>404 not found</body></html>");
    if (damage == FIXTURES_HUGE_COUNT)
        memset(bytes + 4, 0xff, 4);
    if (damage == FIXTURES_HUGE_IMAGE)
        memset(bytes + 4, 0xff, 12);
    if (damage >= FIXTURES_GZIP && damage <= FIXTURES_GZIP_LYING)
        fixtures_write_packed(folder, bytes, n, damage);
    else if (damage != FIXTURES_MISSING && damage != FIXTURES_FOLDER)
        fixtures_write(folder, "train-images-idx3-ubyte", bytes, n);
    free(bytes);
}

void fixtures_make_idx(const char *folder, fixtures_damage damage)
{
    uint8_t labels[16 + FIXTURES_TRAIN], *bytes = calloc(1, 32 + FIXTURES_TEST * FIXTURES_PIXELS);
    char path[512];
    size_t n;

    assert_non_null(bytes);
    program_remove(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    fixtures_write_train(folder, damage);
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte", folder);
    if (damage == FIXTURES_FOLDER)
        assert_int_equal(mkdir(path, 0700), 0);
    n = fixtures_fill_labels(labels, damage == FIXTURES_FEWER_LABELS ? 10 : FIXTURES_TRAIN);
    if (damage == FIXTURES_BAD_LABEL)
        labels[n - 1] = 10;
    fixtures_write(folder, "train-labels-idx1-ubyte", labels, n);
    n = fixtures_fill_images(bytes, FIXTURES_TEST);
    fixtures_write(folder, "t10k-images-idx3-ubyte", bytes, n);
    n = fixtures_fill_labels(labels, FIXTURES_TEST);
    fixtures_write(folder, "t10k-labels-idx1-ubyte", labels, n);
    free(bytes);
}
