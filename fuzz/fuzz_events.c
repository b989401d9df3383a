/*
 * fuzz_events.c - the reader of metrics.jsonl, of a file that grows, over any bytes.
 *
 * Read in two parts it holds what it holds when it is read at once, and never more rows than it
 * may.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/page_events.h"

#define MOST 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/cohort-fuzz-XXXXXX";

static void fuzz_path(char out[64])
{
    snprintf(out, 64, "%s/metrics.jsonl", folder);
}

static void fuzz_end(void)
{
    char path[64];

    fuzz_path(path);
    unlink(path);
    rmdir(folder);
}

static void fuzz_write(const char *mode, const uint8_t *data, size_t size)
{
    char path[64];
    FILE *out;

    fuzz_path(path);
    out = fopen(path, mode);
    if (!out || fwrite(data, 1, size, out) != size || fclose(out) != 0)
        abort();
}

static co_status fuzz_read(co_page_events *events)
{
    const co_status st = co_page_events_read(events, folder, false);

    if (events->steps.rows >= 2 * MOST || events->epochs.rows >= 2 * MOST ||
        json_array_size(events->list) > CO_PAGE_MAX_EVENTS)
        abort();
    return st;
}

static bool fuzz_is_same(const co_page_table *a, const co_page_table *b)
{
    const size_t bytes = a->rows * a->columns * sizeof(*a->value);

    return a->rows == b->rows && (bytes == 0 || memcmp(a->value, b->value, bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool made;
    co_page_events parts, whole;
    co_status st;

    if (!made && !mkdtemp(folder))
        abort();
    if (!made)
        atexit(fuzz_end);
    made = true;
    if (co_page_events_init(&parts, MOST) != CO_OK || co_page_events_init(&whole, MOST) != CO_OK)
        abort();
    fuzz_write("w", data, size / 2);
    st = fuzz_read(&parts);
    fuzz_write("a", data + size / 2, size - size / 2);
    if (st == CO_OK)
        st = fuzz_read(&parts);
    if (fuzz_read(&whole) != st || whole.points != parts.points ||
        !fuzz_is_same(&parts.steps, &whole.steps) || !fuzz_is_same(&parts.epochs, &whole.epochs) ||
        !json_equal(parts.list, whole.list))
        abort();
    co_page_events_free(&parts);
    co_page_events_free(&whole);
    return 0;
}
