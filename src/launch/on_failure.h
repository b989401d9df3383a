/* on_failure.h - the config key `on_failure`: what to do when a rank dies. */
#ifndef CO_LAUNCH_ON_FAILURE_H
#define CO_LAUNCH_ON_FAILURE_H

typedef enum co_on_failure {
    CO_ON_FAILURE_STOP = 0,
    CO_ON_FAILURE_SHRINK, /* restart without it, and without lost hosts */
    CO_ON_FAILURE_RESPAWN /* restart with as many ranks */
} co_on_failure;

#endif
