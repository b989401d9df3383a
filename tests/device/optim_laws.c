/* optim_laws.c - steps with an optimizer on a device, compared with the host's bits. */
#include "device/optim_laws.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "core/rng.h"
#include "tensor/values.h"

#define N     600
#define STEPS 12

/* Updates of a run that goes on; two tensors were frozen for some of them. */
#define BEFORE 9

static const co_segment segments[] = {
    {.begin = 0, .n = 300, .kind = CO_PARAM_WEIGHT},
    {.begin = 304, .n = 60, .kind = CO_PARAM_BIAS, .missed = BEFORE},
    {.begin = 368, .n = 200, .kind = CO_PARAM_NORM, .missed = 2}};

co_status optim_make(co_optim **out, co_config **config, const char *text, co_store *store)
{
    const co_value *value = NULL;

    assert_int_equal(co_config_parse(config, "{}", 2, "test"), CO_OK);
    assert_int_equal(co_config_add_text(&value, *config, text), CO_OK);
    CO_TRY(co_optim_create(out, value, *config, store));
    return co_optim_set_segments(*out, segments, sizeof(segments) / sizeof(segments[0]));
}

static void draw(float *out, uint32_t item)
{
    const co_rng rng = {.seed = 4, .stream = CO_RNG_TEST, .item = item};

    memset(out, 0, N * sizeof(*out));
    for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++)
        co_rng_normal(out + segments[i].begin, &rng, segments[i].begin, segments[i].n);
}

/* Queues steps without waiting on the host; the gradients of the fifth and sixth overflow. */
static void step(co_store *store, const co_optim *optim, uint32_t i, float *grad)
{
    const co_loss_scale_rules rules = {
        .on = true, .dynamic = true, .min_scale = 1, .max_scale = 4096, .window = 3};
    const co_vector_ops *vector = store->vector;
    co_step_values *values = store->values;
    co_step_given *given = co_values_given(store);

    draw(grad, i + 1);
    grad[17] = i == 4 || i == 5 ? INFINITY : grad[17];
    given->number = i;
    given->lr = 0.1 / (double)(i + 1);
    given->clip_norm = 5;
    given->clip_value = 1.5;
    assert_int_equal(co_values_send(store), CO_OK);
    assert_int_equal(co_queue_copy(store->queue, store->grad, grad, N * sizeof(*grad)), CO_OK);
    co_clip_norm(store, false);
    vector->max_abs(store->queue, &values->max_abs, store->grad, N);
    vector->step(store->queue, values, CO_STEP_FOUND, NULL);
    if (store->ring || !values->found_inf) {
        assert_int_equal(co_optim_update(optim, store, 0, 304), CO_OK);
        assert_int_equal(co_optim_update(optim, store, 304, N), CO_OK);
    }
    vector->step(store->queue, values, CO_STEP_COUNT, NULL);
    vector->step(store->queue, values, CO_STEP_END, &rules);
}

/* Weights and state after all steps, one array after another. */
static void train(float *out, co_step_values *end, const char *text, co_device *device)
{
    const co_loss_scale scale = {.scale = 64};
    co_store *store = NULL;
    co_config *config = NULL;
    co_optim *optim = NULL;
    void *grad = NULL;

    assert_int_equal(co_store_create_on(&store, device, N, 0), CO_OK);
    assert_int_equal(optim_make(&optim, &config, text, store), CO_OK);
    assert_int_equal(co_device_alloc(&grad, device, STEPS * N * sizeof(float), CO_MEMORY_PINNED),
                     CO_OK);
    draw(out, 0);
    assert_int_equal(co_store_write(store, CO_STORE_PARAM, 0, N, out), CO_OK);
    assert_int_equal(co_values_set(store, BEFORE + 1, &scale), CO_OK);
    for (uint32_t i = 0; i < STEPS; i++)
        step(store, optim, i, (float *)grad + (size_t)i * N);
    assert_int_equal(co_values_read(end, store), CO_OK);
    assert_int_equal(co_store_read(store, CO_STORE_PARAM, 0, N, out), CO_OK);
    for (int i = 0; i < store->n_state; i++)
        assert_int_equal(co_store_read(store, CO_STORE_STATE + (co_store_array)i, 0, N,
                                       out + (size_t)(i + 1) * N),
                         CO_OK);
    co_optim_destroy(optim);
    co_config_destroy(config);
    co_store_destroy(store);
    co_device_free(device, grad, CO_MEMORY_PINNED);
}

void optim_check_bits(co_device *device, const char *text)
{
    static float here[3 * N], there[3 * N];
    co_step_values here_end, there_end;

    memset(here, 0, sizeof(here));
    memset(there, 0, sizeof(there));
    train(here, &here_end, text, NULL);
    train(there, &there_end, text, device);
    assert_memory_equal(there, here, sizeof(here));
    assert_memory_equal(&there_end, &here_end, sizeof(here_end));
    assert_int_equal(here_end.loss_scale.skipped, 2);
    assert_int_equal(here_end.update, BEFORE + STEPS - 2 + 1);
}
