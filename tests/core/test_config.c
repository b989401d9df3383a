/* test_config.c - YAML to a tree with line numbers, rejected input and its place, --set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/mem.h"

static co_config *parse(const char *text)
{
    co_config *config = NULL;

    if (co_config_parse(&config, text, strlen(text), "c.yaml") != CO_OK)
        fail_msg("%s: %s", text, co_error_message());
    return config;
}

/* The tree as flow YAML. */
static char *written(const co_config *config)
{
    static char text[4096];
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_non_null(out);
    assert_int_equal(co_value_write(out, co_config_root(config)), CO_OK);
    fclose(out);
    return text;
}

static const char *scalar(const co_value *map, const char *key)
{
    const co_value *value = co_value_get(map, key);

    assert_non_null(value);
    assert_int_equal(value->kind, CO_VALUE_SCALAR);
    return value->text;
}

static void config_parsed_values_know_their_lines(void **state)
{
    co_config *config = parse("# a run\n"
                              "model: mnist-net\n"
                              "data: {name: synthetic, shape: [3, 32, 32]}\n"
                              "optimizer:\n"
                              "  name: sgd\n"
                              "  lr: 0.01   # small\n"
                              "quoted: \"12\"\n"
                              "none: ~\n"
                              "empty:\n"
                              "text: 'a: b'\n"
                              "utf-8: h\xc3\xa4 \xe2\x82\xac \xf0\x9f\x92\xa1\n");
    const co_value *root = co_config_root(config), *shape, *lr;

    (void)state;
    assert_int_equal(root->kind, CO_VALUE_MAP);
    assert_int_equal(root->n, 8);
    assert_string_equal(scalar(root, "model"), "mnist-net");
    shape = co_value_get(co_value_get(root, "data"), "shape");
    assert_int_equal(shape->kind, CO_VALUE_LIST);
    assert_int_equal(shape->n, 3);
    assert_string_equal(shape->item[2]->text, "32");
    assert_int_equal(shape->item[2]->line, 3);
    assert_int_equal(shape->item[2]->column, 40);
    lr = co_value_get(co_value_get(root, "optimizer"), "lr");
    assert_string_equal(lr->text, "0.01");
    assert_false(lr->quoted);
    assert_int_equal(lr->line, 6);
    assert_int_equal(lr->column, 7);
    assert_string_equal(lr->source, "c.yaml");
    assert_true(co_value_get(root, "quoted")->quoted);
    assert_int_equal(co_value_get(root, "none")->kind, CO_VALUE_NULL);
    assert_int_equal(co_value_get(root, "empty")->kind, CO_VALUE_NULL);
    assert_string_equal(scalar(root, "text"), "a: b");
    assert_string_equal(scalar(root, "utf-8"), "h\xc3\xa4 \xe2\x82\xac \xf0\x9f\x92\xa1");
    assert_null(co_value_get(root, "absent"));
    assert_null(co_value_get(lr, "x"));
    assert_null(co_value_get(NULL, "x"));
    co_value_fail(lr, "too %s", "small");
    assert_string_equal(co_error_message(), "c.yaml:6:7: too small");
    co_config_destroy(config);
    co_config_destroy(NULL);
}

/* For messages that report it missing. */
static void config_missing_value_knows_its_line(void **state)
{
    static const struct {
        const char *text;
        int line, column;
    } cases[] = {{"a: 1\nbatch:\nb: 2\n", 2, 1},
                 {"a: 1\n  \nbatch:", 3, 1},
                 {"a: 1\nb: 2\nbatch: ~\n", 3, 8},
                 {"a: 1\nbatch: # none\n", 2, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_config *config = parse(cases[i].text);
        const co_value *value = co_value_get(co_config_root(config), "batch");

        assert_int_equal(value->kind, CO_VALUE_NULL);
        assert_int_equal(value->line, cases[i].line);
        assert_int_equal(value->column, cases[i].column);
        co_config_destroy(config);
    }
}

static void config_empty_text_is_an_empty_map(void **state)
{
    static const char *const texts[] = {"", "\n\n", "# nothing\n", "---\n", "~", "--- {}\n..."};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        co_config *config = parse(texts[i]);

        assert_true(co_config_root(config)->n == 0);
        co_config_destroy(config);
    }
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"a: 1\na: 2\n", "c.yaml:2:1: the key 'a' is given twice"},
    {"x: {b: 1, c: 2, b: 3}\n", "c.yaml:1:17: the key 'b' is given twice"},
    {"a: [1, 2\n", "c.yaml:"},
    {"a: {b: 1\nc: 2\n", "c.yaml:"},
    {"a: 'x\n", "c.yaml:"},
    {"a: b: c\n", "not valid YAML"},
    {"\ta: 1\n", "c.yaml:1:"},
    {"a: 1\n  b: 2\n", "c.yaml:1:4: not valid YAML"},
    {"a: \"\\q\"\n", "c.yaml:1:"},
    {"- a\n- b\n", "c.yaml:1:1: a config is a list of `key: value` lines"},
    {"just text\n", "c.yaml:1:1: a config is a list of `key: value` lines"},
    {"a: &x 1\n", "anchors (&name) are not supported; write the value out"},
    {"a: 1\nb: *a\n", "aliases (*name) are not supported; write the value out"},
    {"a: &a [x,x]\nb: &b [*a,*a]\n", "anchors (&name) are not supported"},
    {"*a : 1\n", "aliases (*name) are not supported"},
    {"a: !!int 3\n", "c.yaml:1:10: tags (!name) are not supported; leave the tag out"},
    {"<<: *x\n", "aliases"},
    {"a: 1\n---\nb: 2\n", "c.yaml:2:1: a config is one document; remove the second '---'"},
    {"? [a, b]\n: 1\n", "c.yaml:1:3: a key must be a plain name"},
    {"? {a: b}\n: 1\n", "a key must be a plain name"},
    {"a: \"x\\0y\"\n", "c.yaml:1:5: a value must not hold a NUL character"},
    {"\"k\\0\": y\n", "a value must not hold a NUL character"},
    {"%YAML 9.9\n---\na: 1\n", "not valid YAML"},
    {"a: 1\nb: \xff\xfe\n", "c.yaml:2: is not UTF-8 text"},
    {"a: \xe4\n", "c.yaml:1: is not UTF-8 text"},         /* Latin-1 */
    {"a: \xc3", "c.yaml:1: is not UTF-8 text"},           /* truncated */
    {"a: \xc0\xaf\n", "c.yaml:1: is not UTF-8 text"},     /* overlong */
    {"a: \xe0\x80\x80\n", "c.yaml:1: is not UTF-8 text"}, /* overlong */
    {"a: \xed\xa0\x80\n", "c.yaml:1: is not UTF-8 text"}, /* surrogate */
    {"a: \xf4\x90\x80\x80\n", "is not UTF-8 text"},       /* above U+10FFFF */
    {"a: \xf0\x9f\x92\n", "is not UTF-8 text"},
};

static void config_bad_text_is_refused_at_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        co_config *config = NULL;
        co_status st = co_config_parse(&config, bad[i].text, strlen(bad[i].text), "c.yaml");

        if (st != CO_E_USAGE || !strstr(co_error_message(), bad[i].message))
            fail_msg("%s: status %d, message: %s", bad[i].text, (int)st,
                     st ? co_error_message() : "none");
        assert_null(config);
    }
}

/* Parses `from`, `times` copies of `unit`, and `to`; more of them would keep libfyaml busy for
   hours. */
static co_status parse_repeated(const char *from, const char *unit, int times, const char *to)
{
    co_config *config = NULL;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    co_status st;

    assert_non_null(out);
    fputs(from, out);
    for (int i = 0; i < times; i++)
        fputs(unit, out);
    fputs(to, out);
    assert_int_equal(fclose(out), 0);
    st = co_config_parse(&config, text, size, "c.yaml");
    co_config_destroy(config);
    free(text);
    return st;
}

static void config_text_slow_to_parse_is_refused(void **state)
{
    static const struct {
        const char *from, *unit, *to, *message;
    } slow[] = {
        {"%", "=", "", "c.yaml:1: more than 1024 bytes of a directive (%NAME)"},
        {"\xef\xbb\xbf%", "=", "", "c.yaml:1: more than 1024 bytes of a directive"},
        {"a: 1\n...\n%F ", "x ", "\n", "c.yaml:3: more than 1024 bytes of a directive"},
        {"a: !", "%41", " b\n", "c.yaml:1: more than 1024 bytes of a tag (!name)"},
        {"a: [1,!<", "x", "> b]\n", "c.yaml:1: more than 1024 bytes of a tag"},
        {"b: 1\na: |\n ", " \n", "", "c.yaml:2: more than 1024 bytes of blank lines"},
    };
    static const struct {
        const char *from, *unit, *to;
    } fine[] = {{"a: ", "x!%", "\n"},      {"a: \"100 % of ", "x %", "\"\n"},
                {"# ", "! % ", "\n"},      {"a: [", "x!,", "x]\n"},
                {"", "# !\n", "a: 1\n"},   {"a: |\n", "  x\n", ""},
                {"a: \"", " x\n ", "\"\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
        if (parse_repeated(slow[i].from, slow[i].unit, 300000, slow[i].to) != CO_E_USAGE ||
            !strstr(co_error_message(), slow[i].message))
            fail_msg("%s: %s", slow[i].from, co_error_message());
    }
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        if (parse_repeated(fine[i].from, fine[i].unit, 2000, fine[i].to) != CO_OK)
            fail_msg("%s: %s", fine[i].from, co_error_message());
}

/* Text may look like a tag only once it is written. */
static void config_long_text_reads_back(void **state)
{
    char text[1536] = "a: {b: \"\\x21", *first;
    co_config *config, *again;

    (void)state;
    memset(text + strlen(text), 'x', 1500 - strlen(text));
    memcpy(text + 1500, "\"}\n", 4);
    config = parse(text);
    first = strdup(written(config));
    again = parse(first);
    assert_string_equal(written(again), first);
    free(first);
    co_config_destroy(again);
    co_config_destroy(config);
}

/* n copies of `unit`, then `end`. */
static char *repeated(const char *unit, size_t n, const char *end)
{
    char *text = malloc(n * strlen(unit) + strlen(end) + 1), *at = text;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        at = stpcpy(at, unit);
    stpcpy(at, end);
    return text;
}

static void config_too_large_or_deep_is_refused(void **state)
{
    static char keys[16 * (CO_CONFIG_MAX_KEYS + 1)];
    co_config *config = NULL;
    char *text, *at = keys;

    (void)state;
    text = repeated("[", 100000, "");
    text[0] = 'a';
    text[1] = ':';
    text[2] = ' ';
    assert_int_equal(co_config_parse(&config, text, 100000, "c.yaml"), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "c.yaml:1:"));
    free(text);
    text = repeated("{a: ", CO_CONFIG_MAX_DEPTH + 1, "");
    assert_int_equal(co_config_parse(&config, text, strlen(text), "c.yaml"), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "values are nested too deeply"));
    free(text);
    text = repeated("#234567\n", CO_CONFIG_MAX_BYTES / 8, "");
    assert_int_equal(co_config_parse(&config, text, CO_CONFIG_MAX_BYTES, "c.yaml"), CO_OK);
    co_config_destroy(config);
    config = NULL;
    free(text);
    assert_int_equal(co_config_parse(&config, "", CO_CONFIG_MAX_BYTES + 1, "c.yaml"), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "c.yaml: 1048577 bytes are more than a config may"));
    for (int i = 0; i <= CO_CONFIG_MAX_KEYS; i++)
        at += sprintf(at, "k%d: %d\n", i, i);
    assert_int_equal(co_config_parse(&config, keys, strlen(keys), "c.yaml"), CO_E_USAGE);
    assert_string_equal(co_error_message(), "c.yaml:1025:1: a map has too many keys");
    assert_int_equal(co_config_parse(&config, "a: 1\0b", 6, "c.yaml"), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "holds a NUL character; is it a text file?"));
    assert_null(config);
}

static void config_unreadable_file_is_refused(void **state)
{
    char path[] = "/tmp/cohort-config-XXXXXX";
    int fd = mkstemp(path);
    co_config *config = NULL;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "model: x\n", 9), 9);
    assert_int_equal(co_config_load(&config, path), CO_OK);
    assert_string_equal(scalar(co_config_root(config), "model"), "x");
    co_config_destroy(config);
    config = NULL;
    assert_int_equal(ftruncate(fd, CO_CONFIG_MAX_BYTES + 1), 0);
    assert_int_equal(co_config_load(&config, path), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "more than the limit"));
    close(fd);
    unlink(path);
    assert_int_equal(co_config_load(&config, path), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "No such file"));
    assert_int_equal(co_config_load(&config, "/tmp"), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "/tmp: is a folder, expected a file"));
    assert_null(config);
}

static void config_set_changes_and_adds_values(void **state)
{
    static const struct {
        const char *assignment, *want;
    } steps[] = {
        {"batch=64", "{optimizer: sgd, list: [1, 2], batch: 64}"},
        {"batch=128", "{optimizer: sgd, list: [1, 2], batch: 128}"},
        {"optimizer.lr=0.1", "{optimizer: {name: sgd, lr: 0.1}, list: [1, 2], batch: 128}"},
        {"optimizer.lr=-1e-3", "{optimizer: {name: sgd, lr: -1e-3}, list: [1, 2], batch: 128}"},
        {"list=[3]", "{optimizer: {name: sgd, lr: -1e-3}, list: [3], batch: 128}"},
        {"optimizer=adam", "{optimizer: adam, list: [3], batch: 128}"},
        {"batch=", "{optimizer: adam, list: [3], batch: ~}"},
        {"batch.a.b={c: d=e}", "{optimizer: adam, list: [3], batch: {a: {b: {c: d=e}}}}"},
    };
    co_config *config = parse("{optimizer: sgd, list: [1, 2]}"), *empty = parse("");

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_int_equal(co_config_set(config, steps[i].assignment), CO_OK);
        assert_string_equal(written(config), steps[i].want);
    }
    co_value_fail(co_value_get(co_config_root(config), "optimizer"), "bad");
    assert_string_equal(co_error_message(), "--set optimizer=adam: bad");
    assert_int_equal(co_config_set(empty, "a.b=1"), CO_OK);
    assert_string_equal(written(empty), "{a: {b: 1}}");
    co_config_destroy(empty);
    co_config_destroy(config);
}

static void config_set_bad_assignment_is_refused(void **state)
{
    static const struct {
        const char *assignment, *message;
    } cases[] = {
        {"batch", "--set batch: expected key=value"},
        {"=3", "--set =3: expected key=value"},
        {"", "--set : expected key=value"},
        {".a=3", "a name between dots is missing"},
        {"a.=3", "a name between dots is missing"},
        {"a..b=3", "a name between dots is missing"},
        {"a b=3", "no key has such letters"},
        {"\xe4=3", "no key has such letters"},
        {"a=\xe4", "is not UTF-8 text"},
        {"list.a=3", "'list' is a list, it has no keys"},
        {"tensorboard.images=2", "'tensorboard' is 'false', which has no keys"},
        {"data.normalize.std=2", "give a map, data.normalize={...}"},
        {"a=[1", "not valid YAML"},
        {"a={b: 1, b: 2}", "the key 'b' is given twice"},
        {"a=&x 1", "anchors"},
    };
    co_config *config = parse("{list: [1], tensorboard: false, data: {normalize: mnist}}");
    char *deep = repeated("a.", 5000, "a=1");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (co_config_set(config, cases[i].assignment) != CO_E_USAGE ||
            !strstr(co_error_message(), cases[i].message))
            fail_msg("%s: message: %s", cases[i].assignment, co_error_message());
    assert_int_equal(co_config_set(config, deep), CO_E_USAGE);
    free(deep);
    co_config_destroy(config);
}

/* Written text reads back equal, for any content. */
static void config_written_text_reads_back(void **state)
{
    static const char *const texts[] = {
        "{a: '', b: '~', c: 'null', d: ~, e: 'x: y', f: '- z', g: \"l\\nm\\t\\x01\\\\\\\"\"}",
        "{a: '12', b: 12, c: 'true', d: -1, e: '-1', f: '-', g: -.5e-3}",
        "{a: [], b: {}, c: [[], {x: []}], d: [~, '']}",
        "{'': 1, '~': 2, 'a b': 3, 'x:': 4, '- y': 5, '{': 6, 'q\"': 7, '#': 8}",
        "{a: 'it''s', b: 'h\xc3\xa4', c: ' lead', d: 'trail ', e: 'x#y', f: 'x #y', g: '? k'}",
        "{url: http://x.y:80/z, time: 12:30, at: '@a', per: '%b', tick: '`c', bang: '!d'}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        co_config *config = parse(texts[i]), *again;
        char *first = strdup(written(config));

        again = parse(first);
        assert_string_equal(written(again), first);
        for (size_t k = 0; k < co_config_root(config)->n; k++) {
            const co_value *a = co_config_root(config)->item[k];
            const co_value *b = co_value_get(co_config_root(again), co_config_root(config)->key[k]);

            assert_non_null(b);
            assert_int_equal(a->kind, b->kind);
            if (a->kind == CO_VALUE_SCALAR)
                assert_string_equal(a->text, b->text);
        }
        free(first);
        co_config_destroy(again);
        co_config_destroy(config);
    }
}

static void config_failed_allocation_is_an_error(void **state)
{
    static const char text[] = "a: [1, {b: c, d: [e, f]}]\ng: h\n";
    co_status st = CO_E_NOMEM;
    uint64_t k;

    (void)state;
    for (k = 1; st != CO_OK && k < 100; k++) {
        co_config *config = NULL;

        co_mem_fail_at(k);
        st = co_config_parse(&config, text, strlen(text), "c.yaml");
        if (st == CO_OK)
            st = co_config_set(config, "g.i.j={k: [1, 2]}");
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        co_config_destroy(config);
    }
    assert_int_equal(st, CO_OK);
    assert_true(k > 3);
}

static co_status config_list_names(void *arg, const char *name, const co_value *value)
{
    char *out = arg;

    sprintf(out + strlen(out), "%s=%s ", name, value->text ? value->text : "-");
    return CO_OK;
}

static void config_values_have_dotted_names(void **state)
{
    static const char text[] = "model: lenet5\noptimizer: {name: sgd, lr: 0.1}\nname: x\n"
                               "a: {name: {name: b, c: 1}, d: {}, e: [1], f: ~}\n";
    co_config *config;
    char names[256] = "";

    (void)state;
    assert_int_equal(co_config_parse(&config, text, sizeof(text) - 1, "c.yaml"), CO_OK);
    assert_int_equal(co_value_walk(co_config_root(config), "", config_list_names, names), CO_OK);
    assert_string_equal(names, "model=lenet5 optimizer=sgd optimizer.lr=0.1 name=x a=b a.c=1 "
                               "a.d=- a.e=- a.f=~ ");
    co_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_parsed_values_know_their_lines),
        cmocka_unit_test(config_missing_value_knows_its_line),
        cmocka_unit_test(config_empty_text_is_an_empty_map),
        cmocka_unit_test(config_bad_text_is_refused_at_its_line),
        cmocka_unit_test(config_text_slow_to_parse_is_refused),
        cmocka_unit_test(config_too_large_or_deep_is_refused),
        cmocka_unit_test(config_unreadable_file_is_refused),
        cmocka_unit_test(config_set_changes_and_adds_values),
        cmocka_unit_test(config_set_bad_assignment_is_refused),
        cmocka_unit_test(config_values_have_dotted_names),
        cmocka_unit_test(config_written_text_reads_back),
        cmocka_unit_test(config_long_text_reads_back),
        cmocka_unit_test(config_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
