/* plural.h - "1 rank", "2 ranks": the ending of a counted noun in messages. */
#ifndef CO_CORE_PLURAL_H
#define CO_CORE_PLURAL_H

#include <stdint.h>

/* For "%d rank%s". */
static inline const char *co_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
