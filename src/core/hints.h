/*
 * hints.h - names of other programs for the keys and names of a config, and their equivalents here.
 *
 * One table for messages alone: nothing is accepted by it. Names are compared without regard to
 * case, and '-' is '_'.
 */
#ifndef CO_CORE_HINTS_H
#define CO_CORE_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#define CO_HINT_TEXT 512 /* large enough for any hint */

/* Whether two names are the same but for case, and '-' for '_'. */
bool co_hint_same(const char *a, const char *b);

/* The equivalent of the key `name`, which the owner `what` ("config", "optimizer sgd") does not
   know: "here it is 'batch'". NULL: none is known. */
const char *co_hint_key(char out[CO_HINT_TEXT], const char *what, const char *name);

/* The same for the command line: a dotted key for --set in *path, or else a sentence in *text.
   False: none is known. */
bool co_hint_option(const char **path, const char **text, const char *name);

/* The equivalent of `name` where a `what` ("strategy", "data set") or the value of a key of that
   name is expected; NULL: none is known. */
const char *co_hint_name(const char *what, const char *name);

#endif
