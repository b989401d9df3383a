/* vector_laws.h - the arithmetic of ext/vector.h as tests that run on any device. */
#ifndef TESTS_DEVICE_VECTOR_LAWS_H
#define TESTS_DEVICE_VECTOR_LAWS_H

#include "device/device.h"

/* Every entry, each on results of others: the bits of the host. */
void vector_check_bits(co_device *device);
/* A hundred replays of captured work: the same. */
void vector_check_capture(co_device *device);

#endif
