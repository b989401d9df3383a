/* generate.c - `cohort generate`: writes text with a trained language model. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/source.h"
#include "core/fs.h"
#include "core/number.h"
#include "core/thread.h"
#include "data/data.h"
#include "generate/generate.h"

typedef struct generate_options {
    const char *config, *checkpoint, *tokenizer, *prompt, *temperature, *top_p;
    int64_t tokens, top_k, seed;
    cli_list set, plugins;
} generate_options;

static const generate_options generate_defaults = {
    .tokens = 200, .seed = 1, .temperature = "1", .top_p = "1"};

static const cli_argument generate_arguments[] = {
    {"RUN_DIR|FILE", false, "a run directory, a checkpoint's folder, or a .safetensors file"},
    {NULL, false, NULL},
};

static const cli_option generate_option_table[] = {
    {"prompt", 'p', CLI_TEXT, offsetof(generate_options, prompt), "TEXT", 0, 0,
     "the text to continue"},
    {"tokens", 0, CLI_COUNT, offsetof(generate_options, tokens), "N", 1, INT64_C(1) << 40,
     "tokens to write after it; default: 200"},
    {"temperature", 't', CLI_TEXT, offsetof(generate_options, temperature), "T", 0, 0,
     "below 1 likely tokens are likelier; 0: always the likeliest; default: 1"},
    {"top-k", 0, CLI_COUNT, offsetof(generate_options, top_k), "K", 1, 1 << 20,
     "draw from the K likeliest tokens; default: from all"},
    {"top-p", 0, CLI_TEXT, offsetof(generate_options, top_p), "P", 0, 0,
     "draw from the likeliest that have the probability P together; default: 1"},
    {"seed", 0, CLI_COUNT, offsetof(generate_options, seed), "N", 0, INT64_MAX,
     "of the draws: the same seed writes the same text; default: 1"},
    {"checkpoint", 'k', CLI_TEXT, offsetof(generate_options, checkpoint), "WHICH", 0, 0,
     "of a run directory: best, latest or a step; default: the final weights"},
    {"config", 'c', CLI_TEXT, offsetof(generate_options, config), "CONFIG", 0, 0,
     "the network's; default: config.yaml beside the weights"},
    {"tokenizer", 0, CLI_TEXT, offsetof(generate_options, tokenizer), "DIR", 0, 0,
     "folder of merges.txt, characters.txt or bytes.bin; default: the run's"},
    {"set", 's', CLI_LIST, offsetof(generate_options, set), "KEY=VALUE", 0, 0,
     "change the config; repeatable"},
    CLI_PLUGIN_OPTION(generate_options),
    CLI_OPTIONS_END,
};

static co_status generate_number(double *out, const char *name, const char *text, double max)
{
    char *end;

    *out = co_number_parse(text, &end);
    if (end != text && !*end && *out >= 0 && *out <= max)
        return CO_OK;
    return co_fail(CO_E_USAGE, "--%s takes a number from 0 to %g, not '%s'", name, max, text);
}

/* The folder beside the config of the run. */
static co_status generate_open_tokenizer(co_tokenizer *out, const generate_options *o,
                                         const cli_source *source)
{
    const char *slash = strrchr(source->config, '/');
    char folder[SOURCE_MAX_PATH + sizeof(CO_DATA_TOKENIZER)];

    if (o->tokenizer)
        return co_tokenizer_load(out, o->tokenizer);
    snprintf(folder, sizeof(folder), "%.*s" CO_DATA_TOKENIZER,
             slash ? (int)(slash - source->config) + 1 : 0, source->config);
    if (!co_tokenizer_is_in(folder))
        return co_fail(
            CO_E_USAGE,
            "%s: no tokenizer: what was learned was no text, or of tokens made elsewhere; "
            "--tokenizer DIR names a folder with merges.txt, characters.txt or bytes.bin",
            folder);
    return co_tokenizer_load(out, folder);
}

/* `arg`: set where the reader has gone, such as `head`, with whom the text ends. */
static co_status generate_write(void *arg, const uint8_t *text, size_t n)
{
    if (fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0)
        return CO_OK;
    *(bool *)arg = errno == EPIPE;
    return co_fail(CO_E_IO, "cannot write to standard output: %s", strerror(errno));
}

static co_status generate_run(const void *options, int n, const char *const *argument)
{
    const generate_options *o = options;
    co_train_options run = {.set = o->set.text};
    bool gone = false;
    co_generate_options work = {.prompt = o->prompt,
                                .tokens = (uint64_t)o->tokens,
                                .rule = {.top_k = (uint32_t)o->top_k},
                                .seed = (uint64_t)o->seed,
                                .write = generate_write,
                                .arg = &gone};
    co_tokenizer tokenizer;
    cli_source source;
    cli_network net;
    co_status st;

    (void)n;
    CO_TRY(generate_number(&work.rule.temperature, "temperature", o->temperature, 100));
    CO_TRY(generate_number(&work.rule.top_p, "top-p", o->top_p, 1));
    if (!o->prompt)
        return co_fail(CO_E_USAGE, "--prompt TEXT is missing: the text to continue");
    CO_TRY(cli_source_find(&source, argument[0], o->checkpoint, o->config));
    run.config_path = source.config;
    CO_TRY(cli_source_open(&net, &run, source.weights, NULL));
    co_model_setup(net.model, co_thread_cores());
    co_thread_flush_denormals();
    st = generate_open_tokenizer(&tokenizer, o, &source);
    if (st == CO_OK) {
        st = co_generate(net.model, &tokenizer, &work);
        co_tokenizer_close(&tokenizer);
    }
    cli_network_close(&net);
    if (gone)
        return CO_OK;
    if (st == CO_OK)
        putchar('\n');
    return st;
}

const co_command co_command_generate = {
    .name = "generate",
    .summary = "write text with a trained language model",
    .about =
        "Continues --prompt by what a model predicts, a token at a time, and prints both as the\n"
        "text comes. Keys and values of earlier positions are kept, so that a token takes one\n"
        "pass over a single position. When the text is as long as the model's context, it\n"
        "continues from the later half of that. Bytes that are no UTF-8, and control\n"
        "characters, are printed as U+FFFD.",
    .example = "  cohort generate runs/first --prompt \"ROMEO:\"\n"
               "  cohort generate runs/first --prompt \"ROMEO:\" --tokens 500 --top-k 20 --seed 7\n"
               "  cohort generate gpt2.safetensors -c gpt2.yaml --tokenizer gpt2 --prompt \"Once\"",
    .arguments = generate_arguments,
    .options = generate_option_table,
    .options_size = sizeof(generate_options),
    .defaults = &generate_defaults,
    .run = generate_run,
};
