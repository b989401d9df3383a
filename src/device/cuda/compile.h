/* compile.h - kernels from their text to code for one kind of GPU. */
#ifndef CO_DEVICE_CUDA_COMPILE_H
#define CO_DEVICE_CUDA_COMPILE_H

#include <stddef.h>
#include <stdint.h>

#include "device/cuda/calls.h"

/* A file that the library carries, by the name that others include it by. */
typedef struct cuda_source {
    const char *name;
    const char *text;
} cuda_source;

extern const cuda_source cuda_sources[]; /* ended by a NULL name */

/* Code of `name` ("kernels/cuda/vector.cu") for sm_<arch>: *out with co_free. CO_E_FAILED, with the
   first lines of the compiler's messages. */
co_status cuda_compile(char **out, size_t *size, const cuda_compiler *rtc, const char *name,
                       int arch);
/* The same by way of the user's cache: only what is not there is compiled. */
co_status cuda_compile_once(char **out, size_t *size, const cuda_compiler *rtc, const char *name,
                            int arch);
/* Of all sources and of how they are compiled. */
uint64_t cuda_sources_hash(void);

#endif
