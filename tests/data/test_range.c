/* test_range.c - a server that stalls, or does not say which range it sends, is given up in time.
 */
#include "folder.h"

#include "core/clock.h"
#include "fetch/range.h"
#include "folder_server.h"

static folder_server *server;

static int begin(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    folder_run("seq 1000 >file");
    server = folder_server_start(folder);
    return 0;
}

static int end(void **state)
{
    folder_server_stop(server);
    return folder_remove(state);
}

/* Fails with `words`; returns the seconds that it took. */
static double read_fails(double retry_s, const char *words)
{
    const uint64_t start = co_clock_ns();
    co_range_request request = {.n = 100};
    uint8_t bytes[100];
    co_range *range;
    char url[96];

    snprintf(url, sizeof(url), "%s/file", server->url);
    request.url = url;
    assert_int_equal(co_range_create(&range, retry_s), CO_OK);
    assert_int_equal(co_range_read(bytes, NULL, range, &request), CO_E_IO);
    if (!strstr(co_error_message(), words))
        fail_msg("'%s' is not in: %s", words, co_error_message());
    co_range_destroy(range);
    return co_clock_seconds(start, co_clock_ns());
}

static void range_of_stalling_server_is_asked_for_again_and_given_up(void **state)
{
    (void)state;
    server->stall_s = 20;
    assert_true(read_fails(4, "tries in") < 10);
}

static void range_without_its_place_is_refused_at_once(void **state)
{
    (void)state;
    server->unnamed = true;
    assert_true(read_fails(20, "does not say which range it sends (Content-Range)") < 10);
    assert_int_equal(server->requests, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(range_of_stalling_server_is_asked_for_again_and_given_up,
                                        begin, end),
        cmocka_unit_test_setup_teardown(range_without_its_place_is_refused_at_once, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
