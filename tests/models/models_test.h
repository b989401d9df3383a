/* models_test.h - a graph from config text. */
#ifndef CO_TESTS_MODELS_TEST_H
#define CO_TESTS_MODELS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "models/models.h"

/* A config as if read from net.yaml, and the result of co_model_build. */
typedef struct models_test {
    co_config *config;
    co_graph *graph; /* NULL after a failure */
    co_status status;
} models_test;

static inline models_test models_test_build(const char *text, const co_shape *sample,
                                            int64_t classes)
{
    models_test t = {NULL, NULL, CO_OK};
    const co_value *root;

    if (co_config_parse(&t.config, text, strlen(text), "net.yaml") != CO_OK)
        fail_msg("%s", co_error_message());
    root = co_config_root(t.config);
    t.status = co_model_build(&t.graph, co_value_get(root, "model"), co_value_get(root, "layers"),
                              co_value_get(root, "loss"), t.config, sample, classes);
    return t;
}

static inline models_test models_test_make(const char *text, const co_shape *sample,
                                           int64_t classes)
{
    models_test t = models_test_build(text, sample, classes);

    if (t.status != CO_OK)
        fail_msg("%s: %s", text, co_error_message());
    return t;
}

static inline void models_test_free(models_test *t)
{
    co_graph_destroy(t->graph);
    co_config_destroy(t->config);
}

#endif
