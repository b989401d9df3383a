/* tokenize.c - makes a text file a file of tokens, word by word. */
#include "data/tokenize.h"

#include <errno.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/token_file.h"
#include "text/bpe_train.h"
#include "text/stream.h"

#define TOKENIZE_PATH  4096
#define TOKENIZE_CHECK ((uint64_t)1 << 20)    /* bytes between two calls of `check` */
#define TOKENIZE_MAX   ((uint64_t)UINT32_MAX) /* tokens of a file: its header has 4 bytes */

typedef struct tokenize {
    const co_tokenize_options *options;
    co_tokenized done;
    co_tokenizer tokenizer;  /* owned */
    co_bpe_trainer *trainer; /* owned */
    co_atomic_file *file;    /* owned */
    size_t size;             /* bytes of a token */
    bool made;               /* the target is there */
} tokenize;

/* Give each word of the source to `take`. */
static co_status tokenize_words(tokenize *t,
                                co_status (*take)(tokenize *t, const uint8_t *word, size_t n))
{
    co_word_stream stream;
    const uint8_t *word;
    uint64_t since = 0;
    size_t n = 1;
    co_status st;

    CO_TRY(co_word_stream_open(&stream, t->options->source));
    if (stream.size == 0)
        st = co_fail(CO_E_DATA, "%s: is empty", t->options->source);
    else
        st = CO_OK;
    while (st == CO_OK && n > 0) {
        st = co_word_stream_next(&word, &n, &stream);
        if (st == CO_OK && n > 0)
            st = take(t, word, n);
        since += n;
        if (st == CO_OK && since >= TOKENIZE_CHECK) {
            since = 0;
            st = t->options->check(t->options->arg);
        }
    }
    co_word_stream_close(&stream);
    return st;
}

/* ---- the first time: what the tokens are ---- */

static co_status tokenize_count(tokenize *t, const uint8_t *word, size_t n)
{
    return co_bpe_trainer_word(t->trainer, word, n);
}

static co_status tokenize_see(tokenize *t, const uint8_t *word, size_t n)
{
    return co_characters_see(&t->tokenizer.characters, word, n, t->options->source);
}

static co_status tokenize_prepare(tokenize *t)
{
    const co_tokenize_options *o = t->options;

    t->tokenizer.kind = o->tokenizer;
    if (o->tokenizer == CO_TOKENIZER_CHAR) {
        CO_TRY(co_characters_open(&t->tokenizer.characters));
        CO_TRY(tokenize_words(t, tokenize_see));
        return co_characters_number(&t->tokenizer.characters);
    }
    if (o->tokenizer == CO_TOKENIZER_BYTES)
        return CO_OK;
    if (o->merges)
        return co_tokenizer_load_merges(&t->tokenizer, o->merges);
    CO_TRY(co_bpe_trainer_create(&t->trainer));
    CO_TRY(tokenize_words(t, tokenize_count));
    return co_bpe_train(&t->tokenizer.bpe, t->trainer, (uint32_t)o->vocabulary);
}

/* ---- the second time: the tokens ---- */

static co_status tokenize_write(tokenize *t, const uint8_t *word, size_t n)
{
    const uint32_t *token;
    size_t count;

    CO_TRY(co_tokenizer_word(&token, &count, &t->tokenizer, word, n));
    for (size_t i = 0; i < count; i++)
        fwrite(&token[i], t->size, 1, co_atomic_stream(t->file)); /* little-endian */
    t->done.bytes += n;
    t->done.tokens += count;
    return CO_OK;
}

static co_status tokenize_finish(tokenize *t)
{
    const bool wide = t->size == 4;
    const uint32_t header[CO_TOKEN_HEADER / sizeof(uint32_t)] = {
        wide ? CO_TOKEN_MAGIC_U32 : CO_TOKEN_MAGIC_U16,
        wide ? CO_TOKEN_VERSION_U32 : CO_TOKEN_VERSION_U16, (uint32_t)t->done.tokens};
    FILE *out = co_atomic_stream(t->file);
    co_atomic_file *file = t->file;

    if (t->done.tokens > TOKENIZE_MAX)
        return co_fail(CO_E_DATA, "%s: %llu tokens; a file has at most %llu: divide the text",
                       t->options->source, (unsigned long long)t->done.tokens,
                       (unsigned long long)TOKENIZE_MAX);
    if (fseek(out, 0, SEEK_SET) != 0)
        return co_fail(CO_E_IO, "%s: %s", t->options->target, strerror(errno));
    fwrite(header, sizeof(header), 1, out);
    t->file = NULL;
    return co_atomic_commit(file);
}

/* It must not be there: not at the beginning, and not now, after the first reading. */
static co_status tokenize_check_target(const tokenize *t)
{
    if (!co_fs_exists(t->options->target))
        return CO_OK;
    return co_fail(CO_E_USAGE, "%s is there: remove it, or give another name", t->options->target);
}

static co_status tokenize_make_target(tokenize *t)
{
    CO_TRY(tokenize_check_target(t));
    CO_TRY(co_fs_mkdirs(t->options->target));
    t->made = true;
    return CO_OK;
}

static co_status tokenize_run(tokenize *t)
{
    static const uint8_t header[CO_TOKEN_HEADER];
    char path[TOKENIZE_PATH];

    CO_TRY(tokenize_check_target(t));
    CO_TRY(tokenize_prepare(t));
    t->done.vocabulary = co_tokenizer_tokens(&t->tokenizer);
    t->size = t->done.vocabulary <= UINT16_MAX + 1 ? 2 : 4;
    CO_TRY(tokenize_make_target(t));
    CO_TRY(co_fs_join(path, sizeof(path), t->options->target, "tokens.bin"));
    CO_TRY(co_atomic_open(&t->file, path));
    fwrite(header, sizeof(header), 1, co_atomic_stream(t->file));
    CO_TRY(tokenize_words(t, tokenize_write));
    CO_TRY(co_tokenizer_save(&t->tokenizer, t->options->target));
    return tokenize_finish(t);
}

co_status co_tokenize(co_tokenized *out, const co_tokenize_options *options)
{
    tokenize t = {.options = options};
    const co_status st = tokenize_run(&t);

    co_atomic_discard(t.file);
    if (st != CO_OK && t.made)
        co_fs_remove_folder(options->target);
    co_tokenizer_close(&t.tokenizer);
    co_bpe_trainer_destroy(t.trainer);
    *out = t.done;
    return st;
}
