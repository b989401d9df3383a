/* status.h - whether a function that failed has said why. */
#ifndef CO_CORE_STATUS_H
#define CO_CORE_STATUS_H

#include <stdint.h>

#include <cohort/status.h>

#define CO_STATUS_MESSAGE 2000 /* bytes of co_error_message, at most */

/* How often this thread has called co_fail. */
uint64_t co_fail_count(void);

#endif
