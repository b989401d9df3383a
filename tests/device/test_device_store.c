/* test_device_store.c - a store in device memory: reading, writing, initialising, loading, saving,
   exporting and broadcasting give the same bits as on the host. */
#include "strategy/rank_threads.h"

#include <cohort.h>

#include "core/fs.h"
#include "device/mock.h"
#include "export/export.h"
#include "folder.h"
#include "model/model.h"

#define ELEMENTS 1000
#define BUFFER   40

#define LAYERS                                                                                     \
    "[conv2d: {out: 3, kernel: 3, name: conv}, batchnorm: {name: bn}, relu, flatten, "             \
    "linear: {out: 500, name: wide}, linear: {out: 4, name: fc}]"

/* Prefers keys where this machine has them: workers and host then use the same addresses. */
static co_device *open_device(void)
{
    co_device *device = NULL;

    if (mock_open(&device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    return device;
}

static void fill(float *out, size_t n, float first)
{
    for (size_t i = 0; i < n; i++)
        out[i] = first + (float)i;
}

/* Checks that `n` elements from `begin` count up from `first`. */
static void check(const co_store *store, co_store_array array, size_t begin, size_t n, float first)
{
    float seen[ELEMENTS];

    assert_int_equal(co_store_read(store, array, begin, n, seen), CO_OK);
    for (size_t i = 0; i < n; i++)
        assert_true(seen[i] == first + (float)i);
}

static void check_zero(const co_store *store, co_store_array array, size_t begin, size_t n)
{
    float seen[ELEMENTS];

    assert_int_equal(co_store_read(store, array, begin, n, seen), CO_OK);
    for (size_t i = 0; i < n; i++)
        assert_true(seen[i] == 0);
}

static void check_reads_what_was_written(co_device *device)
{
    static const co_store_array arrays[] = {CO_STORE_PARAM, CO_STORE_GRAD, CO_STORE_STATE,
                                            CO_STORE_STATE + 1};
    co_store *store = NULL;
    float values[ELEMENTS];

    assert_int_equal(co_store_create_on(&store, device, ELEMENTS, BUFFER), CO_OK);
    assert_int_equal(co_store_add_states(store, 2), CO_OK);
    for (size_t a = 0; a < 4; a++) {
        check_zero(store, arrays[a], 0, ELEMENTS);
        fill(values, 17, 100.0f * (float)(a + 1));
        assert_int_equal(co_store_write(store, arrays[a], 3, 17, values), CO_OK);
        assert_int_equal(co_store_write(store, arrays[a], ELEMENTS, 0, values), CO_OK);
    }
    fill(values, BUFFER, -7);
    assert_int_equal(co_store_write(store, CO_STORE_BUFFER, 0, BUFFER, values), CO_OK);
    fill(values, 17, 0); /* already copied */
    for (size_t a = 0; a < 4; a++) {
        check_zero(store, arrays[a], 0, 3);
        check(store, arrays[a], 3, 17, 100.0f * (float)(a + 1));
        check_zero(store, arrays[a], 20, ELEMENTS - 20);
    }
    check(store, CO_STORE_BUFFER, 0, BUFFER, -7);
    co_store_destroy(store);
}

static void store_reads_what_was_written(void **state)
{
    co_device *device = open_device(), *twice = NULL;

    (void)state;
    check_reads_what_was_written(NULL);
    check_reads_what_was_written(device);
    assert_int_equal(mock_open(&twice, MOCK_TWICE), CO_OK);
    check_reads_what_was_written(twice);
    mock_close(twice);
    mock_close(device);
}

static void check_map(co_device *device)
{
    co_store *store = NULL;
    float *values = NULL;

    assert_int_equal(co_store_create_on(&store, device, ELEMENTS, 0), CO_OK);
    assert_int_equal(co_store_map(&values, store, CO_STORE_PARAM), CO_OK);
    assert_true(device ? values != store->param : values == store->param);
    fill(values, ELEMENTS, 1);
    assert_int_equal(co_store_unmap(store, CO_STORE_PARAM, values, true), CO_OK);
    assert_int_equal(co_store_map(&values, store, CO_STORE_PARAM), CO_OK);
    assert_true(values[0] == 1 && values[ELEMENTS - 1] == ELEMENTS);
    assert_int_equal(co_store_unmap(store, CO_STORE_PARAM, values, false), CO_OK);
    check(store, CO_STORE_PARAM, 0, ELEMENTS, 1);
    co_store_destroy(store);
}

static void store_mapped_array_is_written_back(void **state)
{
    co_device *device = open_device();

    (void)state;
    check_map(NULL);
    check_map(device);
    mock_close(device);
}

static co_status make_and_map(co_device *device)
{
    co_store *store = NULL;
    float *values = NULL;
    co_status st = co_store_create_on(&store, device, ELEMENTS, BUFFER);

    if (st == CO_OK)
        st = co_store_add_states(store, 2);
    if (st == CO_OK)
        st = co_store_map(&values, store, CO_STORE_STATE + 1);
    if (st == CO_OK)
        st = co_store_unmap(store, CO_STORE_STATE + 1, values, true);
    co_store_destroy(store);
    return st;
}

static void store_survives_every_failed_allocation(void **state)
{
    co_device *device = open_device();
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_mem_fail_at(++k);
        st = make_and_map(device);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
    } while (st != CO_OK);
    co_mem_fail_at(0);
    assert_true(k > 8);
    mock_close(device);
}

static void store_of_a_broken_device_fails_to_read(void **state)
{
    co_device *device = open_device();
    co_store *store = NULL;
    float value = 1;

    (void)state;
    assert_int_equal(co_store_create_on(&store, device, ELEMENTS, 0), CO_OK);
    mock_break(device);
    assert_int_equal(co_store_write(store, CO_STORE_PARAM, 0, 1, &value), CO_E_FAILED);
    assert_int_equal(co_store_read(store, CO_STORE_PARAM, 0, 1, &value), CO_E_FAILED);
    assert_int_equal(co_store_map(&(float *){NULL}, store, CO_STORE_PARAM), CO_E_FAILED);
    co_store_destroy(store);
    mock_close(device);
}

/* ---- a model's store ---- */

static co_model *open_model(uint64_t seed)
{
    co_model *model = NULL;

    if (co_model_create(&model, &(co_model_options){.model = LAYERS,
                                                    .sample = {3, {1, 6, 6}},
                                                    .classes = 4,
                                                    .seed = seed}) != CO_OK)
        fail_msg("%s", co_error_message());
    return model;
}

/* Replaces the model's store by an empty one on `device`. */
static void move_store(co_model *model, co_device *device)
{
    co_store_destroy(model->store);
    assert_int_equal(
        co_store_create_on(&model->store, device, model->graph->n_store, model->graph->n_buffer),
        CO_OK);
}

static void check_same_files(const char *a, const char *b)
{
    uint8_t *x = NULL, *y = NULL;
    size_t n = 0, m = 0;

    assert_int_equal(co_fs_read(&x, &n, folder_path(a), 1 << 20, CO_E_DATA), CO_OK);
    assert_int_equal(co_fs_read(&y, &m, folder_path(b), 1 << 20, CO_E_DATA), CO_OK);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    co_free(x);
    co_free(y);
}

static void save(const co_model *model, const char *name)
{
    assert_int_equal(co_model_save(model, folder_path(name)), CO_OK);
}

static void store_initial_weights_equal_host(void **state)
{
    co_device *device = open_device();
    co_model *here = open_model(11), *there = open_model(1);

    (void)state;
    move_store(there, device);
    assert_int_equal(co_graph_init(there->graph, there->store, 11), CO_OK);
    save(here, "here");
    save(there, "there");
    check_same_files("here", "there");
    co_model_destroy(here);
    co_model_destroy(there);
    mock_close(device);
}

static void store_loaded_weights_are_saved_again(void **state)
{
    co_device *device = open_device();
    co_model *here = open_model(12), *there = open_model(1);
    co_comm *alone = NULL;

    (void)state;
    move_store(there, device);
    save(here, "here");
    assert_int_equal(co_model_load(there, folder_path("here")), CO_OK);
    assert_int_equal(co_comm_create_self(&alone), CO_OK);
    assert_int_equal(co_model_broadcast(there, alone, 0), CO_OK);
    save(there, "there");
    check_same_files("here", "there");
    co_comm_destroy(alone);
    co_model_destroy(here);
    co_model_destroy(there);
    mock_close(device);
}

static void export_store(const co_model *model, const char *torch, const char *onnx)
{
    const co_export export = {.graph = model->graph, .store = model->store, .name = "net"};

    assert_int_equal(co_export_torch(folder_path(torch), &export), CO_OK);
    if (co_export_has_onnx())
        assert_int_equal(co_export_onnx(folder_path(onnx), &export), CO_OK);
}

static void store_exported_files_equal_host(void **state)
{
    co_device *device = open_device();
    co_model *here = open_model(13), *there = open_model(1);

    (void)state;
    move_store(there, device);
    assert_int_equal(co_graph_init(there->graph, there->store, 13), CO_OK);
    export_store(here, "here", "here.onnx");
    export_store(there, "there", "there.onnx");
    check_same_files("here", "there");
    if (co_export_has_onnx())
        check_same_files("here.onnx", "there.onnx");
    co_model_destroy(here);
    co_model_destroy(there);
    mock_close(device);
}

/* ---- ranks ---- */

typedef struct rank {
    rank_thread base;
    co_device *device;
    float param[ELEMENTS], buffer[BUFFER];
} rank;

/* Each rank has its own values before the strategy starts. */
static co_status start_on_device(rank_thread *base, strategy_test *t, co_comm *comm)
{
    static const char text[] = "strategy: sync";
    rank *r = (rank *)base;

    fill(r->param, ELEMENTS, 1000.0f * (float)(base->index + 1));
    fill(r->buffer, BUFFER, -1000.0f * (float)(base->index + 1));
    CO_TRY(co_config_parse(&t->config, text, strlen(text), "bad.yaml"));
    CO_TRY(co_store_create_on(&t->store, r->device, ELEMENTS, BUFFER));
    CO_TRY(co_store_write(t->store, CO_STORE_PARAM, 0, ELEMENTS, r->param));
    CO_TRY(co_store_write(t->store, CO_STORE_BUFFER, 0, BUFFER, r->buffer));
    CO_TRY(co_strategy_create(&t->strategy, co_value_get(co_config_root(t->config), "strategy"),
                              t->config, comm, t->store, NULL));
    CO_TRY(co_strategy_start(t->strategy));
    CO_TRY(co_store_read(t->store, CO_STORE_PARAM, 0, ELEMENTS, r->param));
    return co_store_read(t->store, CO_STORE_BUFFER, 0, BUFFER, r->buffer);
}

static void store_ranks_start_from_weights_of_rank_0(void **state)
{
    static rank ranks[3];
    co_device *device = open_device();

    (void)state;
    for (int i = 0; i < 3; i++)
        ranks[i].device = device;
    rank_threads_run(ranks, sizeof(ranks[0]), 3, start_on_device);
    for (int i = 0; i < 3; i++) {
        if (ranks[i].base.status != CO_OK)
            fail_msg("rank %d: %s", i, ranks[i].base.message);
        assert_true(ranks[i].param[0] == 1000 && ranks[i].param[ELEMENTS - 1] == 1999);
        assert_true(ranks[i].buffer[0] == -1000 && ranks[i].buffer[BUFFER - 1] == -961);
    }
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_reads_what_was_written),
        cmocka_unit_test(store_mapped_array_is_written_back),
        cmocka_unit_test(store_survives_every_failed_allocation),
        cmocka_unit_test(store_of_a_broken_device_fails_to_read),
        cmocka_unit_test(store_initial_weights_equal_host),
        cmocka_unit_test(store_loaded_weights_are_saved_again),
        cmocka_unit_test(store_exported_files_equal_host),
        cmocka_unit_test(store_ranks_start_from_weights_of_rank_0),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
