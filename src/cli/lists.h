/* lists.h - lists of strategies and numbers on the command line. Texts are in the config's arena.
 */
#ifndef CO_CLI_LISTS_H
#define CO_CLI_LISTS_H

#include "cli/cli.h"

/* "a, b" and "[a, b]" are the same. `option` as the user types it, for messages: "--ranks",
   "--try ranks". */
co_status cli_read_list(const co_value **out, co_config *config, const char *option,
                        const char *text);
/* Distinct whole numbers. */
co_status cli_read_numbers(co_ints *out, co_config *config, const char *option, const char *text,
                           int64_t least, int64_t most);

/* The keys of a strategy in such a list. */
co_status cli_strategy_check(const co_value *item, co_arena *arena);
/* "local period=16" */
co_status cli_strategy_title(const char **out, co_config *config, const co_value *item);

#endif
