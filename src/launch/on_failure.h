/* on_failure.h - what follows the death of a rank: the config key `on_failure`. */
#ifndef CO_LAUNCH_ON_FAILURE_H
#define CO_LAUNCH_ON_FAILURE_H

typedef enum co_on_failure {
    CO_ON_FAILURE_STOP = 0,
    CO_ON_FAILURE_SHRINK, /* start again without it, and without hosts that are gone */
    CO_ON_FAILURE_RESPAWN /* start as many again */
} co_on_failure;

#endif
