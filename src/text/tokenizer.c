/* tokenizer.c - characters, bytes or pairs of bytes behind one interface, and their files. */
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "text/words.h"

#define TOKENIZER_PATH       4096
#define TOKENIZER_BYTES      256
#define TOKENIZER_MAX_FILE   ((size_t)CO_UTF8_CODES * CO_UTF8_MAX)
#define TOKENIZER_CHARACTERS "characters.txt"
#define TOKENIZER_MERGES     "merges.txt"
#define TOKENIZER_VOCAB      "vocab.json"

/* `folder_size` bytes of `folder`, and a file in it. */
static co_status tokenizer_path(char out[TOKENIZER_PATH], const char *folder, size_t folder_size,
                                const char *file)
{
    const int n = snprintf(out, TOKENIZER_PATH, "%.*s%s%s", (int)folder_size, folder,
                           folder_size ? "/" : "", file);

    if (n > 0 && n < TOKENIZER_PATH)
        return CO_OK;
    return co_fail(CO_E_USAGE, "%s: the path is too long", folder);
}

static bool tokenizer_has(char path[TOKENIZER_PATH], const char *folder, const char *file)
{
    return tokenizer_path(path, folder, strlen(folder), file) == CO_OK && co_fs_exists(path);
}

bool co_tokenizer_is_in(const char *folder)
{
    char path[TOKENIZER_PATH];

    return tokenizer_has(path, folder, TOKENIZER_CHARACTERS) ||
           tokenizer_has(path, folder, CO_TOKENIZER_BYTES_FILE) ||
           tokenizer_has(path, folder, TOKENIZER_MERGES);
}

static co_status tokenizer_load_characters(co_characters *out, const char *path)
{
    uint8_t *text;
    size_t size;
    co_status st;

    CO_TRY(co_fs_read(&text, &size, path, TOKENIZER_MAX_FILE, CO_E_DATA));
    st = co_characters_open(out);
    if (st == CO_OK)
        st = co_characters_see(out, text, size, path);
    co_free(text);
    if (st == CO_OK && (out->n == 0 || out->total != out->n))
        st = co_fail(CO_E_DATA, "%s: has no character, or one twice", path);
    return st == CO_OK ? co_characters_number(out) : st;
}

static co_status tokenizer_check_bytes(const char *path)
{
    uint8_t *text;
    bool same = true;
    size_t size;

    CO_TRY(co_fs_read(&text, &size, path, TOKENIZER_BYTES + 1, CO_E_DATA));
    for (size_t i = 0; i < size; i++)
        same = same && text[i] == i;
    co_free(text);
    if (same && size == TOKENIZER_BYTES)
        return CO_OK;
    return co_fail(CO_E_DATA, "%s: does not hold the bytes from 0 to 255", path);
}

co_status co_tokenizer_load_merges(co_tokenizer *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    char vocab[TOKENIZER_PATH];
    co_status st;

    *out = (co_tokenizer){.kind = CO_TOKENIZER_BPE};
    CO_TRY(tokenizer_path(vocab, path, slash ? (size_t)(slash - path) : 0, TOKENIZER_VOCAB));
    CO_TRY(co_bpe_load(&out->bpe, path));
    st = co_fs_exists(vocab) ? co_bpe_load_vocab(out->bpe, vocab) : CO_OK;
    if (st != CO_OK)
        co_tokenizer_close(out);
    return st;
}

co_status co_tokenizer_load(co_tokenizer *out, const char *folder)
{
    char path[TOKENIZER_PATH];
    co_status st;

    *out = (co_tokenizer){.kind = CO_TOKENIZER_CHAR};
    if (tokenizer_has(path, folder, TOKENIZER_MERGES))
        return co_tokenizer_load_merges(out, path);
    if (tokenizer_has(path, folder, TOKENIZER_CHARACTERS)) {
        st = tokenizer_load_characters(&out->characters, path);
    } else if (tokenizer_has(path, folder, CO_TOKENIZER_BYTES_FILE)) {
        out->kind = CO_TOKENIZER_BYTES;
        st = tokenizer_check_bytes(path);
    } else {
        st = co_fail(CO_E_DATA,
                     "%s: no tokenizer: no " TOKENIZER_MERGES ", " TOKENIZER_CHARACTERS
                     " or " CO_TOKENIZER_BYTES_FILE,
                     folder);
    }
    if (st != CO_OK)
        co_tokenizer_close(out);
    return st;
}

static co_status tokenizer_save_characters(const co_characters *characters, const char *path)
{
    co_atomic_file *file;
    uint8_t text[CO_UTF8_MAX];

    CO_TRY(co_atomic_open(&file, path));
    for (uint32_t i = 0; i < characters->n; i++)
        fwrite(text, 1, co_utf8_encode(text, characters->code[i]), co_atomic_stream(file));
    return co_atomic_commit(file);
}

static co_status tokenizer_save_bytes(const char *path)
{
    co_atomic_file *file;

    CO_TRY(co_atomic_open(&file, path));
    for (int i = 0; i < TOKENIZER_BYTES; i++)
        fputc(i, co_atomic_stream(file));
    return co_atomic_commit(file);
}

co_status co_tokenizer_save(const co_tokenizer *tokenizer, const char *folder)
{
    static const char *const names[] = {TOKENIZER_CHARACTERS, CO_TOKENIZER_BYTES_FILE,
                                        TOKENIZER_MERGES};
    char path[TOKENIZER_PATH];

    CO_TRY(co_fs_mkdirs(folder));
    CO_TRY(tokenizer_path(path, folder, strlen(folder), names[tokenizer->kind]));
    if (tokenizer->kind == CO_TOKENIZER_CHAR)
        return tokenizer_save_characters(&tokenizer->characters, path);
    if (tokenizer->kind == CO_TOKENIZER_BYTES)
        return tokenizer_save_bytes(path);
    CO_TRY(co_bpe_save(tokenizer->bpe, path));
    CO_TRY(tokenizer_path(path, folder, strlen(folder), TOKENIZER_VOCAB));
    return co_bpe_save_vocab(tokenizer->bpe, path);
}

void co_tokenizer_close(co_tokenizer *tokenizer)
{
    co_characters_close(&tokenizer->characters);
    co_bpe_destroy(tokenizer->bpe);
    co_free(tokenizer->token);
    *tokenizer = (co_tokenizer){.kind = CO_TOKENIZER_CHAR};
}

uint32_t co_tokenizer_tokens(const co_tokenizer *tokenizer)
{
    return tokenizer->kind == CO_TOKENIZER_CHAR    ? tokenizer->characters.n
           : tokenizer->kind == CO_TOKENIZER_BYTES ? TOKENIZER_BYTES
                                                   : co_bpe_tokens(tokenizer->bpe);
}

bool co_tokenizer_is_special(const co_tokenizer *tokenizer, uint32_t token)
{
    return tokenizer->kind == CO_TOKENIZER_BPE && co_bpe_is_special(tokenizer->bpe, token);
}

static co_status tokenizer_reserve(co_tokenizer *tokenizer, size_t n)
{
    uint32_t *grown;

    if (n <= tokenizer->room)
        return CO_OK;
    grown = co_realloc(tokenizer->token, 2 * n, sizeof(*grown));
    if (!grown)
        return CO_E_NOMEM;
    tokenizer->token = grown;
    tokenizer->room = 2 * n;
    return CO_OK;
}

co_status co_tokenizer_word(const uint32_t **out, size_t *n, co_tokenizer *tokenizer,
                            const uint8_t *word, size_t size)
{
    const co_characters *characters = &tokenizer->characters;

    if (tokenizer->kind == CO_TOKENIZER_BPE)
        return co_bpe_word(out, n, tokenizer->bpe, word, size);
    CO_TRY(tokenizer_reserve(tokenizer, size));
    *n = 0;
    for (size_t at = 0, k = 1; at < size; at += k) {
        uint32_t code = word[at];

        if (tokenizer->kind == CO_TOKENIZER_CHAR) {
            k = co_utf8_decode(&code, word + at, size - at);
            if (k == 0)
                return co_fail(CO_E_DATA, "byte 0x%02x is not UTF-8", word[at]);
            if (characters->id[code] == CO_CHARACTERS_NONE)
                return co_fail(CO_E_DATA, "the character U+%04X has no token", code);
            code = characters->id[code];
        }
        tokenizer->token[(*n)++] = code;
    }
    *out = tokenizer->token;
    return CO_OK;
}

co_status co_tokenizer_encode(uint32_t **out, size_t *n, co_tokenizer *tokenizer,
                              const uint8_t *text, size_t size)
{
    uint32_t *all = co_calloc(size + 1, sizeof(*all)); /* a token has at least a byte */
    co_status st = all ? CO_OK : CO_E_NOMEM;

    *n = 0;
    for (size_t at = 0, length; st == CO_OK && at < size; at += length) {
        const uint32_t *token;
        size_t count = 0;

        length = co_word_next(text + at, size - at);
        st = co_tokenizer_word(&token, &count, tokenizer, text + at, length);
        if (st == CO_OK)
            memcpy(all + *n, token, count * sizeof(*all));
        *n += count;
    }
    if (st != CO_OK) {
        co_free(all);
        return st;
    }
    *out = all;
    return CO_OK;
}

const uint8_t *co_tokenizer_piece(size_t *n, uint8_t room[CO_UTF8_MAX],
                                  const co_tokenizer *tokenizer, uint32_t token)
{
    if (tokenizer->kind == CO_TOKENIZER_BPE)
        return co_bpe_piece(tokenizer->bpe, n, token);
    room[0] = (uint8_t)token;
    *n = tokenizer->kind == CO_TOKENIZER_BYTES
             ? 1
             : co_utf8_encode(room, tokenizer->characters.code[token]);
    return room;
}

bool co_tokenizer_same(const co_tokenizer *a, const co_tokenizer *b)
{
    const uint32_t tokens = co_tokenizer_tokens(a);
    bool same = tokens == co_tokenizer_tokens(b);

    for (uint32_t t = 0; same && t < tokens; t++) {
        uint8_t room[2][CO_UTF8_MAX];
        size_t n[2];
        const uint8_t *one = co_tokenizer_piece(&n[0], room[0], a, t);
        const uint8_t *other = co_tokenizer_piece(&n[1], room[1], b, t);

        same = n[0] == n[1] && memcmp(one, other, n[0]) == 0;
    }
    return same;
}
