/* emulated.h - tests under qemu, which passes on neither every call nor every limit to the kernel.
 */
#ifndef TESTS_EMULATED_H
#define TESTS_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* scripts/arm64.sh says so to a test that it starts. */
static inline bool is_emulated(void)
{
    return getenv("TESTS_EMULATED") != NULL;
}

/* Processes whose parents have ended become children of the test; 0, or -1 with errno. That script
   has done it where qemu would not. */
static inline int adopt_orphans(void)
{
    return is_emulated() ? 0 : prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

#endif
