/* run_files.h - a run directory that grows by lines, in a test's folder. */
#ifndef TESTS_LIVE_RUN_FILES_H
#define TESTS_LIVE_RUN_FILES_H

#include "folder.h"

#include <sys/stat.h>

static inline void run_write(const char *file, const char *mode, const char *text)
{
    FILE *out = fopen(folder_path(file), mode);

    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

/* A run directory `name` of the test's folder, without events. */
static inline void run_make(const char *name)
{
    char file[64];

    mkdir(folder_path(name), 0700);
    snprintf(file, sizeof(file), "%s/config.yaml", name);
    run_write(file, "w", "model: mlp\nbatch: 32\n");
    snprintf(file, sizeof(file), "%s/.lock", name);
    run_write(file, "w", "1 cohort\n");
    snprintf(file, sizeof(file), "%s/metrics.jsonl", name);
    run_write(
        file, "w",
        "{\"event\":\"start\",\"model\":\"secret-model\",\"dataset\":\"synthetic\",\"strategy\":"
        "\"sync\",\"ranks\":2,\"batch\":32,\"steps_per_epoch\":8,\"total_steps\":1000,"
        "\"first_step\":0}\n");
}

/* Steps [from, to) of a run, with these losses. */
static inline void run_add_steps(const char *name, int from, int to, double loss)
{
    char file[64];
    FILE *out;

    snprintf(file, sizeof(file), "%s/metrics.jsonl", name);
    out = fopen(folder_path(file), "a");
    assert_non_null(out);
    for (int i = from; i < to; i++)
        fprintf(out, "{\"event\":\"step\",\"step\":%d,\"wall_seconds\":%g,\"train_loss\":%g}\n", i,
                i / 100.0, loss);
    assert_int_equal(fclose(out), 0);
}

#endif
