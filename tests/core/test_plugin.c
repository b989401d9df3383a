/*
 * test_plugin.c - plugins of any kind: found by name, or rejected with the names that exist; their
 * keys are read after those common to their kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/plugin.h"

typedef struct tool_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    int teeth;
} tool_ops;

CO_PLUGIN_CHECK(tool_ops, self_size);

typedef struct saw {
    int64_t width;
} saw;

typedef struct tool {
    int64_t price;
    saw own;
} tool;

static const co_key saw_keys[] = {
    {"width", CO_KEY_INT, offsetof(saw, width), "3", 1, 9, NULL, "in mm"}, CO_KEYS_END};
static const co_key tool_keys[] = {
    {"price", CO_KEY_INT, offsetof(tool, price), "1", 0, 100, NULL, "of one"}, CO_KEYS_END};

static const tool_ops hammer = {.name = "hammer"};
static const tool_ops fine_saw = {
    .name = "fine-saw", .keys = saw_keys, .self_size = sizeof(saw), .teeth = 90};
static const tool_ops *const tools[] = {&hammer, &fine_saw, NULL};
static const co_plugins plugins = {"tool", "with", tools, 0, NULL};

static co_config *config;

static int setup(void **state)
{
    (void)state;
    return co_config_parse(&config, "{}", 2, "test") != CO_OK;
}

static int teardown(void **state)
{
    (void)state;
    co_config_destroy(config);
    return 0;
}

static const co_value *value_of(const char *text)
{
    const co_value *value = NULL;

    assert_int_equal(co_config_add_text(&value, config, text), CO_OK);
    return value;
}

static void plugin_choose_finds_by_name_map_or_fallback(void **state)
{
    const void *ops = NULL;
    const co_value *map = NULL;

    (void)state;
    assert_int_equal(co_plugin_choose(&ops, &map, &plugins, value_of("fine-saw"), NULL), CO_OK);
    assert_ptr_equal(ops, &fine_saw);
    assert_null(map);
    assert_int_equal(co_plugin_choose(&ops, &map, &plugins, value_of("{name: hammer}"), NULL),
                     CO_OK);
    assert_ptr_equal(ops, &hammer);
    assert_non_null(map);
    assert_int_equal(co_plugin_choose(&ops, &map, &plugins, NULL, "fine-saw"), CO_OK);
    assert_ptr_equal(ops, &fine_saw);
    assert_null(map);
    assert_int_equal(co_plugin_choose(&ops, &map, &plugins, value_of("{width: 2}"), "fine-saw"),
                     CO_OK);
    assert_ptr_equal(ops, &fine_saw);
    assert_null(co_plugin_find(&plugins, "Hammer"));
    assert_null(co_plugin_at(&plugins, 2));
}

static void assert_refused(const char *text, const char *message)
{
    const void *ops;
    const co_value *map;

    assert_int_equal(co_plugin_choose(&ops, &map, &plugins, value_of(text), NULL), CO_E_USAGE);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void plugin_choose_unknown_name_is_refused(void **state)
{
    (void)state;
    assert_refused("hamer", "unknown tool 'hamer'; did you mean 'hammer'?");
    assert_refused("{name: x}", "unknown tool 'x'; there are hammer, fine-saw");
    assert_refused("[1]", "with: expected a name, or {name: ..., key: value}");
    assert_int_equal(co_plugin_unknown(&plugins, "nine", value_of("nine"), "none"), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "did you mean 'none'?"));
}

static void plugin_read_fills_common_and_own_keys(void **state)
{
    const co_value *map = value_of("{name: fine-saw, width: 5}");
    tool t = {0};

    (void)state;
    assert_int_equal(co_plugin_read(&t, &fine_saw, &plugins, tool_keys, offsetof(tool, own), map,
                                    co_config_arena(config)),
                     CO_OK);
    assert_int_equal(t.price, 1);
    assert_int_equal(t.own.width, 5);
    assert_int_equal(co_plugin_read(&t, &fine_saw, &plugins, tool_keys, offsetof(tool, own),
                                    value_of("{widht: 5}"), co_config_arena(config)),
                     CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "with fine-saw"));
    assert_non_null(strstr(co_error_message(), "width"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plugin_choose_finds_by_name_map_or_fallback, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(plugin_choose_unknown_name_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(plugin_read_fills_common_and_own_keys, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
