/*
 * test_former_names.c - weights, checkpoints and configs with a layer's former name are still
 * accepted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "checkpoint/manifest.h"
#include "core/mem.h"
#include "folder.h"
#include "model/model.h"
#include "state/checkpoint.h"

#define MAX_TENSORS 64
#define MAX_NAME    64

static const char config[] =
    "model: psgd-cnn\n"
    "data: {name: synthetic, shape: [1, 32, 32], classes: 10, samples: 24}\n"
    "batch: 12\n"
    "epochs: 3\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "strategy: {name: local, period: 4}\n"
    "threads: 1\n";

static const struct {
    const char *former, *name;
} renamed[] = {{"fc1.", "FC1."}, {"fc2.", "FC2."}, {"fc3.", "Output."}};

/* The former name of a tensor: "0/momentum/FC1.weight" for "0/momentum/fc1.weight". */
static void former_name(char out[MAX_NAME], const char *name)
{
    snprintf(out, MAX_NAME, "%s", name);
    for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
        const char *at = strstr(name, renamed[i].name);

        if (at)
            snprintf(out, MAX_NAME, "%.*s%s%s", (int)(at - name), name, renamed[i].former,
                     at + strlen(renamed[i].name));
    }
}

/* Give the file's tensors their former names; returns how many have changed. */
static int rename_tensors(const char *path)
{
    static char names[MAX_TENSORS][MAX_NAME];
    co_named_tensor tensors[MAX_TENSORS];
    co_safetensors *file;
    size_t n;
    int changed = 0;

    assert_int_equal(co_safetensors_open(&file, path), CO_OK);
    n = co_safetensors_count(file);
    assert_true(n <= MAX_TENSORS);
    for (size_t i = 0; i < n; i++) {
        tensors[i] = *co_safetensors_tensor(file, i);
        former_name(names[i], tensors[i].name);
        changed += strcmp(names[i], tensors[i].name) != 0;
        tensors[i].name = names[i];
    }
    assert_int_equal(co_safetensors_write(folder_path("renamed"), tensors, n, NULL), CO_OK);
    co_safetensors_close(file);
    assert_int_equal(rename(folder_path("renamed"), path), 0);
    return changed;
}

static co_model *open_model(uint64_t seed)
{
    co_model *model = NULL;

    assert_int_equal(co_model_create(&model, &(co_model_options){.model = "psgd-cnn",
                                                                 .sample = {3, {1, 32, 32}},
                                                                 .classes = 10,
                                                                 .seed = seed}),
                     CO_OK);
    return model;
}

static void assert_equal_weights(const co_model *a, const co_model *b)
{
    co_named_tensor *x, *y;
    size_t n, m;

    assert_int_equal(co_model_tensors(&x, &n, a), CO_OK);
    assert_int_equal(co_model_tensors(&y, &m, b), CO_OK);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(x[i].name, y[i].name);
        assert_memory_equal(x[i].data, y[i].data, x[i].bytes);
    }
    co_free(x);
    co_free(y);
}

/* The names of the published class, in its order. */
static void psgd_cnn_names_equal_published_class(void **state)
{
    static const char *const names[] = {"conv1.weight",  "conv1.bias", "conv2.weight", "conv2.bias",
                                        "FC1.weight",    "FC1.bias",   "FC2.weight",   "FC2.bias",
                                        "Output.weight", "Output.bias"};
    co_model *model = open_model(1);
    co_named_tensor *tensors;
    size_t n;

    (void)state;
    assert_int_equal(co_model_tensors(&tensors, &n, model), CO_OK);
    assert_int_equal(n, 10);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(tensors[i].name, names[i]);
    co_free(tensors);
    co_model_destroy(model);
}

static void weights_with_former_names_load(void **state)
{
    co_model *from = open_model(1), *to = open_model(2);

    (void)state;
    assert_int_equal(co_model_save(from, folder_path("w.safetensors")), CO_OK);
    assert_int_equal(rename_tensors(folder_path("w.safetensors")), 6);
    if (co_model_load(to, folder_path("w.safetensors")) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_equal_weights(from, to);
    co_model_destroy(from);
    co_model_destroy(to);
}

/* It would be unclear which one to load. */
static void weights_with_both_names_are_refused(void **state)
{
    co_model *model = open_model(1);
    co_named_tensor *tensors, twice[11];
    size_t n;

    (void)state;
    assert_int_equal(co_model_tensors(&tensors, &n, model), CO_OK);
    memcpy(twice, tensors, n * sizeof(*tensors));
    twice[n] = twice[4];
    twice[n].name = "fc1.weight";
    assert_int_equal(co_safetensors_write(folder_path("w.safetensors"), twice, n + 1, NULL), CO_OK);
    assert_int_equal(co_model_load(model, folder_path("w.safetensors")), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "1 unexpected: fc1.weight"));
    co_free(tensors);
    co_model_destroy(model);
}

static co_status train(co_train_summary *out, const char *name, bool resume, const char *set)
{
    return co_train(out, &(co_train_options){.config_text = config,
                                             .set = (const char *const[]){set, NULL},
                                             .ranks = 2,
                                             .run_dir = folder_path(name),
                                             .quiet = true,
                                             .resume = resume});
}

static void trains(co_train_summary *out, const char *name, bool resume, const char *set)
{
    if (train(out, name, resume, set) != CO_OK)
        fail_msg("%s: %s", name, co_error_message());
}

/* Turn a checkpoint into one of an earlier release. */
static void make_old(const char *name)
{
    co_manifest manifest;
    char checkpoint[200], path[300];

    snprintf(checkpoint, sizeof(checkpoint), "%s", folder_path(name));
    assert_int_equal(co_manifest_read(&manifest, checkpoint, &co_checkpoint_layout), CO_OK);
    assert_int_equal(manifest.n_file, 2);
    manifest.n_file = 0;
    snprintf(path, sizeof(path), "%s/weights.safetensors", checkpoint);
    assert_int_equal(rename_tensors(path), 6);
    snprintf(path, sizeof(path), "%s/state.safetensors", checkpoint);
    assert_int_equal(rename_tensors(path), 24); /* weights and momenta of two ranks */
    assert_int_equal(co_manifest_add_file(&manifest, checkpoint, "weights.safetensors"), CO_OK);
    assert_int_equal(co_manifest_add_file(&manifest, checkpoint, "state.safetensors"), CO_OK);
    assert_int_equal(co_manifest_write(&manifest, checkpoint, &co_checkpoint_layout), CO_OK);
    co_manifest_free(&manifest);
}

static void resume_of_run_with_former_names_continues(void **state)
{
    co_train_summary whole, part;

    (void)state;
    trains(&whole, "whole", false, "max_steps=6");
    trains(&part, "parts", false, "max_steps=3");
    make_old("parts/checkpoints/step-3");
    trains(&part, "parts", true, "max_steps=6");
    assert_int_equal(part.steps, 6);
    assert_string_equal(part.weights_sha256, whole.weights_sha256);
}

/* `init` accepts an old file, and skips a layer by either name. */
static void init_with_former_names_is_accepted(void **state)
{
    static const char *const layers[] = {"Output", "fc3", "[fc3, FC1]"};
    co_model *from = open_model(1);
    co_train_summary out;
    char set[200], run[16];

    (void)state;
    assert_int_equal(co_model_save(from, folder_path("w.safetensors")), CO_OK);
    assert_int_equal(rename_tensors(folder_path("w.safetensors")), 6);
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        snprintf(set, sizeof(set), "init={weights: %s, skip: %s}", folder_path("w.safetensors"),
                 layers[i]);
        snprintf(run, sizeof(run), "init%zu", i);
        trains(&out, run, false, set);
    }
    snprintf(set, sizeof(set), "init={weights: %s, skip: fc4}", folder_path("w.safetensors"));
    assert_int_not_equal(train(&out, "none", false, set), CO_OK);
    assert_non_null(strstr(co_error_message(), "no layer 'fc4'"));
    co_model_destroy(from);
}

/* A config with the backend's former name uses the same kernels. */
static void backend_former_name_trains_same_weights(void **state)
{
    co_train_summary now, before;

    (void)state;
    trains(&now, "cpu", false, "backend=cpu");
    trains(&before, "native", false, "backend=native");
    assert_string_equal(now.weights_sha256, before.weights_sha256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(psgd_cnn_names_equal_published_class),
        cmocka_unit_test(weights_with_former_names_load),
        cmocka_unit_test(weights_with_both_names_are_refused),
        cmocka_unit_test(resume_of_run_with_former_names_continues),
        cmocka_unit_test(init_with_former_names_is_accepted),
        cmocka_unit_test(backend_former_name_trains_same_weights),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
