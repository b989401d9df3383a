/* test_live_access.c - which requests are of the user's own browser, and who knows the token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/access.h"
#include "live/messages.h"
#include "live/ranks.h"

static void access_own_requests_are_taken(void **state)
{
    static const co_access_request own[] = {
        {.host = "127.0.0.1:8000"},
        {.host = "127.0.0.1"},
        {.host = "localhost:1"},
        {.host = "LOCALHOST:8000", .origin = "http://localhost:8000"},
        {.host = "[::1]:8000"},
        {.host = "127.0.0.1:8000", .origin = "http://127.0.0.1:8000", .site = "same-origin"},
        {.host = "127.0.0.1:8000", .site = "none"},
        {.host = "127.0.0.1:8000", .site = "cross-site", .is_first = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (!co_access_is_ours(&own[i]))
            fail_msg("refused: %zu, %s", i, own[i].host);
}

static void access_other_requests_are_refused(void **state)
{
    static const co_access_request others[] = {
        {.host = NULL},
        {.host = ""},
        {.host = "example.org:8000"},
        {.host = "127.0.0.1.example.org:8000"},
        {.host = "127.0.0.1:"},
        {.host = "127.0.0.1:80x"},
        {.host = "127.0.0.1:80:80"},
        {.host = "127.0.0.10:8000"},
        {.host = "localhost.example.org"},
        {.host = "192.168.0.1:8000"},
        {.host = "127.0.0.1:8000", .origin = "http://example.org"},
        {.host = "127.0.0.1:8000", .origin = "http://127.0.0.1:9000"},
        {.host = "127.0.0.1:8000", .origin = "http://127.0.0.1"},
        {.host = "127.0.0.1:8000", .origin = "https://127.0.0.1:8000"},
        {.host = "127.0.0.1:8000", .origin = "null"},
        {.host = "127.0.0.1:8000", .origin = ""},
        {.host = "127.0.0.1:8000", .site = "same-site"},
        {.host = "127.0.0.1:8000", .site = "cross-site"},
        {.host = "example.org", .is_first = true},
        {.host = "127.0.0.1:8000", .origin = "http://example.org", .is_first = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (co_access_is_ours(&others[i]))
            fail_msg("taken: %zu, %s", i, others[i].host ? others[i].host : "no host");
}

static void access_secrets_differ_and_compare(void **state)
{
    co_access a, b;
    char other[CO_ACCESS_SECRET + 2];

    (void)state;
    assert_int_equal(co_access_make(&a), CO_OK);
    assert_int_equal(co_access_make(&b), CO_OK);
    assert_int_equal(strlen(a.token), CO_ACCESS_SECRET);
    assert_string_not_equal(a.token, b.token);
    assert_string_not_equal(a.token, a.cookie);
    assert_string_not_equal(a.token, a.path);
    assert_true(co_access_is_secret(a.token, a.token));
    assert_false(co_access_is_secret(a.token, b.token));
    assert_false(co_access_is_secret(a.token, NULL));
    assert_false(co_access_is_secret(a.token, ""));
    snprintf(other, sizeof(other), "%s0", a.token);
    assert_false(co_access_is_secret(a.token, other));
    snprintf(other, sizeof(other), "%s", a.token);
    other[CO_ACCESS_SECRET - 1] = other[CO_ACCESS_SECRET - 1] == '0' ? '1' : '0';
    assert_false(co_access_is_secret(a.token, other));
    other[CO_ACCESS_SECRET - 1] = '\0';
    assert_false(co_access_is_secret(a.token, other));
}

static void access_paths_need_secret_part(void **state)
{
    co_access a;
    char path[128];

    (void)state;
    assert_int_equal(co_access_make(&a), CO_OK);
    snprintf(path, sizeof(path), "/s/%s/events", a.path);
    assert_string_equal(co_access_below(&a, path), "events");
    path[4] = path[4] == '0' ? '1' : '0';
    assert_null(co_access_below(&a, path));
    snprintf(path, sizeof(path), "/s/%s", a.path);
    assert_null(co_access_below(&a, path));
    assert_null(co_access_below(&a, "/"));
    assert_null(co_access_below(&a, "/s/"));
    snprintf(path, sizeof(path), "/s/%sx", a.path);
    assert_null(co_access_below(&a, path));
}

/* ---- messages ---- */

static void message_of_number_is_kept(void **state)
{
    co_messages messages = {0};
    co_message *message;
    json_t *json = json_pack("{s:s}", "a", "line\nend");

    (void)state;
    assert_int_equal(co_messages_next(&message, &messages, 0), CO_OK);
    assert_null(message);
    for (int i = 0; i < 3; i++)
        assert_int_equal(co_messages_add(&messages, json), CO_OK);
    assert_int_equal(co_messages_next(&message, &messages, 1), CO_OK);
    assert_string_equal(message->text, "id: 2\ndata: {\"a\":\"line\\nend\"}\n\n");
    /* It is there for who sends it, whatever comes since. */
    for (int i = 0; i < 2 * CO_MESSAGES_KEPT; i++)
        assert_int_equal(co_messages_add(&messages, NULL), CO_OK);
    assert_string_equal(message->text, "id: 2\ndata: {\"a\":\"line\\nend\"}\n\n");
    co_message_drop(message);
    co_messages_free(&messages);
    json_decref(json);
}

static void message_of_lost_number_is_reset(void **state)
{
    static const uint64_t lost[] = {0, 1, 7, 1000, UINT64_MAX};
    co_messages messages = {0};
    json_t *json = json_object();

    (void)state;
    for (int i = 0; i < 40; i++)
        assert_int_equal(co_messages_add(&messages, json), CO_OK);
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        co_message *message;

        assert_int_equal(co_messages_next(&message, &messages, lost[i]), CO_OK);
        assert_string_equal(message->text, "event: reset\nid: 40\ndata: all\n\n");
        co_message_drop(message);
    }
    co_messages_free(&messages);
    json_decref(json);
}

static void message_too_large_is_reset(void **state)
{
    co_messages messages = {0};
    co_message *message;
    char *text = calloc(1, CO_MESSAGES_MAX + 1);
    json_t *json;

    (void)state;
    memset(text, 'x', CO_MESSAGES_MAX);
    json = json_pack("{s:s}", "a", text);
    assert_int_equal(co_messages_add(&messages, json), CO_OK);
    assert_int_equal(co_messages_next(&message, &messages, 0), CO_OK);
    assert_string_equal(message->text, "event: reset\nid: 1\ndata: all\n\n");
    co_message_drop(message);
    co_messages_free(&messages);
    json_decref(json);
    free(text);
}

/* ---- ranks ---- */

static void take_phases(co_ranks *ranks, const char *first, bool waiting, int n)
{
    char answer[256];

    snprintf(answer, sizeof(answer),
             n == 2 ? "{\"step\":7,\"phases\":[{\"rank\":0,\"phase\":\"%s\",\"waiting\":%s},"
                      "{\"rank\":1,\"phase\":\"saving\",\"waiting\":false}]}"
                    : "{\"step\":7,\"phases\":[{\"rank\":0,\"phase\":\"%s\",\"waiting\":%s}]}",
             first, waiting ? "true" : "false");
    co_ranks_take(ranks, answer);
}

static void ranks_samples_become_shares(void **state)
{
    co_ranks ranks = {0};
    json_t *json;
    char *text;

    (void)state;
    json = co_ranks_json(&ranks);
    assert_true(json_is_null(json));
    for (int i = 0; i < 10; i++)
        take_phases(&ranks, "reading data", false, 2);
    for (int i = 0; i < CO_RANKS_SAMPLES - 3; i++)
        take_phases(&ranks, "computing", i % 3 == 0, 2);
    json = co_ranks_json(&ranks);
    text = json_dumps(json_object_get(json, "ranks"), JSON_COMPACT);
    assert_string_equal(text, "[{\"rank\":0,\"seen\":[98,49,3,0,0,0]},"
                              "{\"rank\":1,\"seen\":[0,0,0,0,150,0]}]");
    free(text);
    json_decref(json);
    /* Others: counted anew. */
    take_phases(&ranks, "evaluating", false, 1);
    json = co_ranks_json(&ranks);
    text = json_dumps(json_object_get(json, "ranks"), JSON_COMPACT);
    assert_string_equal(text, "[{\"rank\":0,\"seen\":[0,0,0,1,0,0]}]");
    free(text);
    json_decref(json);
    co_ranks_take(&ranks, "{\"error\": \"no\"}");
    json = co_ranks_json(&ranks);
    assert_true(json_is_null(json));
    co_ranks_free(&ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(access_own_requests_are_taken),
        cmocka_unit_test(access_other_requests_are_refused),
        cmocka_unit_test(access_secrets_differ_and_compare),
        cmocka_unit_test(access_paths_need_secret_part),
        cmocka_unit_test(message_of_number_is_kept),
        cmocka_unit_test(message_of_lost_number_is_reset),
        cmocka_unit_test(message_too_large_is_reset),
        cmocka_unit_test(ranks_samples_become_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
