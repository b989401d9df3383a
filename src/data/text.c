/*
 * text.c - data set "text": a text file, whose characters or bytes are tokens.
 *
 * Numbers the characters that occur in the whole file, so that both splits have one vocabulary, or
 * takes the numbers of another text's; keeps those of its own split only.
 */
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/dataset_internal.h"
#include "data/file.h"
#include "data/formats.h"
#include "data/tokenizers.h"
#include "data/windows.h"

#define TEXT_BYTES 256
#define TEXT_PATH  4096

enum { TEXT_CHAR, TEXT_BYTE };

typedef struct text {
    int64_t context;
    int tokenizer;
    double test_fraction;
    const char *numbering; /* folder of the characters' numbers; NULL: those of the file */
    /* set by open */
    co_file file;             /* owned; closed for characters */
    co_characters characters; /* owned; empty for bytes */
    void *token;              /* owned: u16 or u32; NULL for bytes */
    co_token_sequence sequence;
    co_token_windows windows;
    double bytes_per_token;
} text;

static const char *const text_tokenizers[] = {"char", "bytes", NULL};

static const co_key text_keys[] = {
    {"context", CO_KEY_INT, offsetof(text, context), NULL, 1, CO_CONTEXT_MAX, NULL,
     "tokens of a sample"},
    {"tokenizer", CO_KEY_CHOICE, offsetof(text, tokenizer), "char", 0, 0, text_tokenizers,
     "tokens are the characters of UTF-8 that occur in the file, numbered by code point; or bytes"},
    {"test_fraction", CO_KEY_REAL, offsetof(text, test_fraction), "0.1", 0, 1, NULL,
     "share of the file, at its end, that is the test split"},
    {"characters", CO_KEY_STRING, offsetof(text, numbering), "~", 0, 0, NULL,
     "a run directory, or a folder with characters.txt: characters have the numbers that they have "
     "there"},
    CO_KEYS_END,
};

/* The part of the file's `count` tokens that belongs to the split. */
static void text_choose(text *self, uint64_t count, co_split split)
{
    const uint64_t cut = co_token_split(count, self->test_fraction);

    self->sequence.first = split == CO_SPLIT_TRAIN ? 0 : cut;
    self->sequence.count = split == CO_SPLIT_TRAIN ? cut : count - cut;
}

/* Write the numbers of the split's characters; checked UTF-8. */
static void text_number(text *self)
{
    const uint64_t first = self->sequence.first, count = self->sequence.count;
    const uint8_t *at = self->file.data, *end = at + self->file.size;
    const uint8_t *begin = at;

    for (uint64_t t = 0; t < first + count; t++) {
        uint32_t code, id;

        begin = t == first ? at : begin;
        at += co_utf8_decode(&code, at, (size_t)(end - at));
        id = self->characters.id[code];
        if (t < first)
            continue;
        if (self->sequence.size == 2)
            ((uint16_t *)self->token)[t - first] = (uint16_t)id;
        else
            ((uint32_t *)self->token)[t - first] = id;
    }
    self->bytes_per_token = count ? (double)(at - begin) / (double)count : 0;
}

/* Names the first character that has no number. */
static co_status text_fail_unknown(const text *self, const co_characters *known)
{
    const uint8_t *data = self->file.data;
    uint64_t line = 1;
    uint32_t code = 0;

    for (size_t at = 0, n; at < self->file.size; at += n) {
        n = co_utf8_decode(&code, data + at, self->file.size - at);
        if (known->id[code] == CO_CHARACTERS_NONE)
            return co_fail(CO_E_DATA,
                           "%s: line %llu, byte %llu: U+%04X is none of the %u characters of %s; "
                           "replace it, or train with data.tokenizer: bytes from the beginning",
                           self->sequence.path, (unsigned long long)line, (unsigned long long)at,
                           (unsigned)code, (unsigned)known->n, self->numbering);
        line += code == '\n';
    }
    return CO_OK;
}

static co_status text_load_numbering(co_tokenizer *out, const char *path)
{
    char folder[TEXT_PATH];

    CO_TRY(co_fs_join(folder, sizeof(folder), path, CO_DATA_TOKENIZER));
    CO_TRY(co_tokenizer_load(out, co_tokenizer_is_in(folder) ? folder : path));
    if (out->kind == CO_TOKENIZER_CHAR)
        return CO_OK;
    co_tokenizer_close(out);
    return co_fail(CO_E_DATA,
                   "data text: characters: the tokens of %s are no characters; set "
                   "data.tokenizer: bytes, or use `cohort data tokenize` and data tokens",
                   path);
}

/* Replace the numbers of the file's own characters, all of which have been seen. */
static co_status text_take_numbering(text *self)
{
    co_characters *own = &self->characters;
    co_tokenizer other;
    bool all = true;

    CO_TRY(text_load_numbering(&other, self->numbering));
    for (uint32_t i = 0; i < own->n; i++)
        all = all && other.characters.id[own->code[i]] != CO_CHARACTERS_NONE;
    if (!all) {
        const co_status st = text_fail_unknown(self, &other.characters);

        co_tokenizer_close(&other);
        return st;
    }
    other.characters.total = own->total;
    co_characters_close(own);
    *own = other.characters; /* all that a tokenizer of characters owns */
    return CO_OK;
}

static co_status text_read_characters(text *self, co_split split)
{
    co_characters *characters = &self->characters;

    CO_TRY(co_characters_open(characters));
    CO_TRY(co_characters_see(characters, self->file.data, self->file.size, self->sequence.path));
    CO_TRY(co_characters_number(characters));
    if (self->numbering)
        CO_TRY(text_take_numbering(self));
    text_choose(self, characters->total, split);
    self->sequence.size = characters->n <= UINT16_MAX + 1 ? 2 : 4;
    self->token = co_calloc(self->sequence.count + 1, (size_t)self->sequence.size);
    if (!self->token)
        return CO_E_NOMEM;
    text_number(self);
    co_free(characters->id);
    characters->id = NULL;
    co_file_close(&self->file);
    self->sequence.at = self->token;
    self->windows.vocabulary = characters->n;
    return CO_OK;
}

static void text_use_bytes(text *self, co_split split)
{
    text_choose(self, self->file.size, split);
    self->sequence.at = self->file.data + self->sequence.first;
    self->sequence.size = 1;
    self->windows.vocabulary = TEXT_BYTES;
    self->bytes_per_token = 1;
}

static void text_close(void *state)
{
    text *self = state;

    co_free(self->token);
    co_characters_close(&self->characters);
    co_file_close(&self->file);
}

static co_status text_setup(text *self, co_dataset_info *info, co_split split)
{
    if (self->tokenizer == TEXT_CHAR)
        CO_TRY(text_read_characters(self, split));
    else
        text_use_bytes(self, split);
    return co_token_windows_describe(&self->windows, info);
}

static co_status text_open(void *state, co_dataset_info *info, const char *path, co_split split)
{
    text *self = state;
    co_status st;

    if (!path)
        return co_fail(CO_E_USAGE, "data text: set data.path, a text file");
    if (self->numbering && self->tokenizer != TEXT_CHAR)
        return co_fail(CO_E_USAGE, "data text: characters: goes with tokenizer: char");
    CO_TRY(co_file_open(&self->file, path, "a text file"));
    self->sequence.path = path;
    self->windows.sequence = &self->sequence;
    self->windows.n = 1;
    self->windows.context = self->context;
    self->windows.split = split;
    st = text_setup(self, info, split);
    info->in_memory = true;
    if (st != CO_OK)
        text_close(self);
    return st;
}

static co_status text_field(const void *state, void *out, int k, uint64_t i)
{
    return co_token_windows_read(&((const text *)state)->windows, out, k, i);
}

static co_status text_draw(const void *state, void *out, int k, uint64_t i, uint64_t seed,
                           uint64_t epoch)
{
    return co_token_windows_draw(&((const text *)state)->windows, out, k, i, seed, epoch);
}

static double text_bytes_per_token(const void *state)
{
    return ((const text *)state)->bytes_per_token;
}

static co_status text_save_tokenizer(const void *state, const char *folder)
{
    const co_tokenizer tokenizer = co_text_tokenizer(state);

    return co_tokenizer_save(&tokenizer, folder);
}

const co_dataset_ops co_dataset_text = {
    .name = "text",
    .summary = "a text file: its characters, or bytes, are tokens to predict",
    .keys = text_keys,
    .self_size = sizeof(text),
    .open = text_open,
    .field = text_field,
    .draw = text_draw,
    .bytes_per_token = text_bytes_per_token,
    .save_tokenizer = text_save_tokenizer,
    .close = text_close,
};

co_tokenizer co_text_tokenizer(const void *state)
{
    const text *self = state;

    return (co_tokenizer){.kind =
                              self->tokenizer == TEXT_CHAR ? CO_TOKENIZER_CHAR : CO_TOKENIZER_BYTES,
                          .characters = self->characters};
}

const char *co_text_path(const void *state)
{
    return ((const text *)state)->sequence.path;
}
