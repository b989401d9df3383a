/*
 * registry.c - the compute backends of this build, and the lists from which a plan chooses kernels.
 */
#include <string.h>

#include "backends/backends.h"

static const co_backend *const registry_ref[] = {&co_backend_ref, NULL};
static const co_backend *const registry_cpu[] = {&co_backend_cpu, &co_backend_cpu_general,
                                                 &co_backend_ref, NULL};
static const co_backend *const registry_general[] = {&co_backend_cpu_general, &co_backend_ref,
                                                     NULL};
#ifdef CO_WITH_ONEDNN
static const co_backend *const registry_onednn[] = {&co_backend_onednn, &co_backend_ref, NULL};
#endif
#ifdef CO_WITH_CUDA
static const co_backend *const registry_cuda[] = {&co_backend_cuda, NULL};
#endif

const co_backend *const co_backends[] = {
    &co_backend_cpu,
#ifdef CO_WITH_ONEDNN
    &co_backend_onednn,
#endif
    &co_backend_cpu_general, &co_backend_ref, NULL,
};

/* Names of earlier releases, in configs and run directories. */
static const struct {
    const char *former, *name;
} registry_former[] = {{"native", "cpu"}};

static const char *registry_name(const char *name)
{
    for (size_t i = 0; i < sizeof(registry_former) / sizeof(registry_former[0]); i++)
        if (strcmp(registry_former[i].former, name) == 0)
            return registry_former[i].name;
    return name;
}

const co_backend *const *co_backends_find(const char *name)
{
    if (!name || strcmp(name, "auto") == 0)
        return co_backends;
    name = registry_name(name);
    if (strcmp(name, co_backend_ref.name) == 0)
        return registry_ref;
    if (strcmp(name, co_backend_cpu.name) == 0)
        return registry_cpu;
    if (strcmp(name, co_backend_cpu_general.name) == 0)
        return registry_general;
#ifdef CO_WITH_ONEDNN
    if (strcmp(name, co_backend_onednn.name) == 0)
        return registry_onednn;
#endif
    return NULL;
}

const co_backend *const *co_backends_on(const char *device)
{
#ifdef CO_WITH_CUDA
    if (strcmp(device, co_backend_cuda.device) == 0)
        return registry_cuda;
#endif
    (void)device;
    return NULL;
}
