/* group_guard.h - a process that ends the group that this process has started, should this one be
   killed. */
#ifndef CO_LAUNCH_KEEPER_H
#define CO_LAUNCH_KEEPER_H

#include <sys/types.h>

typedef struct co_group_guard {
    pid_t pid; /* 0: there is none */
    int line;  /* owned: our end of the pipe, which shows that this process is alive */
} co_group_guard;

/* `leader`: a child that leads a process group and is notified of our death by the kernel. If it
   has not ended some seconds after it, or when it has, its whole group is killed. Without memory
   for another process there is none. */
void co_group_guard_start(co_group_guard *guard, pid_t leader);
/* `leader` has ended, and this process lives: the guard ends. */
void co_group_guard_end(co_group_guard *guard);

#endif
