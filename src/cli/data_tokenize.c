/* data_tokenize.c - `cohort data tokenize`: makes a text file a folder of tokens. */
#include <string.h>

#include "cli/cli.h"
#include "core/clock.h"
#include "core/text.h"
#include "data/tokenize.h"
#include "launch/child.h"
#include "telemetry/format.h"

typedef struct data_tokenize_options {
    const char *tokenizer, *merges;
    int64_t vocabulary; /* 0: none is given */
    bool quiet;
} data_tokenize_options;

#define DATA_TOKENIZE_VOCABULARY 8192

static const data_tokenize_options data_tokenize_defaults = {.tokenizer = "char"};

static const cli_argument data_tokenize_arguments[] = {
    {"SRC", false, "a text file"},
    {"DST", false, "the folder to make"},
    {NULL, false, NULL},
};

static const cli_option data_tokenize_option_table[] = {
    {"tokenizer", 0, CLI_TEXT, offsetof(data_tokenize_options, tokenizer), "KIND", 0, 0,
     "char, bytes or bpe; default: char"},
    {"vocab", 0, CLI_COUNT, offsetof(data_tokenize_options, vocabulary), "N", 256, 1 << 20,
     "bpe: tokens, which are found in SRC; default: 8192"},
    {"merges", 0, CLI_TEXT, offsetof(data_tokenize_options, merges), "FILE", 0, 0,
     "bpe: merges from GPT-2's vocab.bpe or a merges.txt instead"},
    {"quiet", 'q', CLI_FLAG, offsetof(data_tokenize_options, quiet), NULL, 0, 0, "no summary"},
    CLI_OPTIONS_END,
};

static co_status data_tokenize_kind(co_tokenizer_kind *out, const data_tokenize_options *o)
{
    static const char *const kinds[] = {"char", "bytes", "bpe"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(o->tokenizer, kinds[i]) == 0) {
            *out = (co_tokenizer_kind)i;
            if (o->merges && *out != CO_TOKENIZER_BPE)
                return co_fail(CO_E_USAGE, "--merges is for --tokenizer bpe");
            if (o->vocabulary && (o->merges || *out != CO_TOKENIZER_BPE))
                return co_fail(CO_E_USAGE, "--vocab is for --tokenizer bpe without --merges");
            return CO_OK;
        }
    return co_fail(CO_E_USAGE, "--tokenizer takes char, bytes or bpe, not '%s'", o->tokenizer);
}

static co_status data_tokenize_check(void *guard)
{
    return cli_check_signal(guard);
}

static co_status data_tokenize_run(const void *options, int n, const char *const *argument)
{
    const data_tokenize_options *o = options;
    const uint64_t start_ns = co_clock_ns();
    co_child_guard guard;
    co_tokenize_options work = {.source = argument[0],
                                .target = argument[1],
                                .vocabulary =
                                    o->vocabulary ? o->vocabulary : DATA_TOKENIZE_VOCABULARY,
                                .merges = o->merges,
                                .check = data_tokenize_check,
                                .arg = &guard};
    char count[32], bytes[32], time[32];
    co_tokenized done;
    co_status st;

    (void)n;
    CO_TRY(data_tokenize_kind(&work.tokenizer, o));
    co_child_guard_enter(&guard);
    st = co_tokenize(&done, &work);
    co_child_guard_leave(&guard);
    if (st == CO_OK && !o->quiet)
        printf("%s: %s tokens of a vocabulary of %u, from %s, in %s\n", CO_SHOW(work.target),
               co_format_count(count, sizeof(count), done.tokens), done.vocabulary,
               co_format_bytes(bytes, sizeof(bytes), done.bytes),
               co_format_seconds(time, sizeof(time), co_clock_seconds(start_ns, co_clock_ns())));
    return st;
}

const co_command co_command_data_tokenize = {
    .name = "data tokenize",
    .summary = "make a text file tokens: `data: {name: tokens, path: DST, context: N}`",
    .about = "Writes DST/tokens.bin, in llm.c's layout. `char` takes the characters of UTF-8 that\n"
             "occur in SRC, `bytes` any bytes, `bpe` pairs of bytes as GPT-2 merges them: merges\n"
             "are found in SRC, or read from a file, and written to DST/merges.txt. SRC may be\n"
             "larger than memory.",
    .example = "  cohort data tokenize shakespeare.txt shakespeare\n"
               "  cohort data tokenize shakespeare.txt pairs --tokenizer bpe --vocab 1024\n"
               "  cohort data tokenize web.txt web --tokenizer bpe --merges vocab.bpe",
    .arguments = data_tokenize_arguments,
    .options = data_tokenize_option_table,
    .options_size = sizeof(data_tokenize_options),
    .defaults = &data_tokenize_defaults,
    .run = data_tokenize_run,
};
