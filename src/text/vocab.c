/*
 * vocab.c - vocab.json as Hugging Face's tokenizers write it: each token, in the characters of
 * merges.txt, with its number. Untrusted input.
 *
 * Its numbers must be those of the merges. What follows after the last is no text: special tokens
 * such as <|endoftext|>, which are written as they are called, and which no text is encoded to.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/mem.h"
#include "text/bpe.h"
#include "text/bpe_internal.h"

#define VOCAB_MAX_FILE ((size_t)64 << 20)

/* The token's name, as a text of JSON without quotes; `alphabet` has the character of each byte's
   token. */
static void vocab_write_name(FILE *out, const co_bpe *bpe, const uint32_t *alphabet, uint32_t token)
{
    const bool special = co_bpe_is_special(bpe, token);
    size_t n;
    const uint8_t *piece = co_bpe_piece(bpe, &n, token);

    for (size_t i = 0; i < n; i++) {
        uint8_t text[CO_UTF8_MAX] = {piece[i]};
        const size_t k = special ? 1 : co_utf8_encode(text, alphabet[bpe->of_byte[piece[i]]]);

        if (text[0] == '"' || text[0] == '\\')
            fputc('\\', out);
        if (text[0] < ' ')
            fprintf(out, "\\u%04x", text[0]);
        else
            fwrite(text, 1, k, out);
    }
}

co_status co_bpe_save_vocab(const co_bpe *bpe, const char *path)
{
    uint32_t alphabet[CO_BPE_BYTES];
    co_atomic_file *file;
    FILE *out;

    co_bpe_alphabet(alphabet);
    CO_TRY(co_atomic_open(&file, path));
    out = co_atomic_stream(file);
    for (uint32_t t = 0; t < bpe->n; t++) {
        fputs(t ? ",\"" : "{\"", out);
        vocab_write_name(out, bpe, alphabet, t);
        fprintf(out, "\":%u", t);
    }
    fputs("}", out);
    return co_atomic_commit(file);
}

/* The number of a token in the file, below `n`; -1: it is none. */
static json_int_t vocab_number(const json_t *value, size_t n)
{
    const json_int_t number = json_integer_value(value);

    return json_is_integer(value) && number >= 0 && (size_t)number < n ? number : -1;
}

/* Names by their numbers; each number comes once. */
static co_status vocab_order(const char **name, json_t *map, size_t n, const char *path)
{
    const char *key;
    json_t *value;

    json_object_foreach(map, key, value)
    {
        const json_int_t number = vocab_number(value, n);

        if (number < 0 || name[number])
            return co_fail(CO_E_DATA,
                           "%s: token '%.40s': its number is none from 0 to %zu, or another's",
                           path, key, n - 1);
        name[number] = key;
    }
    return CO_OK;
}

static co_status vocab_take(co_bpe *bpe, const char *const *name, size_t n, const char *path)
{
    const uint32_t known = bpe->n;

    if (n < known)
        return co_fail(CO_E_DATA, "%s: has %zu tokens, and the merges make %u", path, n, known);
    for (uint32_t t = 0; t < n; t++) {
        const size_t size = strlen(name[t]);
        uint32_t found = t;

        if (t >= known)
            CO_TRY(co_bpe_add_special(bpe, (const uint8_t *)name[t], size));
        else if (co_bpe_named(&found, bpe, (const uint8_t *)name[t], size) == CO_E_NOMEM)
            return CO_E_NOMEM;
        else if (found != t)
            return co_fail(CO_E_DATA,
                           "%s: token '%.40s' is number %u, which is not that of the merges; only "
                           "GPT-2's order is read: bytes, merges, special tokens",
                           path, name[t], t);
    }
    return CO_OK;
}

co_status co_bpe_parse_vocab(co_bpe *bpe, const uint8_t *text, size_t size, const char *name)
{
    json_error_t error;
    json_t *map = json_loadb((const char *)text, size, JSON_REJECT_DUPLICATES, &error);
    const size_t n = json_object_size(map);
    const char **names = NULL;
    co_status st = CO_OK;

    if (!json_is_object(map) || n > CO_BPE_MAX)
        st = co_fail(CO_E_DATA, "%s: is no JSON object of at most %u tokens: %s", name, CO_BPE_MAX,
                     map ? "" : error.text);
    if (st == CO_OK)
        names = co_calloc(n + 1, sizeof(*names));
    if (st == CO_OK && !names)
        st = CO_E_NOMEM;
    if (st == CO_OK)
        st = vocab_order(names, map, n, name);
    if (st == CO_OK)
        st = vocab_take(bpe, names, n, name);
    co_free(names);
    json_decref(map);
    return st;
}

co_status co_bpe_load_vocab(co_bpe *bpe, const char *path)
{
    uint8_t *text;
    size_t size;
    co_status st;

    CO_TRY(co_fs_read(&text, &size, path, VOCAB_MAX_FILE, CO_E_DATA));
    st = co_bpe_parse_vocab(bpe, text, size, path);
    co_free(text);
    return st;
}
