/* optim_test.h - an optimizer or a schedule from config text, with a store to work on. */
#ifndef CO_TESTS_OPTIM_TEST_H
#define CO_TESTS_OPTIM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "optim/optim.h"

/* A config whose root is `text`, as if read from bad.yaml. */
static inline co_config *optim_test_config(const char *text)
{
    co_config *config = NULL;

    if (co_config_parse(&config, text, strlen(text), "bad.yaml") != CO_OK)
        fail_msg("%s", co_error_message());
    return config;
}

static inline co_store *optim_test_store(size_t n)
{
    co_store *store = NULL;

    assert_int_equal(co_store_create(&store, n, 0), CO_OK);
    return store;
}

#endif
