/* laws.h - the contract of ext/device.h, as tests that run on any device. */
#ifndef TESTS_DEVICE_LAWS_H
#define TESTS_DEVICE_LAWS_H

#include "device/device.h"

typedef struct law {
    const char *name;
    void (*check)(co_device *device); /* checks with cmocka's asserts */
} law;

/* Terminated by a NULL name. */
extern const law device_laws[];

#endif
