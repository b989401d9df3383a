/* cohort.h - the whole public API of Cohort. */
#ifndef COHORT_H
#define COHORT_H

#include <cohort/comm.h>
#include <cohort/data.h>
#include <cohort/launch.h>
#include <cohort/log.h>
#include <cohort/safetensors.h>
#include <cohort/status.h>
#include <cohort/train.h>
#include <cohort/types.h>
#include <cohort/version.h>

#endif
