/*
 * test_keys.c - a config's map to a struct by a list of keys: defaults, types, bounds, and messages
 * with the place, the key, what was expected and the nearest known key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/mem.h"

typedef struct settings {
    bool nesterov;
    int64_t epochs, parts;
    double lr, size;
    const char *path, *note;
    int reduction;
    co_ints shape;
    co_reals ratios;
    const co_value *layers;
} settings;

static const char *const reductions[] = {"mean", "sum", NULL};

static const char *const parts_auto[] = {"auto", NULL};

#define KEY(field, kind, ...)                                                                      \
    {                                                                                              \
        .name = #field, .type = kind, .offset = offsetof(settings, field), __VA_ARGS__             \
    }
static const co_key settings_keys[] = {
    KEY(nesterov, CO_KEY_BOOL, .fallback = "false"),
    KEY(epochs, CO_KEY_INT, .fallback = "10", .min = 1, .max = 1000, .help = "passes"),
    KEY(parts, CO_KEY_INT, .fallback = "auto", .min = 1, .max = 8, .choices = parts_auto),
    KEY(size, CO_KEY_REAL, .fallback = "auto", .min = 1, .max = 8, .choices = parts_auto),
    KEY(lr, CO_KEY_REAL, .fallback = "0.01", .min = 0, .max = 10),
    KEY(path, CO_KEY_STRING, .help = "where the data lies"),
    KEY(note, CO_KEY_STRING, .fallback = "~"),
    KEY(reduction, CO_KEY_CHOICE, .fallback = "mean", .choices = reductions),
    KEY(shape, CO_KEY_INTS, .fallback = "[1, 28, 28]", .min = 1, .max = 100),
    KEY(ratios, CO_KEY_REALS, .fallback = "~"),
    KEY(layers, CO_KEY_VALUE, .fallback = "~"),
    CO_KEYS_END,
};

static co_config *parse(const char *text)
{
    co_config *config = NULL;

    if (co_config_parse(&config, text, strlen(text), "c.yaml") != CO_OK)
        fail_msg("%s: %s", text, co_error_message());
    return config;
}

static co_status read_settings(settings *out, co_config *config)
{
    memset(out, 0xee, sizeof(*out));
    return co_keys_read_named(out, settings_keys, co_config_root(config), "job",
                              co_config_arena(config));
}

static void keys_left_out_take_defaults(void **state)
{
    co_config *config = parse("path: here");
    settings s;

    (void)state;
    assert_int_equal(read_settings(&s, config), CO_OK);
    assert_false(s.nesterov);
    assert_int_equal(s.epochs, 10);
    assert_true(s.lr == 0.01);
    assert_string_equal(s.path, "here");
    assert_null(s.note);
    assert_int_equal(s.reduction, 0);
    assert_int_equal(s.shape.n, 3);
    assert_int_equal(s.shape.v[1], 28);
    assert_int_equal(s.ratios.n, 0);
    assert_null(s.layers);
    co_config_destroy(config);
}

static void keys_of_every_type_are_read(void **state)
{
    co_config *config = parse("{name: any, nesterov: true, epochs: 1000, lr: 1e-3, path: 'a b',"
                              " note: \"12\", reduction: sum, shape: 7, ratios: [0.25, 3, -1e2],"
                              " layers: [{conv2d: 3}]}");
    settings s;

    (void)state;
    assert_int_equal(read_settings(&s, config), CO_OK);
    assert_true(s.nesterov);
    assert_int_equal(s.epochs, 1000);
    assert_true(s.lr == 1e-3);
    assert_string_equal(s.path, "a b");
    assert_string_equal(s.note, "12");
    assert_int_equal(s.reduction, 1);
    assert_int_equal(s.shape.n, 1);
    assert_int_equal(s.shape.v[0], 7);
    assert_int_equal(s.ratios.n, 3);
    assert_true(s.ratios.v[2] == -100);
    assert_int_equal(s.layers->kind, CO_VALUE_LIST);
    co_config_destroy(config);
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"epochs: 3", "c.yaml:1:1: job: the key 'path' is missing (where the data lies)"},
    {"", "job: the key 'path' is missing"},
    {"{path: x, epoch: 3}", "c.yaml:1:18: job: unknown key 'epoch'; did you mean 'epochs'?"},
    {"{path: x, Lr: 3}", "unknown key 'Lr'; did you mean 'lr'?"},
    {"{path: x, nestrov: true}", "did you mean 'nesterov'?"},
    {"{path: x, wholly_different: 3}", "unknown key 'wholly_different'"},
    {"path: x\nepochs: many", "c.yaml:2:9: job: key 'epochs': expected a whole number from 1 to "
                              "1000, got 'many'"},
    {"{path: x, parts: 0}", "expected auto, or a whole number from 1 to 8, got '0'"},
    {"{path: x, parts: none}", "expected auto, or a whole number from 1 to 8, got 'none'"},
    {"{path: x, size: 0}", "expected auto, or a number from 1 to 8, got '0'"},
    {"{path: x, epochs: 0}", "expected a whole number from 1 to 1000, got '0'"},
    {"{path: x, epochs: -5}", "got '-5'"},
    {"{path: x, epochs: 1001}", "got '1001'"},
    {"{path: x, epochs: 2.0}", "got '2.0'"},
    {"{path: x, epochs: 1e2}", "got '1e2'"},
    {"{path: x, epochs: 0x10}", "got '0x10'"},
    {"{path: x, epochs: 99999999999999999999}", "got '99999999999999999999'"},
    {"{path: x, epochs: '3'}", "key 'epochs': expected a whole number"},
    {"{path: x, epochs: [3]}", "expected a whole number from 1 to 1000, got a list"},
    {"{path: x, epochs: {a: 3}}", "got a map"},
    {"{path: x, epochs: ~}", "got nothing"},
    {"{path: x, epochs: }", "got nothing"},
    {"{path: x, epochs: +}", "got '+'"},
    {"{path: x, lr: fast}", "key 'lr': expected a number from 0 to 10, got 'fast'"},
    {"{path: x, lr: -0.1}", "got '-0.1'"},
    {"{path: x, lr: .nan}", "got '.nan'"},
    {"{path: x, lr: inf}", "got 'inf'"},
    {"{path: x, lr: 1e999}", "got '1e999'"},
    {"{path: x, lr: 0.1.2}", "got '0.1.2'"},
    {"{path: x, lr: 1e}", "got '1e'"},
    {"{path: x, nesterov: yes}", "key 'nesterov': expected true or false, got 'yes'"},
    {"{path: x, nesterov: 1}", "got '1'"},
    {"{path: [x]}", "key 'path': expected a text, got a list"},
    {"{path: ~}", "key 'path': expected a text, got nothing"},
    {"{path: x, reduction: max}", "key 'reduction': expected one of mean, sum, got 'max'"},
    {"{path: x, reduction: [mean]}", "expected one of mean, sum, got a list"},
    {"{path: x, shape: [1, 0]}",
     "c.yaml:1:22: job: key 'shape': expected a whole number or a list"},
    {"{path: x, shape: [1, [2]]}", "got a list"},
    {"{path: x, shape: wide}", "got 'wide'"},
    {"{path: x, ratios: [0.5, half]}", "key 'ratios': expected a number or a list of them"},
};

static void keys_bad_value_is_refused_at_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        co_config *config = parse(bad[i].text);
        settings s;
        co_status st = read_settings(&s, config);

        if (st != CO_E_USAGE || !strstr(co_error_message(), bad[i].message))
            fail_msg("%s: status %d, message: %s", bad[i].text, (int)st,
                     st ? co_error_message() : "none");
        co_config_destroy(config);
    }
}

static void keys_scalar_for_map_is_refused(void **state)
{
    co_config *config = parse("job: fast");
    settings s;

    (void)state;
    assert_int_equal(co_keys_read(&s, settings_keys, co_value_get(co_config_root(config), "job"),
                                  "job", co_config_arena(config)),
                     CO_E_USAGE);
    assert_string_equal(
        co_error_message(),
        "c.yaml:1:6: job: expected `key: value` lines or {key: value}, such as {nesterov: fast}");
    co_config_destroy(config);
}

/* Only a plugin or a layer has one. */
static void keys_name_of_another_map_is_refused(void **state)
{
    co_config *config = parse("{name: any, path: here}");
    settings s;

    (void)state;
    assert_int_equal(
        co_keys_read(&s, settings_keys, co_config_root(config), "job", co_config_arena(config)),
        CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "job: unknown key 'name'"));
    co_config_destroy(config);
}

/* A number whose first choice stands for 0, which is out of bounds. */
static void keys_number_takes_its_named_choice(void **state)
{
    static const struct {
        const char *text;
        int64_t parts;
        double size;
    } good[] = {{"path: x", 0, 0},
                {"{path: x, parts: auto, size: auto}", 0, 0},
                {"{path: x, parts: 8, size: 1.5}", 8, 1.5}};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        co_config *config = parse(good[i].text);
        settings s;

        assert_int_equal(read_settings(&s, config), CO_OK);
        assert_int_equal(s.parts, good[i].parts);
        assert_true(s.size == good[i].size);
        co_config_destroy(config);
    }
}

/* config.yaml of a run reads back to the same settings. */
static void keys_written_settings_read_back(void **state)
{
    static const char *const texts[] = {
        "path: x",
        "{path: ' a: \"b\"\n', note: '~', nesterov: true, lr: 0.1, epochs: 7, reduction: sum,"
        " parts: 3, size: 2.5, shape: [3, 4], ratios: [0.1, 1e-300], layers: [{a: {b: [c, 'd']}}, "
        "~]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        co_config *config = parse(texts[i]), *again;
        char first[1000], second[1000];
        FILE *out = fmemopen(first, sizeof(first), "w");
        settings s, t;

        assert_int_equal(read_settings(&s, config), CO_OK);
        assert_int_equal(co_keys_write(out, &s, settings_keys, 0), CO_OK);
        fclose(out);
        again = parse(first);
        assert_int_equal(read_settings(&t, again), CO_OK);
        assert_true(t.parts == s.parts && t.lr == s.lr && t.size == s.size &&
                    t.epochs == s.epochs && t.reduction == s.reduction);
        assert_string_equal(t.path, s.path);
        assert_true((t.note == NULL) == (s.note == NULL));
        assert_int_equal(t.ratios.n, s.ratios.n);
        for (size_t k = 0; k < s.ratios.n; k++)
            assert_true(t.ratios.v[k] == s.ratios.v[k]);
        out = fmemopen(second, sizeof(second), "w");
        assert_int_equal(co_keys_write(out, &t, settings_keys, 0), CO_OK);
        fclose(out);
        assert_string_equal(second, first);
        co_config_destroy(again);
        co_config_destroy(config);
    }
}

/* A plugin's keys after those common to its kind. */
static void keys_of_two_lists_are_read(void **state)
{
    typedef struct both {
        int64_t common;
        settings own;
    } both;
    static const co_key common[] = {
        {.name = "common", .type = CO_KEY_INT, .offset = 0, .fallback = "4"}, CO_KEYS_END};
    co_config *config = parse("{path: x, epochs: 3, common: 5}");
    co_arena *arena = co_config_arena(config);
    const co_key *keys = NULL;
    both b;

    (void)state;
    assert_int_equal(co_keys_join(&keys, common, settings_keys, offsetof(both, own), arena), CO_OK);
    assert_int_equal(co_keys_read(&b, keys, co_config_root(config), "both", arena), CO_OK);
    assert_int_equal(b.common, 5);
    assert_int_equal(b.own.epochs, 3);
    assert_string_equal(b.own.path, "x");
    assert_int_equal(co_keys_join(&keys, NULL, NULL, 0, arena), CO_OK);
    assert_null(keys[0].name);
    co_config_destroy(config);
}

static void keys_plugin_is_read_by_name_or_map(void **state)
{
    static const char *const names[] = {"sgd", "adam", "adamw"};
    co_config *config = parse("{a: sgd, b: {name: adam, lr: 1}, c: {lr: 1}, d: [x], e: adma}");
    const co_value *root = co_config_root(config), *map;
    const char *name;

    (void)state;
    assert_int_equal(co_value_plugin(&name, &map, co_value_get(root, "a"), "optimizer"), CO_OK);
    assert_string_equal(name, "sgd");
    assert_null(map);
    assert_int_equal(co_value_plugin(&name, &map, co_value_get(root, "b"), "optimizer"), CO_OK);
    assert_string_equal(name, "adam");
    assert_ptr_equal(map, co_value_get(root, "b"));
    for (int i = 0; i < 2; i++) {
        const co_value *value = co_value_get(root, i ? "d" : "c");

        name = NULL;
        assert_int_equal(co_value_plugin(&name, &map, value, "optimizer"), CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), "optimizer: expected a name, or {name: ..."));
    }
    name = "sgd"; /* the name of a map without one */
    assert_int_equal(co_value_plugin(&name, &map, co_value_get(root, "c"), "optimizer"), CO_OK);
    assert_string_equal(name, "sgd");
    assert_ptr_equal(map, co_value_get(root, "c"));
    assert_int_equal(co_value_plugin(&name, &map, co_value_get(root, "b"), "optimizer"), CO_OK);
    assert_string_equal(name, "adam");
    assert_int_equal(co_value_plugin(&name, &map, co_value_get(root, "d"), "optimizer"),
                     CO_E_USAGE);
    assert_int_equal(co_value_unknown(co_value_get(root, "e"), "optimizer", "adma", names, 3),
                     CO_E_USAGE);
    assert_string_equal(co_error_message(),
                        "c.yaml:1:57: unknown optimizer 'adma'; did you mean 'adam'?");
    co_value_unknown(co_value_get(root, "b"), "optimizer", "rmsprop", names, 3);
    assert_string_equal(co_error_message(),
                        "c.yaml:1:20: unknown optimizer 'rmsprop'; there are sgd, adam, adamw");
    co_config_destroy(config);
}

static void nearest_misspelt_name_is_found(void **state)
{
    static const char *const names[] = {"momentum", "lr", "weight_decay", "nesterov"};

    (void)state;
    assert_string_equal(co_nearest("momemtum", names, 4), "momentum");
    assert_string_equal(co_nearest("weightdecay", names, 4), "weight_decay");
    assert_string_equal(co_nearest("l", names, 4), "lr");
    assert_null(co_nearest("gamma", names, 4));
    assert_null(co_nearest("", names, 0));
    assert_null(co_nearest(
        "a-name-of-more-than-sixty-three-letters-which-is-longer-than-any-key-is", names, 4));
}

static void keys_help_lists_every_key(void **state)
{
    char text[4000];
    FILE *out = fmemopen(text, sizeof(text), "w");

    (void)state;
    co_keys_print(out, settings_keys, 2);
    fclose(out);
    for (const co_key *key = settings_keys; key->name; key++)
        assert_non_null(strstr(text, key->name));
    assert_non_null(strstr(text, "a whole number from 1 to 1000; default 10"));
    assert_non_null(strstr(text, "a text; must be given"));
    assert_non_null(strstr(text, "auto, or a whole number from 1 to 8; default auto"));
    assert_non_null(strstr(text, "one of mean, sum; default mean"));
}

static void keys_failed_allocation_is_an_error(void **state)
{
    co_status st = CO_E_NOMEM;
    uint64_t k;

    (void)state;
    for (k = 1; st != CO_OK && k < 100; k++) {
        co_config *config = NULL;
        settings s;

        co_mem_fail_at(k);
        st = co_config_parse(&config, "{path: x, shape: [1, 2]}", 24, "c.yaml");
        if (st == CO_OK)
            st = read_settings(&s, config);
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        co_config_destroy(config);
    }
    assert_int_equal(st, CO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_left_out_take_defaults),
        cmocka_unit_test(keys_of_every_type_are_read),
        cmocka_unit_test(keys_bad_value_is_refused_at_its_line),
        cmocka_unit_test(keys_name_of_another_map_is_refused),
        cmocka_unit_test(keys_scalar_for_map_is_refused),
        cmocka_unit_test(keys_number_takes_its_named_choice),
        cmocka_unit_test(keys_written_settings_read_back),
        cmocka_unit_test(keys_of_two_lists_are_read),
        cmocka_unit_test(keys_plugin_is_read_by_name_or_map),
        cmocka_unit_test(nearest_misspelt_name_is_found),
        cmocka_unit_test(keys_help_lists_every_key),
        cmocka_unit_test(keys_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
