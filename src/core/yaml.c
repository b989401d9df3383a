/*
 * yaml.c - YAML text to a tree of values; the only file that knows the YAML library.
 *
 * A config is data, not a program: anchors, aliases, tags and several documents are refused.
 */
#include "core/yaml.h"

#include <libfyaml.h>
#include <string.h>

#include "core/mem.h"
#include "core/utf8.h"

typedef struct yaml_reader {
    struct fy_parser *parser;
    struct fy_diag *diag;
    co_arena *arena;
    const char *source;
} yaml_reader;

static co_status yaml_fail_at(const yaml_reader *r, struct fy_event *event, const char *what)
{
    const struct fy_mark *mark = event ? fy_event_start_mark(event) : NULL;

    return co_fail(CO_E_USAGE, "%s:%d:%d: %s", r->source, mark ? mark->line + 1 : 1,
                   mark ? mark->column + 1 : 1, what);
}

/* The parser stopped: its first complaint, with its place. */
static co_status yaml_fail_parse(const yaml_reader *r)
{
    void *at = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(r->diag, &at);

    if (!error)
        return co_fail(CO_E_USAGE, "%s: is not valid YAML", r->source);
    return co_fail(CO_E_USAGE, "%s:%d:%d: not valid YAML: %s", r->source,
                   error->line > 0 ? error->line : 1, error->column > 0 ? error->column : 1,
                   error->msg ? error->msg : "syntax error");
}

static struct fy_event *yaml_next(yaml_reader *r)
{
    return fy_parser_parse(r->parser);
}

static co_status yaml_refuse_extras(const yaml_reader *r, struct fy_event *event)
{
    if (event->type == FYET_ALIAS)
        return yaml_fail_at(r, event, "aliases (*name) are not supported; write the value out");
    if (fy_event_get_anchor_token(event))
        return yaml_fail_at(r, event, "anchors (&name) are not supported; write the value out");
    if (fy_event_get_tag_token(event))
        return yaml_fail_at(r, event, "tags (!name) are not supported; leave the tag out");
    return CO_OK;
}

static co_status yaml_text(const char **out, yaml_reader *r, struct fy_event *event)
{
    size_t size = 0;
    const char *text = event->scalar.value ? fy_token_get_text(event->scalar.value, &size) : "";
    char *copy;

    if (!text)
        return co_fail(CO_E_NOMEM, "out of memory");
    if (memchr(text, '\0', size))
        return yaml_fail_at(r, event, "a value must not hold a NUL character");
    copy = co_arena_alloc(r->arena, size + 1, 1);
    if (!copy)
        return CO_E_NOMEM;
    memcpy(copy, text, size);
    *out = copy;
    return CO_OK;
}

static co_status yaml_scalar(co_value *value, yaml_reader *r, struct fy_event *event)
{
    enum fy_scalar_style style =
        event->scalar.value ? fy_token_scalar_style(event->scalar.value) : FYSS_PLAIN;

    CO_TRY(yaml_text(&value->text, r, event));
    value->quoted = style != FYSS_PLAIN;
    value->kind = CO_VALUE_SCALAR;
    if (!value->quoted &&
        (!value->text[0] || strcmp(value->text, "~") == 0 || strcmp(value->text, "null") == 0))
        value->kind = CO_VALUE_NULL;
    return CO_OK;
}

static co_status yaml_value(co_value **out, yaml_reader *r, struct fy_event *event,
                            const co_value *place, int depth);

/* Append to a list or map whose arrays grow by doubling inside the arena. */
static co_status yaml_append(co_value *to, yaml_reader *r, const char *key, co_value *item)
{
    if ((to->n & (to->n - 1)) == 0) {
        size_t cap = to->n ? to->n * 2 : 1;
        co_value **items = co_arena_alloc(r->arena, cap, sizeof(*items));
        const char **keys = co_arena_alloc(r->arena, cap, sizeof(*keys));

        if (!items || !keys)
            return CO_E_NOMEM;
        if (to->n) {
            memcpy(items, to->item, to->n * sizeof(*items));
            memcpy(keys, to->key, to->n * sizeof(*keys));
        }
        to->item = items;
        to->key = keys;
    }
    to->key[to->n] = key;
    to->item[to->n++] = item;
    return CO_OK;
}

static void yaml_place(co_value *value, const struct fy_mark *mark, const co_value *place)
{
    value->line = mark ? mark->line + 1 : place ? place->line : 1;
    value->column = mark ? mark->column + 1 : place ? place->column : 1;
}

/* Bytes of the text from where a value begins to where the event ends that is its last. */
static void yaml_extend(co_value *value, const struct fy_mark *begin, struct fy_event *event)
{
    const struct fy_mark *end = event ? fy_event_end_mark(event) : NULL;

    if (begin)
        value->begin = value->end = begin->input_pos;
    if (end && end->input_pos > value->begin)
        value->end = end->input_pos;
}

static co_status yaml_list(co_value *list, yaml_reader *r, int depth)
{
    for (;;) {
        struct fy_event *event = yaml_next(r);
        co_value *item = NULL;
        co_status st = CO_OK;
        bool end = event && event->type == FYET_SEQUENCE_END;

        if (!event)
            return yaml_fail_parse(r);
        if (!end)
            st = yaml_value(&item, r, event, list, depth);
        else
            yaml_extend(list, NULL, event);
        fy_parser_event_free(r->parser, event);
        if (end || st != CO_OK)
            return st;
        CO_TRY(yaml_append(list, r, NULL, item));
    }
}

static co_status yaml_key(const char **out, yaml_reader *r, struct fy_event *event,
                          const co_value *map)
{
    CO_TRY(yaml_refuse_extras(r, event));
    if (event->type != FYET_SCALAR)
        return yaml_fail_at(r, event, "a key must be a plain name");
    if (map->n == CO_CONFIG_MAX_KEYS)
        return yaml_fail_at(r, event, "a map has too many keys");
    CO_TRY(yaml_text(out, r, event));
    if (co_value_get(map, *out)) {
        const struct fy_mark *mark = fy_event_start_mark(event);

        return co_fail(CO_E_USAGE, "%s:%d:%d: the key '%s' is given twice", r->source,
                       mark ? mark->line + 1 : 1, mark ? mark->column + 1 : 1, *out);
    }
    return CO_OK;
}

static co_status yaml_map(co_value *map, yaml_reader *r, int depth)
{
    for (;;) {
        struct fy_event *event = yaml_next(r);
        const char *key = NULL;
        co_value *item = NULL, place = {.source = r->source};
        co_status st = CO_OK;
        bool end = event && event->type == FYET_MAPPING_END;

        if (!event)
            return yaml_fail_parse(r);
        if (!end)
            st = yaml_key(&key, r, event, map);
        else
            yaml_extend(map, NULL, event);
        yaml_place(&place, event ? fy_event_start_mark(event) : NULL, map);
        fy_parser_event_free(r->parser, event);
        if (end || st != CO_OK)
            return st;
        event = yaml_next(r);
        if (!event)
            return yaml_fail_parse(r);
        st = yaml_value(&item, r, event, &place, depth);
        fy_parser_event_free(r->parser, event);
        if (st != CO_OK)
            return st;
        CO_TRY(yaml_append(map, r, key, item));
    }
}

/* Only a value that is left out has no characters: libfyaml says, by release, nothing of its place
   or that it is where its key ends. */
static bool yaml_is_left_out(const struct fy_event *event)
{
    size_t size = 0;

    if (event->type != FYET_SCALAR)
        return false;
    if (!event->scalar.value)
        return true;
    (void)fy_token_get_text(event->scalar.value, &size);
    return size == 0 && fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
}

/* `place`: of a value that is left out, or whose event has none: its key's, or the list's; NULL:
   the beginning. */
static co_status yaml_value(co_value **out, yaml_reader *r, struct fy_event *event,
                            const co_value *place, int depth)
{
    const struct fy_mark *mark = yaml_is_left_out(event) ? NULL : fy_event_start_mark(event);
    co_value *value = co_arena_alloc(r->arena, 1, sizeof(*value));

    if (!value)
        return CO_E_NOMEM;
    value->source = r->source;
    yaml_place(value, mark, place);
    yaml_extend(value, mark, mark ? event : NULL);
    *out = value;
    CO_TRY(yaml_refuse_extras(r, event));
    if (depth >= CO_CONFIG_MAX_DEPTH)
        return yaml_fail_at(r, event, "values are nested too deeply");
    if (event->type == FYET_SCALAR)
        return yaml_scalar(value, r, event);
    value->kind = event->type == FYET_MAPPING_START ? CO_VALUE_MAP : CO_VALUE_LIST;
    return value->kind == CO_VALUE_MAP ? yaml_map(value, r, depth + 1)
                                       : yaml_list(value, r, depth + 1);
}

/* Stream and document brackets around one value. */
static co_status yaml_document(co_value **out, yaml_reader *r)
{
    int documents = 0;

    for (;;) {
        struct fy_event *event = yaml_next(r);
        co_status st = CO_OK;
        bool end = event && event->type == FYET_STREAM_END;

        if (!event)
            return yaml_fail_parse(r);
        if (event->type == FYET_DOCUMENT_START && ++documents > 1)
            st = yaml_fail_at(r, event, "a config is one document; remove the second '---'");
        else if (event->type >= FYET_MAPPING_START)
            st = yaml_value(out, r, event, NULL, 0);
        fy_parser_event_free(r->parser, event);
        if (end || st != CO_OK)
            return st;
    }
}

/* What the parser would let pass and no other reader of the values expects. */
static co_status yaml_check_text(const char *text, size_t size, const char *source)
{
    uint32_t code;
    int line = 1;

    for (size_t at = 0, n; at < size; at += n) {
        n = co_utf8_decode(&code, (const uint8_t *)text + at, size - at);
        if (n == 0)
            return co_fail(CO_E_USAGE, "%s:%d: is not UTF-8 text", source, line);
        if (text[at] == '\0')
            return co_fail(CO_E_USAGE, "%s:%d: holds a NUL character; is it a text file?", source,
                           line);
        line += text[at] == '\n';
    }
    return CO_OK;
}

static bool yaml_is_break(char c)
{
    return c == '\n' || c == '\r';
}

static bool yaml_is_blank(char c)
{
    return c == ' ' || c == '\t' || yaml_is_break(c);
}

/* Bytes of what begins at `at` and takes the parser the square of its length: blank lines (in a
   block of text), a directive, which ends with its line, a tag, which ends at a blank. 0: nothing
   of these. Counts no further than is needed to refuse it. */
static size_t yaml_slow_length(const char *text, size_t size, size_t at)
{
    const bool start = at == 0 || (at == 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0);
    const bool blank = yaml_is_break(text[at]);
    const bool directive = text[at] == '%' && (start || yaml_is_break(text[at - 1]));
    const bool tag = text[at] == '!' && (start || strchr(" \t\r\n[]{},:\"'", text[at - 1]));
    size_t n = 0;

    if (!blank && !directive && !tag)
        return 0;
    while (n <= CO_YAML_MAX_SLOW && at + n < size &&
           (directive ? !yaml_is_break(text[at + n]) : yaml_is_blank(text[at + n]) == blank))
        n++;
    return n;
}

static co_status yaml_check_time(const char *text, size_t size, const char *source)
{
    int line = 1;

    for (size_t at = 0, n; at < size; at += n ? n : 1) {
        n = yaml_slow_length(text, size, at);
        if (n > CO_YAML_MAX_SLOW)
            return co_fail(CO_E_USAGE, "%s:%d: more than %d %s; no config needs that", source, line,
                           CO_YAML_MAX_SLOW,
                           text[at] == '%'   ? "bytes of a directive (%NAME)"
                           : text[at] == '!' ? "bytes of a tag (!name)"
                                             : "bytes of blank lines");
        for (size_t i = at; i < at + (n ? n : 1); i++)
            line += text[i] == '\n';
    }
    return CO_OK;
}

co_status co_yaml_parse(co_value **out, co_arena *arena, const char *text, size_t size,
                        const char *source)
{
    struct fy_diag_cfg diag_cfg;
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_DEFAULT_PARSE};
    yaml_reader reader = {.arena = arena, .source = source};
    co_status st;

    *out = co_arena_alloc(arena, 1, sizeof(**out));
    if (!*out)
        return CO_E_NOMEM;
    **out = (co_value){.kind = CO_VALUE_NULL, .source = source, .line = 1, .column = 1};
    CO_TRY(yaml_check_text(text, size, source));
    CO_TRY(yaml_check_time(text, size, source));
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    reader.diag = fy_diag_create(&diag_cfg);
    if (!reader.diag)
        return co_fail(CO_E_NOMEM, "out of memory");
    fy_diag_set_collect_errors(reader.diag, true);
    cfg.diag = reader.diag;
    reader.parser = fy_parser_create(&cfg);
    if (!reader.parser || fy_parser_set_string(reader.parser, text, size) != 0)
        st = co_fail(CO_E_NOMEM, "out of memory");
    else
        st = yaml_document(out, &reader);
    fy_parser_destroy(reader.parser);
    fy_diag_destroy(reader.diag);
    return st;
}
