/*
 * keys.c - from a config map to a plugin's struct, by the plugin's list of keys.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/hints.h"
#include "core/number.h"
#include "core/yaml.h"

#define KEYS_MAX_NAMES 64

typedef struct keys_reader {
    const char *what; /* owner, for messages */
    co_arena *arena;
} keys_reader;

static bool keys_bounded(const co_key *key)
{
    return key->min != 0 || key->max != 0;
}

/* "a number from 0 to 1": the values that a key accepts. */
static const char *keys_expected(char *out, size_t size, const co_key *key)
{
    static const char *const kinds[] = {
        [CO_KEY_BOOL] = "true or false",
        [CO_KEY_INT] = "a whole number",
        [CO_KEY_REAL] = "a number",
        [CO_KEY_STRING] = "a text",
        [CO_KEY_CHOICE] = "one of",
        [CO_KEY_INTS] = "a whole number or a list of them",
        [CO_KEY_REALS] = "a number or a list of them",
        [CO_KEY_VALUE] = "a value",
    };
    const bool named = key->type != CO_KEY_CHOICE && key->choices;
    size_t used;

    if (key->type == CO_KEY_VALUE && key->choices) {
        snprintf(out, size, "%s", key->choices[0]);
        return out;
    }
    used = (size_t)snprintf(out, size, "%s%s%s", named ? key->choices[0] : "", named ? ", or " : "",
                            kinds[key->type]);
    if (key->type == CO_KEY_CHOICE)
        for (const char *const *choice = key->choices; *choice && used < size; choice++)
            used += (size_t)snprintf(out + used, size - used, "%s%s",
                                     choice == key->choices ? " " : ", ", *choice);
    else if (keys_bounded(key) && key->type != CO_KEY_STRING && used < size)
        (void)co_number_print(out + used, size - used, " from %.15g to %.15g", key->min, key->max);
    return out;
}

static co_status keys_fail(const keys_reader *r, const co_key *key, const co_value *value)
{
    char expected[256];

    keys_expected(expected, sizeof(expected), key);
    if (value->kind == CO_VALUE_SCALAR) {
        const char *hint = co_hint_name(key->name, value->text);

        return co_value_fail(value, "%s: key '%s': expected %s, got %s'%s'%s%s", r->what, key->name,
                             expected, value->quoted ? "the text " : "", value->text,
                             hint ? "; " : "", hint ? hint : "");
    }
    return co_value_fail(value, "%s: key '%s': expected %s, got %s", r->what, key->name, expected,
                         value->kind == CO_VALUE_MAP    ? "a map"
                         : value->kind == CO_VALUE_LIST ? "a list"
                                                        : "nothing");
}

/* Digits, sign, point and exponent alone: no hexadecimal, no "inf", no blanks. */
static bool keys_parse_real(double *out, const co_value *value)
{
    char *end;

    if (value->kind != CO_VALUE_SCALAR || value->quoted || !value->text[0] ||
        strspn(value->text, "+-.0123456789eE") != strlen(value->text))
        return false;
    errno = 0;
    *out = co_number_parse(value->text, &end);
    return *end == '\0' && isfinite(*out) && !(errno == ERANGE && fabs(*out) > 1);
}

static bool keys_parse_int(int64_t *out, const co_value *value)
{
    char *end;

    if (value->kind != CO_VALUE_SCALAR || value->quoted || !value->text[0] ||
        strspn(value->text, "+-0123456789") != strlen(value->text))
        return false;
    errno = 0;
    *out = strtoll(value->text, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool keys_in_bounds(const co_key *key, double number)
{
    return !keys_bounded(key) || (number >= key->min && number <= key->max);
}

static co_status keys_read_ints(co_ints *out, const keys_reader *r, const co_key *key,
                                const co_value *value)
{
    size_t n = value->kind == CO_VALUE_LIST ? value->n : 1;
    int64_t *v = co_arena_alloc(r->arena, n, sizeof(*v));

    if (!v)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const co_value *item = value->kind == CO_VALUE_LIST ? value->item[i] : value;

        if (!keys_parse_int(&v[i], item) || !keys_in_bounds(key, (double)v[i]))
            return keys_fail(r, key, item);
    }
    *out = (co_ints){n, v};
    return CO_OK;
}

static co_status keys_read_reals(co_reals *out, const keys_reader *r, const co_key *key,
                                 const co_value *value)
{
    size_t n = value->kind == CO_VALUE_LIST ? value->n : 1;
    double *v = co_arena_alloc(r->arena, n, sizeof(*v));

    if (!v)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const co_value *item = value->kind == CO_VALUE_LIST ? value->item[i] : value;

        if (!keys_parse_real(&v[i], item) || !keys_in_bounds(key, v[i]))
            return keys_fail(r, key, item);
    }
    *out = (co_reals){n, v};
    return CO_OK;
}

static co_status keys_read_choice(int *out, const keys_reader *r, const co_key *key,
                                  const co_value *value)
{
    for (int i = 0; value->kind == CO_VALUE_SCALAR && key->choices[i]; i++)
        if (strcmp(key->choices[i], value->text) == 0) {
            *out = i;
            return CO_OK;
        }
    return keys_fail(r, key, value);
}

static co_status keys_read_scalar(void *field, const keys_reader *r, const co_key *key,
                                  const co_value *value)
{
    bool plain = value->kind == CO_VALUE_SCALAR;

    switch (key->type) {
    case CO_KEY_BOOL:
        if (!plain || (strcmp(value->text, "true") != 0 && strcmp(value->text, "false") != 0))
            return keys_fail(r, key, value);
        *(bool *)field = value->text[0] == 't';
        return CO_OK;
    case CO_KEY_INT:
        if (plain && key->choices && strcmp(key->choices[0], value->text) == 0) {
            *(int64_t *)field = 0;
            return CO_OK;
        }
        if (!keys_parse_int(field, value) || !keys_in_bounds(key, (double)*(int64_t *)field))
            return keys_fail(r, key, value);
        return CO_OK;
    case CO_KEY_REAL:
        if (plain && key->choices && strcmp(key->choices[0], value->text) == 0) {
            *(double *)field = 0;
            return CO_OK;
        }
        if (!keys_parse_real(field, value) || !keys_in_bounds(key, *(double *)field))
            return keys_fail(r, key, value);
        return CO_OK;
    default:
        if (!plain)
            return keys_fail(r, key, value);
        *(const char **)field = value->text;
        return CO_OK;
    }
}

static co_status keys_read_one(void *self, const keys_reader *r, const co_key *key,
                               const co_value *value)
{
    void *field = (char *)self + key->offset;

    if (key->type == CO_KEY_VALUE) {
        *(const co_value **)field = value->kind == CO_VALUE_NULL ? NULL : value;
        return CO_OK;
    }
    /* "~" means absent where the default says so. */
    if (value->kind == CO_VALUE_NULL && key->fallback && strcmp(key->fallback, "~") == 0) {
        if (key->type == CO_KEY_STRING)
            *(const char **)field = NULL;
        else if (key->type == CO_KEY_INTS)
            *(co_ints *)field = (co_ints){0, NULL};
        else if (key->type == CO_KEY_REALS)
            *(co_reals *)field = (co_reals){0, NULL};
        return CO_OK;
    }
    if (key->type == CO_KEY_INTS)
        return keys_read_ints(field, r, key, value);
    if (key->type == CO_KEY_REALS)
        return keys_read_reals(field, r, key, value);
    if (key->type == CO_KEY_CHOICE)
        return keys_read_choice(field, r, key, value);
    return keys_read_scalar(field, r, key, value);
}

static co_status keys_set_default(void *self, const keys_reader *r, const co_key *key,
                                  const co_value *map)
{
    co_value *value;

    if (!key->fallback)
        return co_value_fail(map, "%s: the key '%s' is missing (%s)", r->what, key->name,
                             key->help ? key->help : "it has no default");
    CO_TRY(co_yaml_parse(&value, r->arena, key->fallback, strlen(key->fallback), "default"));
    return keys_read_one(self, r, key, value);
}

const co_key *co_keys_find(const co_key *keys, const char *name)
{
    for (const co_key *key = keys; key && key->name; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

static co_status keys_unknown_of(const char *what, const char *const *names, size_t n,
                                 const co_value *value, const char *name)
{
    char list[1024] = "";
    size_t used = 0;

    for (size_t i = 0; i < n && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
    return co_value_fail(value, "%s: unknown key '%s'; there %s %s", what, name,
                         n == 1 ? "is" : "are", list);
}

static co_status keys_unknown(const keys_reader *r, const co_key *keys, const co_value *value,
                              const char *name)
{
    const char *names[KEYS_MAX_NAMES] = {NULL}, *near, *hint;
    char text[CO_HINT_TEXT];
    size_t n = 0;

    for (const co_key *key = keys; key && key->name && n < KEYS_MAX_NAMES; key++)
        names[n++] = key->name;
    near = co_nearest(name, names, n);
    hint = near && co_hint_same(near, name) ? NULL : co_hint_key(text, r->what, name);
    if (hint)
        return co_value_fail(value, "%s: unknown key '%s'; %s", r->what, name, hint);
    if (near)
        return co_value_fail(value, "%s: unknown key '%s'; did you mean '%s'?", r->what, name,
                             near);
    if (n == 0)
        return co_value_fail(value, "%s: unknown key '%s'; it takes no keys", r->what, name);
    if (strcmp(r->what, "config") == 0)
        return co_value_fail(value, "%s: unknown key '%s'; `cohort list config` explains them",
                             r->what, name);
    return keys_unknown_of(r->what, names, n, value, name);
}

/* A bare value in place of a map is mostly meant for its first key. */
static co_status keys_fail_shape(const co_value *value, const co_key *keys, const char *what)
{
    if (value->kind == CO_VALUE_SCALAR && keys && keys->name)
        return co_value_fail(value,
                             "%s: expected `key: value` lines or {key: value}, such as {%s: %s}",
                             what, keys->name, value->text);
    return co_value_fail(value, "%s: expected `key: value` lines or {key: value}", what);
}

/* `named`: the key "name" says whose keys these are. */
static co_status keys_read(void *self, const keys_reader *r, const co_key *keys,
                           const co_value *map, bool named)
{
    bool empty = !map || map->kind == CO_VALUE_NULL;

    if (!empty && map->kind != CO_VALUE_MAP)
        return keys_fail_shape(map, keys, r->what);
    for (size_t i = 0; !empty && i < map->n; i++)
        if (!co_keys_find(keys, map->key[i]) && !(named && strcmp(map->key[i], "name") == 0))
            return keys_unknown(r, keys, map->item[i], map->key[i]);
    for (const co_key *key = keys; key && key->name; key++) {
        const co_value *value = empty ? NULL : co_value_get(map, key->name);

        CO_TRY(value ? keys_read_one(self, r, key, value) : keys_set_default(self, r, key, map));
    }
    return CO_OK;
}

co_status co_keys_read(void *self, const co_key *keys, const co_value *map, const char *what,
                       co_arena *arena)
{
    return keys_read(self, &(keys_reader){what, arena}, keys, map, false);
}

co_status co_keys_read_named(void *self, const co_key *keys, const co_value *map, const char *what,
                             co_arena *arena)
{
    return keys_read(self, &(keys_reader){what, arena}, keys, map, true);
}

static size_t keys_count(const co_key *keys)
{
    size_t n = 0;

    while (keys && keys[n].name)
        n++;
    return n;
}

co_status co_keys_join(const co_key **out, const co_key *common, const co_key *own, size_t shift,
                       co_arena *arena)
{
    const size_t n_common = keys_count(common), n_own = keys_count(own);
    co_key *keys = co_arena_alloc(arena, n_common + n_own + 1, sizeof(*keys));

    if (!keys)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n_common; i++)
        keys[i] = common[i];
    for (size_t i = 0; i < n_own; i++) {
        keys[n_common + i] = own[i];
        keys[n_common + i].offset += shift;
    }
    *out = keys; /* ends with the arena's zeros */
    return CO_OK;
}

void co_keys_print(FILE *out, const co_key *keys, int indent)
{
    for (const co_key *key = keys; key && key->name; key++) {
        char expected[256];

        fprintf(out, "%*s%-18s %s\n", indent, "", key->name, key->help ? key->help : "");
        fprintf(out, "%*s%-18s %s", indent, "", "", keys_expected(expected, sizeof(expected), key));
        if (!key->fallback)
            fprintf(out, "; must be given\n");
        else if (strcmp(key->fallback, "~") == 0)
            fprintf(out, "\n");
        else
            fprintf(out, "; default %s\n", key->fallback);
    }
}

static void keys_write_real(FILE *out, double number)
{
    char text[32];

    (void)co_number_print(text, sizeof(text), "%.17g", number);
    fputs(text, out);
}

static void keys_write_field(FILE *out, const void *field, const co_key *key)
{
    const co_ints *ints = field;
    const co_reals *reals = field;
    const char *text;

    switch (key->type) {
    case CO_KEY_BOOL:
        fputs(*(const bool *)field ? "true" : "false", out);
        break;
    case CO_KEY_INT:
        if (key->choices && *(const int64_t *)field == 0)
            fputs(key->choices[0], out);
        else
            fprintf(out, "%lld", (long long)*(const int64_t *)field);
        break;
    case CO_KEY_REAL:
        if (key->choices && *(const double *)field == 0)
            fputs(key->choices[0], out);
        else
            keys_write_real(out, *(const double *)field);
        break;
    case CO_KEY_CHOICE:
        fputs(key->choices[*(const int *)field], out);
        break;
    case CO_KEY_INTS:
        for (size_t i = 0; i < ints->n; i++)
            fprintf(out, "%s%lld", i ? ", " : "[", (long long)ints->v[i]);
        fputs(ints->n ? "]" : "~", out);
        break;
    case CO_KEY_REALS:
        for (size_t i = 0; i < reals->n; i++) {
            fputs(i ? ", " : "[", out);
            keys_write_real(out, reals->v[i]);
        }
        fputs(reals->n ? "]" : "~", out);
        break;
    default:
        text = *(const char *const *)field;
        if (text)
            (void)co_value_write(out, &(co_value){CO_VALUE_SCALAR, .text = text, .quoted = true});
        else
            fputs("~", out);
    }
}

co_status co_keys_write(FILE *out, const void *self, const co_key *keys, int indent)
{
    for (const co_key *key = keys; key && key->name; key++) {
        const void *field = (const char *)self + key->offset;

        fprintf(out, "%*s%s: ", indent, "", key->name);
        if (key->type != CO_KEY_VALUE)
            keys_write_field(out, field, key);
        else if (*(const co_value *const *)field)
            CO_TRY(co_value_write(out, *(const co_value *const *)field));
        else
            fputs("~", out);
        fputc('\n', out);
    }
    return ferror(out) ? co_fail(CO_E_IO, "cannot write the config") : CO_OK;
}
