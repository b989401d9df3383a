/* orphans.h - processes whose parents have ended become children of the test. */
#ifndef TESTS_ORPHANS_H
#define TESTS_ORPHANS_H

#include <stdlib.h>
#include <sys/prctl.h>

/* 0, or -1 with errno. qemu passes this call on to no kernel: there scripts/arm64.sh makes it
   before it starts the test, and says so. */
static inline int orphans_adopt(void)
{
    return getenv("TESTS_ADOPT_ORPHANS") ? 0 : prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

#endif
