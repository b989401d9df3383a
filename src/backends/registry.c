/*
 * registry.c - the compute backends of this build, and the lists that a plan chooses kernels from.
 */
#include <string.h>

#include "backends/backends.h"

static const co_backend *const registry_ref[] = {&co_backend_ref, NULL};
static const co_backend *const registry_native[] = {&co_backend_native, &co_backend_ref, NULL};
#ifdef CO_WITH_ONEDNN
static const co_backend *const registry_onednn[] = {&co_backend_onednn, &co_backend_ref, NULL};
#endif

const co_backend *const co_backends[] = {
    &co_backend_native,
#ifdef CO_WITH_ONEDNN
    &co_backend_onednn,
#endif
    &co_backend_ref,
    NULL,
};

const co_backend *const *co_backends_find(const char *name)
{
    if (!name || strcmp(name, "auto") == 0)
        return co_backends;
    if (strcmp(name, co_backend_ref.name) == 0)
        return registry_ref;
    if (strcmp(name, co_backend_native.name) == 0)
        return registry_native;
#ifdef CO_WITH_ONEDNN
    if (strcmp(name, co_backend_onednn.name) == 0)
        return registry_onednn;
#endif
    return NULL;
}
