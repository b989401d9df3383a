/*
 * test_context.c - what a transformer's context costs in memory: activations grow with its length,
 * not with the square of it, and recomputed blocks halve them.
 */
#include "models/models_test.h"

#include "backends/backends.h"
#include "graph/plan.h"

#define CLASSES 64

/* Bytes of activations and of the kernels' rooms in training. */
static size_t activations(const char *model, int64_t context, int batch, bool recompute)
{
    const co_shape sample = {1, {context}};
    models_test t = models_test_make(model, &sample, CLASSES);
    co_plan_block block = {NULL};
    const co_plan_options options = {.batch = batch,
                                     .training = true,
                                     .backends = co_backends,
                                     .recompute = recompute,
                                     .block = &block};
    co_store *store = NULL;
    co_plan *plan = NULL;
    size_t bytes;

    assert_int_equal(co_store_create(&store, t.graph->n_store, t.graph->n_buffer), CO_OK);
    assert_int_equal(co_plan_create(&plan, t.graph, store, &options), CO_OK);
    bytes = block.bytes + block.scratch_bytes;
    co_plan_destroy(plan);
    co_plan_block_free(&block);
    co_store_destroy(store);
    models_test_free(&t);
    return bytes;
}

/* From 256 to 8,192 positions: each doubling takes about twice as much. Products with all keys
   would be 256 MiB for each head at 8,192, and four times those at 4,096. */
static void context_memory_grows_linearly(void **state)
{
    static const char model[] = "model: {name: gpt2, layers: 1, heads: 4, width: 128}\n";
    const size_t first = activations(model, 256, 1, false);
    size_t before = first;

    (void)state;
    for (int64_t context = 512; context <= 8192; context *= 2) {
        const size_t used = activations(model, context, 1, false);

        assert_true(used > before && used * 20 < before * 42);
        before = used;
    }
    assert_true(before < 33 * first);
}

static void context_recomputed_blocks_halve_memory(void **state)
{
    static const char *const models[] = {
        "model: {name: gpt2, layers: 6, heads: 6, width: 384}\n",
        "model: {name: llama, layers: 6, heads: 6, kv_heads: 2, width: 384}\n"};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_true(2 * activations(models[i], 256, 4, true) <=
                    activations(models[i], 256, 4, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_memory_grows_linearly),
        cmocka_unit_test(context_recomputed_blocks_halve_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
