/*
 * fuzz_config.c - the config reader over any bytes, as a file and as the value of --set, into a
 * struct with keys of every type.
 *
 * A tree that it accepts must read back equal from what is written of it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
CO_API const char *__lsan_default_suppressions(void);

/* libfyaml keeps the buffer of a long quoted text that never ends (4 KiB, once a failed parse).
   Our own use of it is checked for leaks by tests/core, without this. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

typedef struct settings {
    bool yes;
    int64_t count;
    double real;
    const char *text;
    int choice;
    co_ints ints;
    co_reals reals;
    const co_value *value;
} settings;

static const char *const choices[] = {"one", "two", NULL};

#define KEY(field, kind, ...)                                                                      \
    {                                                                                              \
        .name = #field, .type = kind, .offset = offsetof(settings, field), __VA_ARGS__             \
    }
static const co_key settings_keys[] = {
    KEY(yes, CO_KEY_BOOL, .fallback = "false"),
    KEY(count, CO_KEY_INT, .fallback = "1", .min = -5, .max = 1e18),
    KEY(real, CO_KEY_REAL, .fallback = "0.5"),
    KEY(text, CO_KEY_STRING, .fallback = "~"),
    KEY(choice, CO_KEY_CHOICE, .fallback = "one", .choices = choices),
    KEY(ints, CO_KEY_INTS, .fallback = "~"),
    KEY(reals, CO_KEY_REALS, .fallback = "~"),
    KEY(value, CO_KEY_VALUE, .fallback = "~"),
    CO_KEYS_END,
};

static bool fuzz_equal(const co_value *a, const co_value *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (a->kind == CO_VALUE_SCALAR)
        return strcmp(a->text, b->text) == 0;
    for (size_t i = 0; i < a->n; i++) {
        if (a->kind == CO_VALUE_MAP && strcmp(a->key[i], b->key[i]) != 0)
            return false;
        if (!fuzz_equal(a->item[i], b->item[i]))
            return false;
    }
    return true;
}

/* The tree written as flow YAML is a config that says the same. */
static void fuzz_write(const co_config *config)
{
    co_config *again = NULL;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    if (!out || co_value_write(out, co_config_root(config)) != CO_OK || fclose(out) != 0)
        abort();
    if (size <= CO_CONFIG_MAX_BYTES) {
        if (co_config_parse(&again, text, size, "written") != CO_OK)
            abort();
        if (!fuzz_equal(co_config_root(config), co_config_root(again)))
            abort();
    }
    co_config_destroy(again);
    free(text);
}

static uint64_t fuzz_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Settings that were read are written as lines that read back. */
static void fuzz_keys(co_config *config)
{
    co_config *again = NULL;
    size_t size = 0;
    char *text = NULL;
    settings s, t;
    FILE *out;

    if (co_keys_read(&s, settings_keys, co_config_root(config), "input", co_config_arena(config)) !=
        CO_OK)
        return;
    out = open_memstream(&text, &size);
    if (!out || co_keys_write(out, &s, settings_keys, 0) != CO_OK || fclose(out) != 0)
        abort();
    if (co_config_parse(&again, text, size, "written") != CO_OK ||
        co_keys_read(&t, settings_keys, co_config_root(again), "written", co_config_arena(again)) !=
            CO_OK)
        abort();
    if (s.yes != t.yes || s.count != t.count || s.choice != t.choice || s.ints.n != t.ints.n ||
        s.reals.n != t.reals.n || fuzz_bits(s.real) != fuzz_bits(t.real))
        abort();
    co_config_destroy(again);
    free(text);
}

static void fuzz_set(const char *assignment)
{
    co_config *config = NULL;

    if (co_config_parse(&config, "a: {b: c}", 9, "base") != CO_OK)
        abort();
    if (co_config_set(config, assignment) == CO_OK)
        fuzz_write(config);
    co_config_destroy(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_config *config = NULL;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (co_config_parse(&config, (const char *)data, size, "input") == CO_OK) {
        fuzz_write(config);
        fuzz_keys(config);
    }
    co_config_destroy(config);
    memcpy(text, data, size);
    text[size] = '\0';
    fuzz_set(text);
    free(text);
    return 0;
}
