/* bpe.c - merges of byte pairs: in memory, from a file and to one. Untrusted input. */
#include "text/bpe.h"

#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/hash.h"
#include "core/mem.h"
#include "core/utf8.h"
#include "text/bpe_internal.h"

#define BPE_MAX_FILE ((size_t)64 << 20)
#define BPE_FIRST    1024

/* GPT-2 writes bytes as characters that can be seen: those that are none follow U+0100. */
static bool bpe_is_shown(uint32_t byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* The character for each token of one byte, and the byte; tokens are in the order of these. */
static void bpe_order(uint32_t character[CO_BPE_BYTES], uint8_t byte[CO_BPE_BYTES])
{
    uint32_t shown = 0, hidden = 0, at = 0;

    for (uint32_t b = 0; b < CO_BPE_BYTES; b++)
        shown += bpe_is_shown(b);
    for (uint32_t b = 0; b < CO_BPE_BYTES; b++) {
        const uint32_t token = bpe_is_shown(b) ? at++ : shown + hidden;

        character[token] = bpe_is_shown(b) ? b : 0x100 + hidden++;
        byte[token] = (uint8_t)b;
    }
}

void co_bpe_alphabet(uint32_t character[CO_BPE_BYTES])
{
    uint8_t byte[CO_BPE_BYTES];

    bpe_order(character, byte);
}

/* Room for one more piece, so that pieces do not move while two become one. */
static co_status bpe_reserve_piece(co_bpe *bpe, size_t size)
{
    const size_t need = bpe->first[bpe->n] + size;
    uint8_t *pieces;

    if (need <= bpe->pieces_room)
        return CO_OK;
    pieces = co_realloc(bpe->pieces, 2 * need, 1);
    if (!pieces)
        return CO_E_NOMEM;
    bpe->pieces = pieces;
    bpe->pieces_room = 2 * need;
    return CO_OK;
}

void co_bpe_destroy(co_bpe *bpe)
{
    if (!bpe)
        return;
    co_pairs_free(&bpe->ranks);
    co_pairs_free(&bpe->of_piece);
    co_free(bpe->merge);
    co_free(bpe->first);
    co_free(bpe->pieces);
    co_free(bpe->cache);
    co_free(bpe->symbol);
    co_free(bpe->heap);
    co_free(bpe->token);
    co_free(bpe);
}

uint32_t co_bpe_tokens(const co_bpe *bpe)
{
    return bpe->n;
}

bool co_bpe_is_special(const co_bpe *bpe, uint32_t token)
{
    return token >= bpe->n - bpe->n_special;
}

const uint8_t *co_bpe_piece(const co_bpe *bpe, size_t *n, uint32_t token)
{
    *n = bpe->first[token + 1] - bpe->first[token];
    return bpe->pieces + bpe->first[token];
}

/* The token of these bytes; CO_PAIRS_NONE: there is none. */
static uint32_t bpe_find(const co_bpe *bpe, const uint8_t *bytes, size_t size)
{
    const uint64_t hash = co_hash(CO_HASH, bytes, size);
    const uint32_t token = co_pairs_find(&bpe->of_piece, (uint32_t)(hash >> 32), (uint32_t)hash);
    const uint8_t *piece;
    size_t n;

    if (token == CO_PAIRS_NONE)
        return token;
    piece = co_bpe_piece(bpe, &n, token);
    return n == size && memcmp(piece, bytes, n) == 0 ? token : CO_PAIRS_NONE;
}

/* The last `size` bytes of `pieces`, which belong to no token yet, become one. */
static co_status bpe_add_piece(co_bpe *bpe, size_t size)
{
    if (bpe->n == CO_BPE_MAX)
        return co_fail(CO_E_DATA, "more than %u tokens", CO_BPE_MAX);
    if (bpe->n + 1 == bpe->room) {
        size_t *first = co_realloc(bpe->first, 2 * bpe->room, sizeof(*first));

        if (!first)
            return CO_E_NOMEM;
        bpe->first = first;
        bpe->room *= 2;
    }
    bpe->first[bpe->n + 1] = bpe->first[bpe->n] + size;
    bpe->n++;
    return CO_OK;
}

/* The token of the last piece, `size` bytes at the end of `pieces` that belong to no token yet. */
static co_status bpe_name_piece(uint32_t *out, co_bpe *bpe, size_t size)
{
    const uint8_t *piece = bpe->pieces + bpe->first[bpe->n];
    const uint64_t hash = co_hash(CO_HASH, piece, size);

    *out = bpe_find(bpe, piece, size);
    if (*out != CO_PAIRS_NONE)
        return CO_OK;
    *out = bpe->n;
    CO_TRY(bpe_add_piece(bpe, size));
    return co_pairs_put(&bpe->of_piece, (uint32_t)(hash >> 32), (uint32_t)hash, *out);
}

co_status co_bpe_add_special(co_bpe *bpe, const uint8_t *text, size_t size)
{
    CO_TRY(bpe_reserve_piece(bpe, size));
    memcpy(bpe->pieces + bpe->first[bpe->n], text, size);
    CO_TRY(bpe_add_piece(bpe, size));
    bpe->n_special++;
    return CO_OK;
}

/* Put bytes after the last piece. */
static co_status bpe_write_piece(uint32_t *out, co_bpe *bpe, const uint8_t *left, size_t n,
                                 const uint8_t *right, size_t m)
{
    uint8_t *at = bpe->pieces + bpe->first[bpe->n];

    memcpy(at, left, n);
    memcpy(at + n, right, m);
    return bpe_name_piece(out, bpe, n + m);
}

static co_status bpe_keep_merge(co_bpe *bpe, const co_pairs_entry *merge)
{
    if (bpe->n_merge == bpe->merge_room) {
        const size_t room = 2 * bpe->merge_room + BPE_FIRST;
        co_pairs_entry *grown = co_realloc(bpe->merge, room, sizeof(*grown));

        if (!grown)
            return CO_E_NOMEM;
        bpe->merge = grown;
        bpe->merge_room = room;
    }
    CO_TRY(co_pairs_put(&bpe->ranks, merge->left, merge->right, (uint32_t)bpe->n_merge));
    bpe->merge[bpe->n_merge++] = *merge;
    return CO_OK;
}

co_status co_bpe_merge(uint32_t *out, co_bpe *bpe, uint32_t left, uint32_t right)
{
    co_pairs_entry merge = {left, right, 0};
    const uint8_t *a, *b;
    size_t n, m;

    if (co_pairs_find(&bpe->ranks, left, right) != CO_PAIRS_NONE)
        return co_fail(CO_E_DATA, "a merge that is there twice");
    n = bpe->first[left + 1] - bpe->first[left];
    m = bpe->first[right + 1] - bpe->first[right];
    if (n + m > CO_BPE_MAX_TOKEN)
        return co_fail(CO_E_DATA, "a token of more than %u bytes", CO_BPE_MAX_TOKEN);
    CO_TRY(bpe_reserve_piece(bpe, n + m));
    a = co_bpe_piece(bpe, &n, left);
    b = co_bpe_piece(bpe, &m, right);
    CO_TRY(bpe_write_piece(&merge.value, bpe, a, n, b, m));
    *out = merge.value;
    return bpe_keep_merge(bpe, &merge);
}

static co_status bpe_setup(co_bpe *bpe)
{
    uint32_t character[CO_BPE_BYTES];
    uint8_t byte[CO_BPE_BYTES];

    bpe->room = BPE_FIRST;
    bpe->first = co_calloc(bpe->room, sizeof(*bpe->first));
    bpe->cache = co_calloc(BPE_CACHE, sizeof(*bpe->cache));
    if (!bpe->first || !bpe->cache)
        return CO_E_NOMEM;
    CO_TRY(bpe_reserve_piece(bpe, BPE_FIRST));
    bpe_order(character, byte);
    for (uint32_t t = 0; t < CO_BPE_BYTES; t++)
        CO_TRY(bpe_write_piece(&bpe->of_byte[byte[t]], bpe, &byte[t], 1, &byte[t], 0));
    return CO_OK;
}

co_status co_bpe_give(co_bpe **out, co_bpe *bpe, co_status st)
{
    if (st == CO_OK)
        *out = bpe;
    else
        co_bpe_destroy(bpe);
    return st;
}

co_status co_bpe_create(co_bpe **out)
{
    co_bpe *bpe = co_calloc(1, sizeof(*bpe));

    return co_bpe_give(out, bpe, bpe ? bpe_setup(bpe) : CO_E_NOMEM);
}

/* ---- merges.txt ---- */

/* The byte of a character of the alphabet; CO_BPE_BYTES: none. */
static uint32_t bpe_byte_of(uint32_t code)
{
    uint32_t hidden = 0;

    if (code < 0x100)
        return bpe_is_shown(code) ? code : CO_BPE_BYTES;
    for (uint32_t byte = 0; byte < CO_BPE_BYTES; byte++)
        if (!bpe_is_shown(byte) && hidden++ == code - 0x100)
            return byte;
    return CO_BPE_BYTES;
}

/* The same as co_bpe_named; `room` has `size` bytes. */
static co_status bpe_read_token(uint32_t *out, const co_bpe *bpe, uint8_t *room,
                                const uint8_t *text, size_t size)
{
    size_t n = 0;

    for (size_t at = 0, k; at < size; at += k) {
        uint32_t code, byte;

        k = co_utf8_decode(&code, text + at, size - at);
        byte = k ? bpe_byte_of(code) : CO_BPE_BYTES;
        if (byte == CO_BPE_BYTES)
            return co_fail(CO_E_DATA, "a character of no byte");
        room[n++] = (uint8_t)byte;
    }
    *out = bpe_find(bpe, room, n);
    if (*out == CO_PAIRS_NONE)
        return co_fail(CO_E_DATA, "a token that no merge before it makes");
    return CO_OK;
}

co_status co_bpe_named(uint32_t *out, const co_bpe *bpe, const uint8_t *text, size_t size)
{
    uint8_t *room = co_calloc(size + 1, 1);
    co_status st;

    if (!room)
        return CO_E_NOMEM;
    *out = CO_PAIRS_NONE;
    st = bpe_read_token(out, bpe, room, text, size);
    co_free(room);
    return st;
}

static co_status bpe_read_line(co_bpe *bpe, const uint8_t *line, size_t size)
{
    const uint8_t *space = memchr(line, ' ', size);
    const size_t n = space ? (size_t)(space - line) : 0;
    uint32_t left = 0, right = 0, made;

    if (n == 0 || n + 1 == size || memchr(space + 1, ' ', size - n - 1))
        return co_fail(CO_E_DATA, "not two tokens with a space between");
    CO_TRY(co_bpe_named(&left, bpe, line, n));
    CO_TRY(co_bpe_named(&right, bpe, space + 1, size - n - 1));
    return co_bpe_merge(&made, bpe, left, right);
}

static co_status bpe_read_lines(co_bpe *bpe, const uint8_t *text, size_t size, const char *name)
{
    size_t number = 1;
    char why[256];

    for (const uint8_t *end = text + size, *next; text < end; text = next, number++) {
        const uint8_t *stop = memchr(text, '\n', (size_t)(end - text));
        co_status st;
        size_t n;

        next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        n = (size_t)(stop - text);
        n -= n > 0 && text[n - 1] == '\r';
        if (n == 0 || (number == 1 && n > 8 && memcmp(text, "#version", 8) == 0))
            continue;
        st = bpe_read_line(bpe, text, n);
        if (st == CO_E_DATA) {
            snprintf(why, sizeof(why), "%s", co_error_message());
            return co_fail(CO_E_DATA, "%s: line %zu: %s", name, number, why);
        }
        CO_TRY(st);
    }
    return CO_OK;
}

co_status co_bpe_parse(co_bpe **out, const uint8_t *text, size_t size, const char *name)
{
    co_bpe *bpe;

    CO_TRY(co_bpe_create(&bpe));
    return co_bpe_give(out, bpe, bpe_read_lines(bpe, text, size, name));
}

co_status co_bpe_load(co_bpe **out, const char *path)
{
    uint8_t *text;
    size_t size;
    co_status st;

    CO_TRY(co_fs_read(&text, &size, path, BPE_MAX_FILE, CO_E_DATA));
    st = co_bpe_parse(out, text, size, path);
    co_free(text);
    return st;
}

/* `character` is that of each token of one byte. */
static void bpe_write_token(FILE *out, const co_bpe *bpe, const uint32_t *character, uint32_t token)
{
    uint8_t text[CO_UTF8_MAX];
    size_t n;
    const uint8_t *piece = co_bpe_piece(bpe, &n, token);

    for (size_t i = 0; i < n; i++)
        fwrite(text, 1, co_utf8_encode(text, character[bpe->of_byte[piece[i]]]), out);
}

co_status co_bpe_save(const co_bpe *bpe, const char *path)
{
    uint32_t character[CO_BPE_BYTES];
    co_atomic_file *file;
    FILE *out;

    co_bpe_alphabet(character);
    CO_TRY(co_atomic_open(&file, path));
    out = co_atomic_stream(file);
    fputs("#version: 0.2\n", out);
    for (size_t m = 0; m < bpe->n_merge; m++) {
        bpe_write_token(out, bpe, character, bpe->merge[m].left);
        fputc(' ', out);
        bpe_write_token(out, bpe, character, bpe->merge[m].right);
        fputc('\n', out);
    }
    return co_atomic_commit(file);
}
