/* root.h - which process speaks for a job before its ranks know each other. */
#ifndef CO_LAUNCH_ROOT_H
#define CO_LAUNCH_ROOT_H

#include <stdbool.h>

/* By the launcher's environment; true without an MPI launcher. */
bool co_launch_is_root(void);

#endif
