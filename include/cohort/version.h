/* version.h - the version of the headers and of the library. */
#ifndef COHORT_VERSION_H
#define COHORT_VERSION_H

#include <cohort/status.h>

#define CO_VERSION_MAJOR 0
#define CO_VERSION_MINOR 1
#define CO_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/** "0.1.0": version of the library that was linked. Static. */
CO_API const char *co_version(void);

#ifdef __cplusplus
}
#endif
#endif
