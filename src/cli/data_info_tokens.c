/*
 * data_info_tokens.c - `cohort data info FOLDER` of files of tokens, as `cohort data tokenize` and
 * llm.c's scripts write them.
 *
 * Bare files do not say what they are: CIFAR's are called *.bin, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/data_info.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "data/folder_names.h"
#include "data/token_file.h"
#include "telemetry/format.h"
#include "text/tokenizer.h"

#define INFO_BARE          2   /* bytes of a token without a header, if nothing says otherwise */
#define INFO_TEST_FRACTION 0.1 /* the default of data.test_fraction */

typedef struct info_row {
    uint64_t tokens;
    int size;          /* bytes of a token */
    bool header, test; /* it has one; it is of the test split by its name */
} info_row;

typedef struct info_folder {
    const char *path;  /* borrowed */
    co_names names;    /* owned */
    info_row *row;     /* owned: (names.n) */
    uint64_t split[2]; /* tokens: training and test */
    size_t tests;      /* files of the test split */
    uint32_t highest;
    uint32_t vocabulary; /* of the tokenizer; 0: there is none */
    co_tokenizer_kind kind;
} info_folder;

/* ---- look ---- */

/* `file` is closed by the caller. */
static co_status info_open(co_token_file *file, co_token_sequence *sequence, const char *folder,
                           const char *name)
{
    char *path = co_fs_join_new(folder, name);
    co_status st = CO_E_NOMEM;

    if (path) {
        st = co_token_file_open(file, sequence, path, INFO_BARE);
        sequence->path = name;
    }
    co_free(path);
    return st;
}

static bool info_has_header(const char *folder, const char *name)
{
    co_token_file file = {0};
    co_token_sequence sequence;
    bool has = false;

    if (info_open(&file, &sequence, folder, name) == CO_OK)
        has = sequence.at != file.map;
    co_token_file_close(&file);
    return has;
}

bool cli_data_info_is_tokens(const char *path)
{
    co_names names = {NULL};
    bool is = false;

    if (co_names_add(&names, path, CO_NAMES_TOKENS) == CO_OK && names.n > 0)
        is = co_tokenizer_is_in(path);
    for (size_t i = 0; i < names.n && !is; i++)
        is = info_has_header(path, co_names_get(&names, i));
    co_names_free(&names);
    return is;
}

/* ---- read ---- */

static co_status info_read_tokenizer(info_folder *f)
{
    co_tokenizer tokenizer;

    if (!co_tokenizer_is_in(f->path))
        return CO_OK;
    CO_TRY(co_tokenizer_load(&tokenizer, f->path));
    f->kind = tokenizer.kind;
    f->vocabulary = co_tokenizer_tokens(&tokenizer);
    co_tokenizer_close(&tokenizer);
    return CO_OK;
}

static co_status info_read_file(info_folder *f, size_t i)
{
    const char *name = co_names_get(&f->names, i);
    co_token_file file = {0};
    co_token_sequence sequence;
    co_status st = info_open(&file, &sequence, f->path, name);
    uint32_t highest;

    if (st == CO_OK) {
        highest = sequence.count ? co_token_highest(&sequence) : 0;
        f->highest = highest > f->highest ? highest : f->highest;
        f->row[i] = (info_row){sequence.count, sequence.size, sequence.at != file.map,
                               co_token_file_is_test(name)};
        f->tests += f->row[i].test;
        if (f->vocabulary && highest >= f->vocabulary)
            st =
                co_fail(CO_E_DATA, "%s/%s: token %" PRIu32 "; the tokenizer beside it has %" PRIu32,
                        f->path, name, highest, f->vocabulary);
    }
    co_token_file_close(&file);
    return st;
}

static co_status info_read(info_folder *f)
{
    CO_TRY(co_names_add(&f->names, f->path, CO_NAMES_TOKENS));
    f->row = co_calloc(f->names.n, sizeof(*f->row));
    if (!f->row)
        return CO_E_NOMEM;
    CO_TRY(info_read_tokenizer(f));
    for (size_t i = 0; i < f->names.n; i++)
        CO_TRY(info_read_file(f, i));
    for (size_t i = 0; i < f->names.n; i++) {
        const uint64_t n = f->row[i].tokens, train = f->tests
                                                         ? (f->row[i].test ? 0 : n)
                                                         : co_token_split(n, INFO_TEST_FRACTION);

        f->split[0] += train;
        f->split[1] += n - train;
    }
    return CO_OK;
}

/* ---- print ---- */

static const char *info_width(int size)
{
    return size == 2 ? "u16" : "u32";
}

static void info_print_widths(const info_folder *f)
{
    bool used[2] = {false, false}, assumed = false;

    for (size_t i = 0; i < f->names.n; i++) {
        used[f->row[i].size == 4] = true;
        assumed = assumed || !f->row[i].header;
    }
    printf("  width            %s%s%s%s\n", used[0] ? "2 bytes (u16)" : "",
           used[0] && used[1] ? " and " : "", used[1] ? "4 bytes (u32)" : "",
           assumed ? "; files without a header are taken as u16" : "");
}

static void info_print_rows(const info_folder *f)
{
    char count[32];

    printf("  %-32s %-8s %15s  width  header\n", "file", "split", "tokens");
    for (size_t i = 0; i < f->names.n && i < DATA_INFO_MAX_ROWS; i++) {
        const info_row *row = &f->row[i];
        const char *split = f->tests == 0 ? "both" : row->test ? "test" : "training";

        printf("  %-32s %-8s %15s  %-5s  %s\n", CO_SHOW(co_names_get(&f->names, i)), split,
               co_format_count(count, sizeof(count), row->tokens), info_width(row->size),
               row->header ? "llm.c's" : "none");
    }
    if (f->names.n > DATA_INFO_MAX_ROWS)
        printf("  ... and %zu more files\n", f->names.n - DATA_INFO_MAX_ROWS);
}

static void info_print(const info_folder *f)
{
    static const char *const kinds[] = {"characters", "bytes", "byte pairs"};
    char count[32];

    printf("tokens in %s\n", CO_SHOW(f->path));
    printf("  files            %zu\n", f->names.n);
    printf("  tokens           %s\n",
           co_format_count(count, sizeof(count), f->split[0] + f->split[1]));
    info_print_widths(f);
    if (f->vocabulary)
        printf("  vocabulary       %" PRIu32 ", %s\n", f->vocabulary, kinds[f->kind]);
    else
        printf("  vocabulary       not known: no tokenizer is beside the files\n");
    printf("  highest token    %" PRIu32 "\n", f->highest);
    printf("  training split   %s tokens\n", co_format_count(count, sizeof(count), f->split[0]));
    printf("  test split       %s tokens, %s\n", co_format_count(count, sizeof(count), f->split[1]),
           f->tests ? "the files with val or test in their names"
                    : "the last tenth of each file (test_fraction: 0.1)");
    info_print_rows(f);
}

co_status cli_data_info_tokens(const char *folder)
{
    info_folder f = {.path = folder};
    co_status st = info_read(&f);

    if (st == CO_OK)
        info_print(&f);
    co_names_free(&f.names);
    co_free(f.row);
    return st;
}
