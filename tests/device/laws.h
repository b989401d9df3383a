/*
 * laws.h - what ext/device.h promises, as tests that any device can be put through.
 */
#ifndef TESTS_DEVICE_LAWS_H
#define TESTS_DEVICE_LAWS_H

#include "device/device.h"

typedef struct law {
    const char *name;
    void (*check)(co_device *device); /* by cmocka's asserts */
} law;

/* Ended by a NULL name. */
extern const law device_laws[];

#endif
