/*
 * fuzz_profile.c - what `cohort plan --profile-from` reads of a run, over any bytes: as
 * profile.json, and beside a good one as metrics.jsonl and trace.json.
 *
 * What it accepts is times of which none is negative or no number, and segments that cover the
 * gradient.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/work.h"

#define FUZZ_ELEMENTS 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char good[] =
    "{\"batch\": 8, \"per_rank\": [{\"rows\": [{\"name\": \"fc\", \"op\": \"linear\", \"pass\": "
    "\"forward\", \"time_us\": 5}, {\"name\": \"fc\", \"op\": \"linear\", \"pass\": \"backward\", "
    "\"time_us\": 7}]}]}";

static char folder[64];

static void fuzz_close(void)
{
    static const char *const names[] = {"profile.json", "metrics.jsonl", "trace.json"};
    char path[96];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static void fuzz_write(const char *name, const void *data, size_t size)
{
    char path[96];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static bool fuzz_is_time(double value)
{
    return isfinite(value) && value >= 0;
}

static void fuzz_check(void)
{
    static const char *names[] = {"conv.weight", "fc.weight"};
    static size_t ends[] = {40, FUZZ_ELEMENTS};
    const co_work_names list = {.n = 2, .name = names, .end = ends};
    co_plan_work work = {.n = FUZZ_ELEMENTS};

    if (co_work_read(&work, folder, &list) == CO_OK) {
        if (!(work.batch > 0) || !(work.forward > 0) || !fuzz_is_time(work.backward) ||
            !fuzz_is_time(work.update) || !fuzz_is_time(work.rest) || !fuzz_is_time(work.read) ||
            work.n_segment == 0 || work.segment[work.n_segment - 1].end != FUZZ_ELEMENTS)
            abort();
        for (size_t i = 0; i < work.n_segment; i++)
            if (!fuzz_is_time(work.segment[i].seconds) || work.segment[i].end > FUZZ_ELEMENTS)
                abort();
        for (size_t i = 0; i < work.n_draw; i++)
            if (!fuzz_is_time(work.draw[i]) || (i > 0 && work.draw[i] < work.draw[i - 1]))
                abort();
    }
    co_work_fini(&work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*folder) {
        snprintf(folder, sizeof(folder), "/tmp/fuzz-profile-XXXXXX");
        if (!mkdtemp(folder) || atexit(fuzz_close) != 0)
            abort();
    }
    fuzz_write("metrics.jsonl", "", 0);
    fuzz_write("trace.json", "", 0);
    fuzz_write("profile.json", data, size);
    fuzz_check();
    fuzz_write("profile.json", good, sizeof(good) - 1);
    fuzz_write("metrics.jsonl", data, size);
    fuzz_write("trace.json", data, size);
    fuzz_check();
    return 0;
}
