/*
 * open_gpu.h - the GPU of a test. With the argument "standin" the driver must be the stand-in;
 * without, it is the machine's own, and tests are skipped where there is none.
 */
#ifndef TESTS_STANDIN_OPEN_GPU_H
#define TESTS_STANDIN_OPEN_GPU_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

static bool standin;

/* First in main. Nothing is left in the user's cache, and nothing comes from it. */
static inline void open_gpu_begin(int argc, char **argv)
{
    standin = argc > 1 && strcmp(argv[1], "standin") == 0;
    if (standin)
        setenv("XDG_CACHE_HOME", "/dev/null", 1);
}

/* Does not return where there is none. */
static inline co_device *open_gpu(void)
{
    co_device *device = NULL;
    const co_status st = co_cuda_open(&device, &(co_cuda_options){0});

    if (st == CO_E_UNSUPPORTED && !standin) {
        printf("skipped: %s\n", co_error_message());
        skip();
    }
    if (st != CO_OK)
        fail_msg("%s", co_error_message());
    return device;
}

#endif
