/* backends.h - the compute backends of this build. */
#ifndef CO_BACKENDS_BACKENDS_H
#define CO_BACKENDS_BACKENDS_H

#include <cohort/ext/kernel.h>

extern const co_backend co_backend_ref, co_backend_cpu;
#ifdef CO_WITH_ONEDNN
extern const co_backend co_backend_onednn;
#endif

/* In order of preference, ended by NULL; ref is last and takes everything. */
extern const co_backend *const co_backends[];
/* {that backend, ref, NULL} for "ref", "cpu" (formerly "native") or "onednn", co_backends for NULL
   or "auto"; NULL if unknown. */
const co_backend *const *co_backends_find(const char *name);

#endif
