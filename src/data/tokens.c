/*
 * tokens.c - data set "tokens": mapped files of tokens, one or a folder of them.
 *
 * A folder's files whose names have the word `val` or `test` are the test split, as llm.c and
 * nanoGPT name them; without such a file it is the end of each.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/folder_names.h"
#include "data/formats.h"
#include "data/token_file.h"
#include "data/tokenizers.h"

#define TOKENS_FIRST 16 /* files that room is made for */

typedef struct tokens_file {
    char *path; /* owned */
    bool test;
    co_token_file file; /* owned */
    co_token_sequence sequence;
} tokens_file;

typedef struct tokens {
    int64_t context, vocabulary;
    int dtype;
    const char *test;
    double test_fraction;
    /* set by open */
    size_t n, room, tests;       /* files, and those of the test split among them */
    tokens_file *file;           /* owned: (n), of both splits */
    co_token_sequence *sequence; /* owned: (n), of this one */
    co_token_windows windows;
} tokens;

static const char *const tokens_dtypes[] = {"u16", "u32", NULL};
static const char *const tokens_count[] = {"count", NULL};

static const co_key tokens_keys[] = {
    {"context", CO_KEY_INT, offsetof(tokens, context), NULL, 1, CO_CONTEXT_MAX, NULL,
     "tokens of a sample"},
    {"vocabulary", CO_KEY_INT, offsetof(tokens, vocabulary), "count", 1, INT32_MAX, tokens_count,
     "tokens are below this, 50257 for GPT-2's; count: one more than the highest of the files, "
     "which are all read once, and of a tokenizer beside them"},
    {"dtype", CO_KEY_CHOICE, offsetof(tokens, dtype), "u16", 0, 0, tokens_dtypes,
     "of files without llm.c's header, which says it"},
    {"test", CO_KEY_STRING, offsetof(tokens, test), "~", 0, 0, NULL,
     "file or folder of the test split; else the files of the folder `path` that have the word "
     "`val` or `test` in their names"},
    {"test_fraction", CO_KEY_REAL, offsetof(tokens, test_fraction), "0.1", 0, 1, NULL,
     "where no file is of the test split: share of each, at its end, that is"},
    CO_KEYS_END,
};

/* ---- which files ---- */

static co_status tokens_add(tokens *self, const char *folder, const char *name, bool test)
{
    tokens_file *file;

    if (self->n == self->room) {
        const size_t room = 2 * self->room + TOKENS_FIRST;

        file = co_realloc(self->file, room, sizeof(*file));
        if (!file)
            return CO_E_NOMEM;
        self->file = file;
        self->room = room;
    }
    file = &self->file[self->n];
    *file = (tokens_file){.path = co_fs_join_new(folder, name), .test = test};
    if (!file->path)
        return CO_E_NOMEM;
    /* The file that `test` names may be among those of the folder `path`. */
    if (!test && self->test && co_fs_same(file->path, self->test)) {
        co_free(file->path);
        return CO_OK;
    }
    self->n++;
    self->tests += test;
    return co_token_file_open(&file->file, &file->sequence, file->path, self->dtype ? 4 : 2);
}

/* Add a file, or those of a folder; `test`: all are of the test split. */
static co_status tokens_add_all(tokens *self, const char *path, bool test)
{
    co_names names = {NULL};
    struct stat at;
    co_status st;

    if (stat(path, &at) == 0 && !S_ISDIR(at.st_mode))
        return tokens_add(self, path, "", test);
    st = co_names_add(&names, path, CO_NAMES_TOKENS);
    if (st == CO_OK && names.n == 0)
        st = co_fail(CO_E_DATA, "%s: no file of tokens, *.bin; `cohort data tokenize` makes them",
                     path);
    for (size_t i = 0; i < names.n && st == CO_OK; i++) {
        const char *name = co_names_get(&names, i);
        const bool named = !self->test && co_token_file_is_test(name);

        st = tokens_add(self, path, name, test || named);
    }
    co_names_free(&names);
    return st;
}

/* ---- what of them ---- */

static void tokens_choose(tokens *self, co_split split)
{
    const bool test = split == CO_SPLIT_TEST;

    for (size_t i = 0; i < self->n; i++) {
        co_token_sequence *sequence = &self->sequence[self->windows.n];
        uint64_t cut;

        if (self->tests && self->file[i].test != test)
            continue;
        *sequence = self->file[i].sequence;
        cut = self->tests ? (test ? 0 : sequence->count)
                          : co_token_split(sequence->count, self->test_fraction);
        sequence->first = test ? cut : 0;
        sequence->count = test ? sequence->count - cut : cut;
        sequence->at = (const uint8_t *)sequence->at + sequence->first * (uint64_t)sequence->size;
        self->windows.n++;
    }
}

const char *co_tokens_path(const void *state)
{
    return ((const tokens *)state)->file[0].path;
}

/* Beside the first file. */
co_status co_tokens_tokenizer(co_tokenizer *out, bool *found, const void *state)
{
    const char *path = co_tokens_path(state), *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 1;
    char *folder = co_calloc(n + 1, 1);
    co_status st = CO_OK;

    if (!folder)
        return CO_E_NOMEM;
    memcpy(folder, slash ? path : ".", n);
    *found = co_tokenizer_is_in(folder);
    if (*found)
        st = co_tokenizer_load(out, folder);
    co_free(folder);
    return st;
}

/* One more than the highest token, of the files or of the tokenizer beside them: they may lack some
   of its tokens. */
static co_status tokens_count_vocabulary(tokens *self)
{
    co_tokenizer tokenizer;
    bool found = false;

    CO_TRY(co_tokens_tokenizer(&tokenizer, &found, self));
    if (found) {
        self->vocabulary = co_tokenizer_tokens(&tokenizer);
        co_tokenizer_close(&tokenizer);
    }
    for (size_t i = 0; i < self->n; i++) {
        const co_token_sequence *sequence = &self->file[i].sequence;
        const int64_t need = (int64_t)co_token_highest(sequence) + 1;

        if (need > INT32_MAX)
            return co_fail(CO_E_DATA,
                           "%s: has the token %lld, which no vocabulary has; of a file without a "
                           "header data.dtype says whether tokens are u16 or u32",
                           sequence->path, (long long)need - 1);
        self->vocabulary = need > self->vocabulary ? need : self->vocabulary;
    }
    return CO_OK;
}

static co_status tokens_setup(tokens *self, co_dataset_info *info, const char *path, co_split split)
{
    CO_TRY(tokens_add_all(self, path, false));
    if (self->test)
        CO_TRY(tokens_add_all(self, self->test, true));
    if (self->tests == self->n)
        return co_fail(CO_E_DATA, "%s: every file of tokens is of the test split", path);
    self->sequence = co_calloc(self->n, sizeof(*self->sequence));
    if (!self->sequence)
        return CO_E_NOMEM;
    if (!self->vocabulary)
        CO_TRY(tokens_count_vocabulary(self));
    self->windows = (co_token_windows){.sequence = self->sequence,
                                       .context = self->context,
                                       .vocabulary = self->vocabulary,
                                       .split = split};
    tokens_choose(self, split);
    return co_token_windows_describe(&self->windows, info);
}

static void tokens_close(void *state)
{
    tokens *self = state;

    for (size_t i = 0; i < self->n; i++) {
        co_token_file_close(&self->file[i].file);
        co_free(self->file[i].path);
    }
    co_free(self->file);
    co_free(self->sequence);
}

static co_status tokens_open(void *state, co_dataset_info *info, const char *path, co_split split)
{
    tokens *self = state;
    co_status st;

    if (!path)
        return co_fail(CO_E_USAGE, "data tokens: set data.path, a file of tokens, or a folder of "
                                   "them");
    st = tokens_setup(self, info, path, split);
    if (st != CO_OK)
        tokens_close(self);
    return st;
}

static co_status tokens_field(const void *state, void *out, int k, uint64_t i)
{
    return co_token_windows_read(&((const tokens *)state)->windows, out, k, i);
}

static co_status tokens_draw(const void *state, void *out, int k, uint64_t i, uint64_t seed,
                             uint64_t epoch)
{
    return co_token_windows_draw(&((const tokens *)state)->windows, out, k, i, seed, epoch);
}

/* Special tokens are of no text, so they have no bytes of it. */
static double tokens_bytes_per_token(const void *state)
{
    const tokens *self = state;
    uint64_t bytes = 0, all = 0, *count;
    co_tokenizer tokenizer;
    bool found = false;
    uint32_t n;

    if (co_tokens_tokenizer(&tokenizer, &found, self) != CO_OK || !found)
        return 0;
    n = co_tokenizer_tokens(&tokenizer);
    count = co_calloc(n, sizeof(*count));
    for (size_t i = 0; count && i < self->windows.n; i++)
        co_token_count(count, n, &self->sequence[i]);
    for (uint32_t t = 0; count && t < n; t++) {
        uint8_t room[CO_UTF8_MAX];
        size_t size;

        co_tokenizer_piece(&size, room, &tokenizer, t);
        bytes += co_tokenizer_is_special(&tokenizer, t) ? 0 : size * count[t];
        all += count[t];
    }
    co_free(count);
    co_tokenizer_close(&tokenizer);
    return all ? (double)bytes / (double)all : 0;
}

static co_status tokens_save_tokenizer(const void *state, const char *folder)
{
    co_tokenizer tokenizer;
    bool found = false;
    co_status st;

    CO_TRY(co_tokens_tokenizer(&tokenizer, &found, state));
    if (!found)
        return CO_OK;
    st = co_tokenizer_save(&tokenizer, folder);
    co_tokenizer_close(&tokenizer);
    return st;
}

const co_dataset_ops co_dataset_tokens = {
    .name = "tokens",
    .summary = "files of tokens, as `cohort data tokenize`, llm.c and nanoGPT write them",
    .keys = tokens_keys,
    .self_size = sizeof(tokens),
    .open = tokens_open,
    .field = tokens_field,
    .draw = tokens_draw,
    .bytes_per_token = tokens_bytes_per_token,
    .save_tokenizer = tokens_save_tokenizer,
    .close = tokens_close,
};
