/* group_guard.h - a helper process that kills a process group if this process is killed. */
#ifndef CO_LAUNCH_GROUP_GUARD_H
#define CO_LAUNCH_GROUP_GUARD_H

#include <sys/types.h>

typedef struct co_group_guard {
    pid_t pid; /* 0: none */
    int line;  /* owned: write end of the pipe; its EOF means that this process died */
} co_group_guard;

/* `leader`: a child that leads a process group and gets a signal when this process dies. The guard
   kills the group when the leader has ended or after some seconds. If no process can be created
   there is no guard. */
void co_group_guard_start(co_group_guard *guard, pid_t leader);
/* End the guard; call it when `leader` has ended. */
void co_group_guard_end(co_group_guard *guard);

#endif
