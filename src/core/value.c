/*
 * value.c - looking into a config's tree, printing it, and saying where in it something is wrong.
 */
#include <stdarg.h>
#include <string.h>

#include "core/config.h"
#include "core/hints.h"
#include "core/number.h"
#include "core/yaml.h"

const co_value *co_value_get(const co_value *map, const char *key)
{
    if (!map || map->kind != CO_VALUE_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (strcmp(map->key[i], key) == 0)
            return map->item[i];
    return NULL;
}

co_status co_value_walk(const co_value *value, const char *name, co_value_visit *visit, void *arg)
{
    if (value->kind != CO_VALUE_MAP || value->n == 0)
        return visit(arg, name, value);
    for (size_t i = 0; i < value->n; i++) {
        const bool own = *name && strcmp(value->key[i], "name") == 0;
        char below[CO_CONFIG_MAX_NAME];

        if (snprintf(below, sizeof(below), "%s%s%s", name, *name && !own ? "." : "",
                     own ? "" : value->key[i]) < (int)sizeof(below))
            CO_TRY(co_value_walk(value->item[i], below, visit, arg));
    }
    return CO_OK;
}

co_status co_value_fail(const co_value *value, const char *fmt, ...)
{
    char message[1500];
    va_list args;

    va_start(args, fmt);
    (void)co_number_vprint(message, sizeof(message), fmt, args);
    va_end(args);
    if (!value || !value->source)
        return co_fail(CO_E_USAGE, "%s", message);
    /* Text given on a command line or by a program is shown whole: it needs no line. */
    if (value->line == 0 || value->source[0] == '\'' || strncmp(value->source, "--", 2) == 0)
        return co_fail(CO_E_USAGE, "%s: %s", value->source, message);
    return co_fail(CO_E_USAGE, "%s:%d:%d: %s", value->source, value->line, value->column, message);
}

co_value co_value_absent(const co_value *place)
{
    co_value absent = {.kind = CO_VALUE_NULL};

    if (place) {
        absent.source = place->source;
        absent.line = place->line;
        absent.column = place->column;
    }
    return absent;
}

static bool value_has_place(const char *message, const co_value *value)
{
    const char *source = value && value->source ? value->source : "--set";
    const size_t n = strlen(source);

    return (strncmp(message, source, n) == 0 && message[n] == ':') ||
           strncmp(message, "--set ", 6) == 0;
}

co_status co_value_place(co_status st, const co_value *value)
{
    char cause[1024];

    if (st != CO_E_USAGE || value_has_place(co_error_message(), value))
        return st;
    snprintf(cause, sizeof(cause), "%s", co_error_message());
    return co_value_fail(value, "%s", cause);
}

co_status co_value_plugin(const char **name, const co_value **map, const co_value *value,
                          const char *what)
{
    const co_value *inner;

    *map = NULL;
    if (value->kind == CO_VALUE_SCALAR) {
        *name = value->text;
        return CO_OK;
    }
    inner = co_value_get(value, "name");
    if (!inner && *name && value->kind == CO_VALUE_MAP) {
        *map = value;
        return CO_OK;
    }
    if (!inner || inner->kind != CO_VALUE_SCALAR)
        return co_value_fail(value, "%s: expected a name, or {name: ..., key: value}", what);
    *name = inner->text;
    *map = value;
    return CO_OK;
}

/* Levenshtein distance, at most `limit` + 1. */
static size_t value_distance(const char *a, const char *b, size_t limit)
{
    size_t row[64], n = strlen(b);

    if (n >= 63 || strlen(a) >= 63)
        return limit + 1;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (a[i] != b[j]);

            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (diagonal + 1 < best)
                best = diagonal + 1;
            row[j + 1] = best;
        }
    }
    return row[n];
}

const char *co_nearest(const char *name, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t limit = strlen(name) < 4 ? 1 : strlen(name) / 3 + 1, nearest = limit + 1;

    for (size_t i = 0; i < n; i++) {
        size_t distance = co_hint_same(name, names[i]) ? 0 : value_distance(name, names[i], limit);

        if (distance < nearest) {
            nearest = distance;
            best = names[i];
        }
    }
    return best;
}

co_status co_value_unknown(const co_value *value, const char *what, const char *name,
                           const char *const *names, size_t n)
{
    const co_value *inner = co_value_get(value, "name");
    const co_value *at = inner ? inner : value;
    const char *near = co_nearest(name, names, n), *hint = co_hint_name(what, name);
    char list[1024] = "";
    size_t used = 0;

    if (hint && !(near && co_hint_same(near, name)))
        return co_value_fail(at, "unknown %s '%s'; %s", what, name, hint);
    if (near)
        return co_value_fail(at, "unknown %s '%s'; did you mean '%s'?", what, name, near);
    for (size_t i = 0; i < n && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
    return co_value_fail(at, "unknown %s '%s'; there are %s", what, name, list);
}

/* Whether a plain scalar would not read back as the same text. */
static bool value_needs_quotes(const co_value *value)
{
    static const char *const words[] = {"~", "null", "Null", "NULL", ""};
    const char *text = value->text;

    for (size_t i = 0; value->quoted && i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    if (value->quoted)
        return true;
    return text[strcspn(text, ",[]{}#&*!|>'\"%@`\n\t\\")] != '\0' || strstr(text, ": ") ||
           text[0] == '-' || text[0] == '?' || text[0] == ':' || text[0] == ' ' ||
           (text[0] && (text[strlen(text) - 1] == ':' || text[strlen(text) - 1] == ' '));
}

/* In a long text "!" is spelt out, as with what is around it it might look like a tag that is too
   long to be read back. */
static void value_write_text(FILE *out, const char *text, bool quotes)
{
    const bool spell = strlen(text) > CO_YAML_MAX_SLOW / 8;

    if (!quotes) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f || (*c == '!' && spell))
            fprintf(out, "\\x%02x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void value_write(FILE *out, const co_value *value)
{
    bool map = value->kind == CO_VALUE_MAP;

    if (value->kind == CO_VALUE_NULL) {
        fputc('~', out);
        return;
    }
    if (value->kind == CO_VALUE_SCALAR) {
        /* A number keeps its sign bare. */
        bool number = !value->quoted && value->text[0] == '-' && value->text[1] != ' ' &&
                      value->text[1] &&
                      strspn(value->text, "+-.0123456789eE") == strlen(value->text);

        value_write_text(out, value->text, !number && value_needs_quotes(value));
        return;
    }
    fputc(map ? '{' : '[', out);
    for (size_t i = 0; i < value->n; i++) {
        if (i)
            fputs(", ", out);
        if (map) {
            const co_value key = {.text = value->key[i], .quoted = false};
            bool quotes = value_needs_quotes(&key) || !key.text[0] || strchr(key.text, ':') ||
                          strcmp(key.text, "~") == 0 || strcmp(key.text, "null") == 0;

            value_write_text(out, value->key[i], quotes);
            fputs(": ", out);
        }
        value_write(out, value->item[i]);
    }
    fputc(map ? '}' : ']', out);
}

co_status co_value_write(FILE *out, const co_value *value)
{
    value_write(out, value);
    return ferror(out) ? co_fail(CO_E_IO, "cannot write the config") : CO_OK;
}
