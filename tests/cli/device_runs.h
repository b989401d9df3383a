/* device_runs.h - runs of the program on GPUs: on the stand-in of tests/device, or, with `real`, on
   the machine's own. */
#ifndef CO_TESTS_DEVICE_RUNS_H
#define CO_TESTS_DEVICE_RUNS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/program.h"

#define DEVICE_CONFIG                                                                              \
    "model: mnist-net\n"                                                                           \
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 48}\n"                      \
    "batch: 12\n"                                                                                  \
    "epochs: 2\n"                                                                                  \
    "log_every: 1\n"                                                                               \
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"

/* The same with fewer numbers, for what is not about the network; with running statistics. */
#define DEVICE_SMALL                                                                               \
    "layers:\n"                                                                                    \
    "  - conv2d: {out: 4, kernel: 3, padding: 1, bias: false}\n"                                   \
    "  - batchnorm\n"                                                                              \
    "  - relu\n"                                                                                   \
    "  - maxpool: 2\n"                                                                             \
    "  - flatten\n"                                                                                \
    "  - dropout: 0.2\n"                                                                           \
    "  - linear: 10\n"                                                                             \
    "data: {name: synthetic, shape: [1, 10, 10], classes: 10, samples: 48}\n"                      \
    "batch: 12\n"                                                                                  \
    "epochs: 2\n"                                                                                  \
    "log_every: 1\n"                                                                               \
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"

/* Of so many weights that parts are whole blocks of squares. */
#define DEVICE_WIDE                                                                                \
    "layers:\n"                                                                                    \
    "  - flatten\n"                                                                                \
    "  - linear: 320\n"                                                                            \
    "  - relu\n"                                                                                   \
    "  - linear: 10\n"                                                                             \
    "data: {name: synthetic, shape: [1, 10, 10], classes: 10, samples: 48}\n"                      \
    "batch: 12\n"                                                                                  \
    "max_steps: 3\n"                                                                               \
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"

#define DEVICE_RESNET                                                                              \
    "model: {name: resnet18, stem: cifar}\n"                                                       \
    "data: {name: synthetic, shape: [3, 16, 16], classes: 10, samples: 24}\n"                      \
    "batch: 8\n"                                                                                   \
    "max_steps: 3\n"                                                                               \
    "log_every: 1\n"                                                                               \
    "optimizer: {name: sgd, lr: 1e-3, momentum: 0.9}\n"

#define DEVICE_VIT                                                                                 \
    "model: {name: vit-s16, layers: 1, heads: 2, width: 8, patch: 4}\n"                            \
    "data: {name: synthetic, shape: [3, 8, 12], classes: 10, samples: 48}\n"                       \
    "batch: 4\n"                                                                                   \
    "max_steps: 6\n"                                                                               \
    "log_every: 1\n"

#define DEVICE_TEXT                                                                                \
    "data: {name: text, path: text.txt, context: 19}\n"                                            \
    "batch: 4\n"                                                                                   \
    "max_steps: 6\n"                                                                               \
    "log_every: 1\n"                                                                               \
    "optimizer: {name: adamw, lr: 1e-2}\n"

/* Of losses, with other orders of addition. */
#define DEVICE_TOLERANCE      1e-4
#define DEVICE_HALF_TOLERANCE 3e-2

static bool real; /* the machine's own GPU */

/* Where the stand-in is, and where a folder before it makes its other libraries missing. */
#define DEVICE_PATH    ("LD_LIBRARY_PATH=" TEST_STANDIN)
#define DEVICE_LACKING "LD_LIBRARY_PATH=" TEST_STANDIN "/lacking:" TEST_STANDIN

/* The same for an NCCL that gives no memory. */
#define DEVICE_OLDER "LD_LIBRARY_PATH=" TEST_STANDIN "/older:" TEST_STANDIN

/* With these libraries and so many GPUs; nothing is left in the user's cache. */
static inline const program_result *device_run_with(const char *path, const char *gpus,
                                                    const char *line)
{
    const program_options options = {
        .before = {"env", path, "XDG_CACHE_HOME=/dev/null", "STANDIN_GRAPHS=launches", gpus}};
    const char *args[PROGRAM_MAX_ARGS] = {NULL};
    static char words[1024];
    char *rest = NULL;
    int n = 0;

    if (real)
        return program_line(line);
    snprintf(words, sizeof(words), "%s", line);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        args[n++] = word;
    return program_run(args, &options);
}

/* Graphs that all ranks launched since the last call. */
static inline long device_graphs(void)
{
    struct stat file;
    const long n = stat("launches", &file) == 0 ? (long)file.st_size : 0;

    (void)remove("launches");
    return n;
}

static inline const program_result *device_run(const char *gpus, const char *line)
{
    return device_run_with(DEVICE_PATH, gpus, line);
}

/* Whether the program finds the machine's own. */
static inline bool device_is_there(void)
{
    const program_result *r =
        program_line("train good.yaml --quiet -s device=cuda -s max_steps=1 --run-dir there");

    program_remove("there");
    if (r->exit_code != 0 && strstr(r->err, "error: cuda: "))
        printf("skipped: %s", strstr(r->err, "cuda: "));
    else
        program_assert_success(r);
    return r->exit_code == 0;
}

static inline void device_need(void)
{
    if (real && !device_is_there())
        skip();
}

/* Trained, and not on the CPU. */
static inline void check_used(const program_result *r)
{
    program_assert_success(r);
    assert_non_null(strstr(r->err, "device: GPU 0 ("));
}

static inline double device_figure(const char *dir, const char *name)
{
    json_t *summary = program_summary(dir);
    const double value = json_number_value(json_object_get(summary, name));

    json_decref(summary);
    return value;
}

static inline void check_like(const char *got, const char *want)
{
    static const char *const names[] = {"train_loss", "test_loss"};

    assert_true(device_figure(got, "steps") == device_figure(want, "steps"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!(fabs(device_figure(got, names[i]) - device_figure(want, names[i])) <=
              DEVICE_TOLERANCE))
            fail_msg("%s: %s is %.9g, that of %s %.9g", got, names[i], device_figure(got, names[i]),
                     want, device_figure(want, names[i]));
}

static inline int device_setup(void **state)
{
    char text[1024] = "";

    (void)state;
    for (int i = 0; i < 12; i++)
        strcat(text, "the quick brown fox jumps over a lazy dog, and\n");
    program_write_text("text.txt", text);
    program_write_text("text.yaml",
                       "model: {name: gpt2, layers: 1, heads: 2, width: 8}\n" DEVICE_TEXT);
    program_write_text("vit.yaml", DEVICE_VIT);
    program_write_text("resnet.yaml", DEVICE_RESNET);
    program_write_text("good.yaml", DEVICE_CONFIG);
    program_write_text("small.yaml", DEVICE_SMALL);
    return 0;
}

#endif
