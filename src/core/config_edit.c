/*
 * config_edit.c - changes the text of a config at one place.
 *
 * By the bytes that a value has in the text. What comes out is read again and compared with what
 * co_config_set makes of the same assignment, so a text of an unusual form is refused, and never
 * spoiled.
 */
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/mem.h"
#include "core/text.h"

#define EDIT_MAX_NAME 256

/* Replace the bytes [begin, end) of the text. */
typedef struct edit {
    const char *text;
    size_t size, begin, end;
    const char *before, *after; /* around what is put there */
    int braces;                 /* to close at the end */
    int indent;                 /* after it: a new line with so many spaces; -1: none */
} edit;

/* The bytes of a value; those that the parser gives for a quoted one are without the quotes. */
static void edit_span(edit *e, const co_value *value)
{
    const char *text = e->text;
    const size_t begin = value->begin, end = value->end;
    const bool inside = value->quoted && begin > 0 && end < e->size &&
                        (text[end] == '"' || text[end] == '\'') && text[begin - 1] == text[end];

    e->begin = begin - inside;
    e->end = end + inside;
}

static bool edit_is_flow(const edit *e, const co_value *map)
{
    return map->end > map->begin && e->text[map->begin] == '{';
}

/* Where a key is added to a map. False: nowhere. */
static bool edit_enter(edit *e, const co_value *map, bool root)
{
    const co_value *last = map->n ? map->item[map->n - 1] : NULL;

    if (edit_is_flow(e, map)) {
        if (last)
            edit_span(e, last);
        e->begin = e->end = last ? e->end : map->begin + 1;
        e->before = last ? ", " : "";
        return !last || last->end > last->begin;
    }
    if (root) {
        e->begin = e->end = e->size;
        e->before = e->size && e->text[e->size - 1] != '\n' ? "\n" : "";
        e->after = "\n";
        return true;
    }
    /* a block: before its first key, whose column all keys have */
    e->begin = e->end = map->begin;
    e->indent = map->column - 1;
    return map->end > map->begin;
}

/* Find the place, of a copy of the assignment's key; *name gets what has to be written of it, and
 *whole the key of the map that a scalar there becomes, or NULL. */
static bool edit_find(edit *e, const char **name, const char **whole, const co_config *config,
                      const char *assignment, char *path)
{
    const char *begin = path;
    const co_value *value = co_config_root(config);
    bool root = true;

    *whole = NULL;
    for (*name = path; **name;) {
        char *dot = strchr(path, '.');
        const co_value *found;

        if (value->kind != CO_VALUE_MAP && !(root && value->kind == CO_VALUE_NULL))
            break;
        if (dot)
            *dot = '\0';
        found = co_value_get(value, path);
        if (!found) {
            if (dot)
                *dot = '.';
            return edit_enter(e, value, root);
        }
        value = found;
        path = dot ? dot + 1 : path + strlen(path);
        *name = path;
        root = false;
    }
    edit_span(e, value);
    if (**name && value->kind != CO_VALUE_SCALAR)
        return false;
    if (**name)
        *whole = co_config_whole(assignment, (size_t)(*name - begin) - 1);
    return value->end > value->begin && (!**name || *whole);
}

/* "a.b" as "a: {b: " */
static void edit_write_name(FILE *out, edit *e, const char *name)
{
    for (const char *dot; (dot = strchr(name, '.')); name = dot + 1, e->braces++)
        fprintf(out, "%.*s: {", (int)(dot - name), name);
    if (*name)
        fprintf(out, "%s: ", name);
}

static co_status edit_write(char **out, edit *e, const char *name, const char *whole,
                            const char *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return co_fail(CO_E_NOMEM, "out of memory");
    fwrite(e->text, 1, e->begin, stream);
    fputs(e->before, stream);
    if (whole) {
        fprintf(stream, "{%s: %.*s, ", whole, (int)(e->end - e->begin), e->text + e->begin);
        e->braces++;
    }
    edit_write_name(stream, e, name);
    fputs(value, stream);
    for (int i = 0; i < e->braces; i++)
        fputc('}', stream);
    fputs(e->after, stream);
    if (e->indent >= 0)
        fprintf(stream, "\n%*s", e->indent, "");
    fwrite(e->text + e->end, 1, e->size - e->end, stream);
    return co_text_take(out, stream, &text, CO_OK);
}

/* Maps are equal in any order. */
static bool edit_equal(const co_value *a, const co_value *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (a->kind == CO_VALUE_SCALAR)
        return strcmp(a->text, b->text) == 0 && a->quoted == b->quoted;
    for (size_t i = 0; i < a->n; i++) {
        const co_value *other = a->kind == CO_VALUE_MAP ? co_value_get(b, a->key[i]) : b->item[i];

        if (!other || !edit_equal(a->item[i], other))
            return false;
    }
    return true;
}

static co_status edit_check(co_config *wanted, const char *text)
{
    co_config *config = NULL;
    const bool same = co_config_parse(&config, text, strlen(text), "config") == CO_OK &&
                      edit_equal(co_config_root(config), co_config_root(wanted));

    co_config_destroy(config);
    return same ? CO_OK : CO_E_UNSUPPORTED;
}

static co_status edit_make(char **out, co_config *config, const char *text, size_t size,
                           const char *assignment)
{
    edit e = {.text = text, .size = size, .before = "", .after = "", .indent = -1};
    const char *equals = strchr(assignment, '='), *name, *whole;
    char path[EDIT_MAX_NAME];
    bool found;
    co_status st;

    if (!equals || equals == assignment || equals - assignment >= EDIT_MAX_NAME)
        return co_fail(CO_E_USAGE, "%s: expected key=value", assignment);
    memcpy(path, assignment, (size_t)(equals - assignment));
    path[equals - assignment] = '\0';
    found = edit_find(&e, &name, &whole, config, assignment, path);
    if (!found)
        return CO_E_UNSUPPORTED;
    CO_TRY(edit_write(out, &e, name, whole, equals + 1));
    CO_TRY(co_config_set(config, assignment));
    st = edit_check(config, *out);
    if (st != CO_OK) {
        co_free(*out);
        *out = NULL;
    }
    return st;
}

co_status co_config_edit(char **out, const char *text, size_t size, const char *assignment)
{
    co_config *config;
    co_status st;

    *out = NULL;
    CO_TRY(co_config_parse(&config, text, size, "config"));
    st = edit_make(out, config, text, size, assignment);
    co_config_destroy(config);
    return st == CO_E_UNSUPPORTED ? co_fail(st, "%s: cannot be written into this text", assignment)
                                  : st;
}
