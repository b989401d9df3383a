/* optim_laws.h - updates by an optimizer, as tests that run on any device. */
#ifndef TESTS_DEVICE_OPTIM_LAWS_H
#define TESTS_DEVICE_OPTIM_LAWS_H

#include "device/device.h"
#include "optim/optim.h"

/* From its text in a config, over three tensors of the store. */
co_status optim_make(co_optim **out, co_config **config, const char *text, co_store *store);
/* Steps with clipping, two of which overflow: weights, state and the values of the step have the
   bits of the host. */
void optim_check_bits(co_device *device, const char *text);

#endif
