/* compile.c - kernels compiled by NVRTC from the text that the library carries. */
#include "device/cuda/compile.h"

#include <stdio.h>
#include <string.h>

#include "core/hash.h"
#include "core/mem.h"

#define COMPILE_FILES 64
#define COMPILE_LOG   1024 /* bytes of the compiler's messages that are passed on */

/* Each operation is rounded by itself, as the host's; a function of a header is the GPU's, too. */
static const char *const compile_options[] = {"--fmad=false",
                                              "--device-as-default-execution-space"};

uint64_t cuda_sources_hash(void)
{
    uint64_t hash = CO_HASH;

    for (const cuda_source *s = cuda_sources; s->name; s++) {
        hash = co_hash(hash, s->name, strlen(s->name) + 1);
        hash = co_hash(hash, s->text, strlen(s->text) + 1);
    }
    for (size_t i = 0; i < sizeof(compile_options) / sizeof(compile_options[0]); i++)
        hash = co_hash(hash, compile_options[i], strlen(compile_options[i]) + 1);
    return hash;
}

static co_status compile_fail(const cuda_compiler *rtc, nvrtcResult result, nvrtcProgram program,
                              const char *name, int arch)
{
    char *text = NULL;
    size_t size = 0;
    co_status st;

    if (program && rtc->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1)
        text = co_calloc(size + 1, 1);
    if (text && rtc->nvrtcGetProgramLog(program, text) != NVRTC_SUCCESS)
        *text = 0;
    for (char *at = text; at && *at; at++)
        *at = *at == '\n' ? ' ' : *at;
    st = co_fail(CO_E_FAILED,
                 "cuda: NVRTC does not compile %s for sm_%d: %s; a GPU that is newer than this "
                 "NVRTC needs a later one%s%.*s",
                 name, arch, rtc->nvrtcGetErrorString(result), text ? ": " : "", COMPILE_LOG,
                 text ? text : "");
    co_free(text);
    return st;
}

static co_status compile_take(char **out, size_t *size, const cuda_compiler *rtc,
                              nvrtcProgram program, const char *name, int arch)
{
    nvrtcResult result = rtc->nvrtcGetCUBINSize(program, size);
    char *code;

    if (result != NVRTC_SUCCESS)
        return compile_fail(rtc, result, NULL, name, arch);
    code = co_calloc(*size, 1);
    if (!code)
        return CO_E_NOMEM;
    result = rtc->nvrtcGetCUBIN(program, code);
    if (result != NVRTC_SUCCESS) {
        co_free(code);
        return compile_fail(rtc, result, NULL, name, arch);
    }
    *out = code;
    return CO_OK;
}

co_status cuda_compile(char **out, size_t *size, const cuda_compiler *rtc, const char *name,
                       int arch)
{
    const char *text[COMPILE_FILES], *names[COMPILE_FILES], *source = NULL;
    const char *options[] = {compile_options[0], compile_options[1], NULL};
    nvrtcProgram program = NULL;
    char target[40];
    nvrtcResult result;
    co_status st;
    int n = 0;

    for (const cuda_source *s = cuda_sources; s->name && n < COMPILE_FILES; s++, n++) {
        names[n] = s->name;
        text[n] = s->text;
        source = strcmp(s->name, name) == 0 ? s->text : source;
    }
    if (!source)
        return co_fail(CO_E_FAILED, "cuda: no kernels of the name %s", name);
    snprintf(target, sizeof(target), "--gpu-architecture=sm_%d", arch);
    options[2] = target;
    result = rtc->nvrtcCreateProgram(&program, source, name, n, text, names);
    if (result == NVRTC_SUCCESS)
        result = rtc->nvrtcCompileProgram(program, 3, options);
    st = result == NVRTC_SUCCESS ? compile_take(out, size, rtc, program, name, arch)
                                 : compile_fail(rtc, result, program, name, arch);
    if (program)
        (void)rtc->nvrtcDestroyProgram(&program);
    return st;
}
