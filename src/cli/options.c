/*
 * options.c - parses a command's options and arguments, and prints its --help, from its tables.
 *
 * Accepts --name VALUE, --name=VALUE, -n VALUE and -nVALUE before and after arguments; everything
 * after "--" is an argument. Does not know any command.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/config.h"
#include "core/hints.h"

#define OPTIONS_COLUMN 28 /* column of the help texts */

/* For suggestions: every command has it. */
static const char options_help_name[] = "help";

static const cli_option *options_find_name(const co_command *command, const char *name, size_t n)
{
    for (const cli_option *o = command->options; o && o->name; o++)
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

static const cli_option *options_find_letter(const co_command *command, char letter)
{
    for (const cli_option *o = command->options; o && o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

/* The top-level key that a dotted path starts with, in the config's spelling; NULL: none. */
static const char *options_config_key(const char *name)
{
    char first[64];

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(name, "."), name);
    for (const co_key *key = co_spec_keys; key->name; key++)
        if (co_hint_same(key->name, first))
            return key->name;
    return NULL;
}

/* Suggest --set for `--epochs 3` or `--lr=0.1`: keys of the config, or other programs' names for
   them. `value`: the word after the option, or NULL. `near`: an option has a similar name, which is
   the better suggestion. */
static co_status options_meant_key(const co_command *command, const char *name, const char *value,
                                   bool near)
{
    const char *key = options_config_key(name), *path = NULL, *words = NULL, *quote;

    if (key)
        return co_fail(CO_E_USAGE,
                       "unknown option '--%s'; keys of the config are changed by --set: `--set "
                       "%s%s=%s`",
                       name, key, name + strcspn(name, "."), value ? value : "VALUE");
    if (!co_hint_option(&path, &words, name))
        return CO_OK;
    if (!path && !near)
        return co_fail(CO_E_USAGE, "unknown option '--%s'; %s", name, words);
    if (!path)
        return CO_OK;
    if (strcmp(path, "ranks") == 0 && options_find_letter(command, 'n'))
        return co_fail(CO_E_USAGE, "unknown option '--%s'; here it is `-n %s`", name,
                       value ? value : words);
    value = value ? value : words;
    quote = strpbrk(value, " {}[]*'") ? "'" : "";
    return co_fail(CO_E_USAGE,
                   "unknown option '--%s'; here it is a key of the config: `--set %s%s=%s%s`", name,
                   quote, path, value, quote);
}

/* `next`: the following word, or NULL. */
static co_status options_unknown(const co_command *command, const char *text, const char *next)
{
    const char *names[64], *near = NULL, *equals = strchr(text, '=');
    char name[64];
    size_t n = 0;

    names[n++] = options_help_name;
    for (const cli_option *o = command->options; o && o->name && n < 64; o++)
        names[n++] = o->name;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text + 2, "="), text + 2);
    if (text[1] == '-')
        near = co_nearest(name, names, n);
    if (equals)
        next = equals + 1;
    else if (next && next[0] == '-')
        next = NULL;
    if (text[1] == '-' && !(near && co_hint_same(near, name)) &&
        options_find_name(command, "set", 3))
        CO_TRY(options_meant_key(command, name, next, near != NULL));
    if (near)
        return co_fail(CO_E_USAGE,
                       "unknown option '--%s'; did you mean '--%s'? See `cohort %s --help`", name,
                       near, command->name);
    return co_fail(CO_E_USAGE, "unknown option '%s'; see `cohort %s --help`", text, command->name);
}

/* Accepts only a whole decimal number. */
static bool options_read_count(int64_t *out, const char *text)
{
    char *end;

    if (*text != '-' && (*text < '0' || *text > '9'))
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static co_status options_store_count(int64_t *field, const cli_option *o, const char *value)
{
    if (!options_read_count(field, value) || *field < o->min || *field > o->max)
        return co_fail(CO_E_USAGE,
                       "--%s takes a whole number from %" PRId64 " to %" PRId64 ", not '%s'",
                       o->name, o->min, o->max, value);
    return CO_OK;
}

static co_status options_store(void *options, const cli_option *o, const char *value)
{
    char *field = (char *)options + o->offset;
    cli_list *list;

    switch (o->type) {
    case CLI_FLAG:
        *(bool *)field = true;
        return CO_OK;
    case CLI_COUNT:
        return options_store_count((int64_t *)(void *)field, o, value);
    case CLI_TEXT:
        if (*value == '\0')
            return co_fail(CO_E_USAGE, "--%s needs a value: %s", o->name, o->value);
        *(const char **)(void *)field = value;
        return CO_OK;
    case CLI_LIST:
        list = (cli_list *)(void *)field;
        if (list->n == CLI_MAX_LIST)
            return co_fail(CO_E_USAGE, "--%s can be given %d times at most", o->name, CLI_MAX_LIST);
        list->text[list->n++] = value;
        return CO_OK;
    }
    return CO_OK;
}

/* Read the option at argv[*i]; *i is left at its last word. */
static co_status options_take(cli_parsed *out, int *i, const co_command *command, int argc,
                              const char *const *argv)
{
    const char *text = argv[*i], *value = NULL;
    const cli_option *o;

    if (text[1] == '-') {
        size_t n = strcspn(text + 2, "=");

        o = options_find_name(command, text + 2, n);
        value = text[2 + n] == '=' ? text + 3 + n : NULL;
    } else {
        o = options_find_letter(command, text[1]);
        value = text[2] ? text + 2 : NULL;
    }
    if (!o)
        return options_unknown(command, text, *i + 1 < argc ? argv[*i + 1] : NULL);
    if (o->type == CLI_FLAG && value)
        return co_fail(CO_E_USAGE, "--%s takes no value; drop '%s'", o->name, value);
    if (o->type != CLI_FLAG && !value) {
        if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
            return co_fail(CO_E_USAGE, "--%s needs a value: --%s %s", o->name, o->name, o->value);
        value = argv[++*i];
    }
    return options_store(out->options, o, value);
}

static bool options_is_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

/* "IMAGE...": one, and all that follow. */
static bool options_takes_rest(const cli_argument *a)
{
    const size_t n = strlen(a->name);

    return n > 3 && strcmp(a->name + n - 3, "...") == 0;
}

static co_status options_check_arguments(const cli_parsed *parsed, const co_command *command)
{
    const cli_argument *a = command->arguments;
    int n = parsed->n_argument, i = 0;

    for (; a && a->name; a++, i++)
        if (i >= n && !a->optional)
            return co_fail(CO_E_USAGE, "%s is missing: %s; see `cohort %s --help`", a->name,
                           a->help, command->name);
    if (n > i && i > 0 && options_takes_rest(a - 1))
        return CO_OK;
    if (n > i)
        return co_fail(CO_E_USAGE,
                       "'%s' is one argument too many; `cohort %s` takes %d; see `cohort %s "
                       "--help`",
                       parsed->argument[i], command->name, i, command->name);
    return CO_OK;
}

co_status cli_parse(cli_parsed *out, const co_command *command, int argc, const char *const *argv)
{
    bool options = true;

    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) {
            break;
        } else if (options_is_help(argv[i])) {
            out->help = true;
            return CO_OK;
        }
    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            CO_TRY(options_take(out, &i, command, argc, argv));
        else
            out->argument[out->n_argument++] = argv[i];
    }
    out->argument[out->n_argument] = NULL;
    return options_check_arguments(out, command);
}

static void options_print_row(FILE *out, const char *left, const char *help)
{
    fprintf(out, "  %-*s  %s\n", OPTIONS_COLUMN - 4, left, help);
}

static void options_print_option(FILE *out, const cli_option *o)
{
    char left[96], letter[8] = "    ";

    if (o->letter)
        snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->value ? " " : "",
             o->value ? o->value : "");
    options_print_row(out, left, o->help);
}

void cli_print_help(FILE *out, const co_command *command)
{
    fprintf(out, "cohort %s - %s\n\nUsage: cohort %s", command->name, command->summary,
            command->name);
    for (const cli_argument *a = command->arguments; a && a->name; a++)
        fprintf(out, a->optional ? " [%s]" : " %s", a->name);
    fprintf(out, "%s\n\n%s\n", command->options ? " [options]" : "", command->about);
    if (command->arguments)
        fprintf(out, "\nArguments:\n");
    for (const cli_argument *a = command->arguments; a && a->name; a++)
        options_print_row(out, a->name, a->help);
    fprintf(out, "\nOptions:\n");
    for (const cli_option *o = command->options; o && o->name; o++)
        options_print_option(out, o);
    options_print_row(out, "-h, --help", "print this text");
    fprintf(out, "\nExit codes:\n"
                 "  0 done, 1 the run failed, 2 bad usage or config, 3 bad input data,\n"
                 "  4 a rank died or timed out, 130 interrupted (SIGINT), 143 terminated "
                 "(SIGTERM)\n");
    fprintf(out, "\nExample:\n%s\n", command->example);
}
