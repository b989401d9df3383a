/* keys_check.c - a list of keys that comes from outside: whether it can be read by at all. */
#include <stdalign.h>
#include <string.h>

#include "core/config.h"
#include "core/mem.h"
#include "core/status.h"
#include "core/text.h"

static const struct {
    size_t size, alignment;
} keys_types[] = {
    [CO_KEY_BOOL] = {sizeof(bool), alignof(bool)},
    [CO_KEY_INT] = {sizeof(int64_t), alignof(int64_t)},
    [CO_KEY_REAL] = {sizeof(double), alignof(double)},
    [CO_KEY_STRING] = {sizeof(const char *), alignof(const char *)},
    [CO_KEY_CHOICE] = {sizeof(int), alignof(int)},
    [CO_KEY_INTS] = {sizeof(co_ints), alignof(co_ints)},
    [CO_KEY_REALS] = {sizeof(co_reals), alignof(co_reals)},
    [CO_KEY_VALUE] = {sizeof(const co_value *), alignof(const co_value *)},
};

/* What is wrong with the key; NULL: nothing. */
static const char *keys_wrong(const co_key *key, size_t size)
{
    const size_t n = strspn(key->name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    if (n == 0 || key->name[n] != '\0')
        return "a name is of small letters, digits and _";
    if ((size_t)key->type >= sizeof(keys_types) / sizeof(keys_types[0]))
        return "there is no such type";
    if (key->type == CO_KEY_CHOICE && (!key->choices || !key->choices[0]))
        return "a CO_KEY_CHOICE has choices";
    if (keys_types[key->type].size > size || key->offset > size - keys_types[key->type].size)
        return "its field is outside the plugin's struct, which has self_size bytes";
    if (key->offset % keys_types[key->type].alignment)
        return "no field of its type is at this offset";
    return NULL;
}

/* The default is a value that the key takes. */
static co_status keys_check_default(void *self, const co_key *key, const char *what)
{
    const co_key one[] = {*key, CO_KEYS_END};
    co_arena *arena;
    co_status st;

    if (!key->fallback)
        return CO_OK;
    arena = co_arena_create();
    if (!arena)
        return CO_E_NOMEM;
    st = co_keys_read(self, one, NULL, what, arena);
    co_arena_destroy(arena);
    return st;
}

co_status co_keys_check(const co_key *keys, const co_key *common, size_t size, const char *what)
{
    void *self = co_calloc(size ? size : 1, 1);
    co_status st = self ? CO_OK : CO_E_NOMEM;

    for (const co_key *key = keys; st == CO_OK && key && key->name; key++) {
        const char *wrong = keys_wrong(key, size);

        if (!wrong && co_keys_find(common, key->name))
            wrong = "all of this kind have a key of this name";
        if (!wrong && co_keys_find(key + 1, key->name))
            wrong = "there is another of this name";
        st = wrong ? co_fail(CO_E_USAGE, "%s: key '%s': %s", what, CO_SHOW(key->name), wrong)
                   : keys_check_default(self, key, what);
    }
    co_free(self);
    return st;
}
