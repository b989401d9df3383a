/* strategy_test.h - a strategy from config text over a store of a given length. */
#ifndef CO_TESTS_STRATEGY_TEST_H
#define CO_TESTS_STRATEGY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "strategy/strategy.h"

typedef struct strategy_test {
    co_config *config;
    co_store *store;
    co_strategy *strategy; /* NULL after a failure */
} strategy_test;

/* `text` as if read from bad.yaml. Does not assert, so threads can call it. */
static inline co_status strategy_test_open_on(strategy_test *out, const char *text, co_comm *comm,
                                              co_device *device, size_t n, size_t n_buffer)
{
    memset(out, 0, sizeof(*out));
    CO_TRY(co_config_parse(&out->config, text, strlen(text), "bad.yaml"));
    CO_TRY(co_store_create_on(&out->store, device, n, n_buffer));
    return co_strategy_create(&out->strategy, co_value_get(co_config_root(out->config), "strategy"),
                              out->config, comm, out->store, NULL);
}

static inline co_status strategy_test_open(strategy_test *out, const char *text, co_comm *comm,
                                           size_t n, size_t n_buffer)
{
    return strategy_test_open_on(out, text, comm, NULL, n, n_buffer);
}

static inline void strategy_test_close(strategy_test *t)
{
    co_strategy_destroy(t->strategy);
    co_store_destroy(t->store);
    co_config_destroy(t->config);
}

/* `text` is refused with this message. */
static inline void strategy_test_expect_refusal(const char *text, const char *message, size_t n)
{
    co_comm *comm = NULL;
    strategy_test t;

    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(strategy_test_open(&t, text, comm, n, 0), CO_E_USAGE);
    assert_string_equal(co_error_message(), message);
    strategy_test_close(&t);
    co_comm_destroy(comm);
}

/* Each allocation fails in turn; there are more than `least`. */
static inline void strategy_test_fail_allocations(const char *text, co_comm *comm, size_t n,
                                                  uint64_t least)
{
    uint64_t k = 0;
    co_status st;

    do {
        strategy_test t;

        co_mem_fail_at(++k);
        st = strategy_test_open(&t, text, comm, n, 0);
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        strategy_test_close(&t);
    } while (st != CO_OK);
    assert_true(k > least);
}

#endif
