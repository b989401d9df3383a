/*
 * hints.h - what other programs call the keys and names of a config, and what they are called here.
 *
 * One table for messages alone: nothing is accepted by it. Names are compared without regard to
 * case, and '-' is '_'.
 */
#ifndef CO_CORE_HINTS_H
#define CO_CORE_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#define CO_HINT_TEXT 512 /* enough for any hint */

/* Whether two names are the same but for case, and '-' for '_'. */
bool co_hint_same(const char *a, const char *b);

/* What to write instead of the key `name`, which the owner `what` ("config", "optimizer sgd") does
   not know: "here it is 'batch'". NULL: nothing is known of it. */
const char *co_hint_key(char out[CO_HINT_TEXT], const char *what, const char *name);

/* The same for the command line: a dotted key for --set in *path, or else a sentence in *text.
   False: nothing is known of it. */
bool co_hint_option(const char **path, const char **text, const char *name);

/* What to write instead of `name` where a `what` ("strategy", "data set") or the value of a key of
   that name is asked for; NULL: nothing is known of it. */
const char *co_hint_name(const char *what, const char *name);

#endif
