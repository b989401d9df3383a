/*
 * test_resume_freeze.c - runs that freeze layers at first: what is trained from a resume on has a
 * number of updates of its own, on any number of ranks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "folder.h"

#define LR  0.01
#define MAX 512 /* weights of the layer */

static const char config[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 37}\n"
    "batch: 12\n"
    "shards: 4\n"
    "epochs: 4\n"
    "optimizer: {name: adam, lr: 0.01}\n"
    "threads: 1\n";

static void trains(const char *strategy, const char *freeze, const char *stop, int ranks)
{
    const char *const set[] = {strategy, freeze, stop, NULL};
    const co_train_options options = {.config_text = config,
                                      .set = set,
                                      .ranks = ranks,
                                      .run_dir = folder_path("run"),
                                      .quiet = true,
                                      .resume = true};
    co_train_summary summary;

    if (co_train(&summary, &options) != CO_OK)
        fail_msg("%s, %s: %s", strategy, freeze, co_error_message());
}

/* Copy the weights of the layer that was frozen; returns how many there are. */
static size_t read_weights(float *out)
{
    const co_named_tensor *tensor;
    co_safetensors *file = NULL;
    size_t n;

    assert_int_equal(co_safetensors_open(&file, folder_path("run/final.safetensors")), CO_OK);
    tensor = co_safetensors_find(file, "conv1.weight");
    assert_non_null(tensor);
    n = tensor->bytes / sizeof(*out);
    assert_in_range(n, 1, MAX);
    memcpy(out, tensor->data, tensor->bytes);
    co_safetensors_close(file);
    return n;
}

/* The first step of adam moves by lr where there is a gradient, whatever that is. */
static void check(const char *strategy, const int ranks[3])
{
    static float before[MAX], after[MAX];
    double most = 0;
    size_t n;

    trains(strategy, "freeze=conv1", "max_steps=5", ranks[0]);
    trains(strategy, "freeze=conv1", "max_steps=11", ranks[1]);
    n = read_weights(before);
    trains(strategy, "freeze=~", "max_steps=12", ranks[2]);
    read_weights(after);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)after[i] - (double)before[i]));
    if (fabs(most - LR) > 1e-3 * LR)
        fail_msg("%s: the first step is %g", strategy, most);
}

static void resume_unfrozen_begins_with_first_update(void **state)
{
    (void)state;
    check("strategy=sync", (const int[]){1, 1, 1});
}

static void resume_unfrozen_on_other_ranks_begins_with_first_update(void **state)
{
    (void)state;
    check("strategy=sync", (const int[]){2, 3, 1});
}

static void resume_unfrozen_of_divided_update_begins_with_first_update(void **state)
{
    (void)state;
    check("strategy={name: sync, update: zero}", (const int[]){1, 3, 2});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(resume_unfrozen_begins_with_first_update),
        TEST(resume_unfrozen_on_other_ranks_begins_with_first_update),
        TEST(resume_unfrozen_of_divided_update_begins_with_first_update),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
