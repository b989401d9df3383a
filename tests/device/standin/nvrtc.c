/*
 * nvrtc.c - a compiler that compiles nothing: its code says that the driver's own kernels are
 * meant. Found as libnvrtc.so.13, beside the driver.
 */
#include <nvrtc.h>
#include <stdlib.h>
#include <string.h>

#include "standin/standin.h"

struct _nvrtcProgram {
    int compiled;
};

STANDIN_EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

STANDIN_EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_ERROR_INVALID_OPTION ? "an option that is not known" : "another error";
}

STANDIN_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name,
                                              int n, const char *const *headers,
                                              const char *const *names)
{
    if (!*text || !strstr(text, "KERNEL(") || !strstr(name, ".cu") || n < 1 || !headers || !names)
        return NVRTC_ERROR_INVALID_INPUT;
    *out = calloc(1, sizeof(**out));
    return *out ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

STANDIN_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

STANDIN_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n,
                                               const char *const *option)
{
    static const char *const known[] = {"--fmad=false", "--device-as-default-execution-space",
                                        "--gpu-architecture=sm_90"};

    if (n != 3)
        return NVRTC_ERROR_INVALID_OPTION;
    for (int i = 0; i < n; i++)
        if (strcmp(option[i], known[i]) != 0)
            return NVRTC_ERROR_INVALID_OPTION;
    program->compiled = 1;
    return NVRTC_SUCCESS;
}

STANDIN_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    (void)program;
    *size = 1;
    return NVRTC_SUCCESS;
}

STANDIN_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    (void)program;
    *log = 0;
    return NVRTC_SUCCESS;
}

STANDIN_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    *size = sizeof(STANDIN_CODE);
    return program->compiled ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

STANDIN_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *code)
{
    memcpy(code, STANDIN_CODE, sizeof(STANDIN_CODE));
    return program->compiled ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}
