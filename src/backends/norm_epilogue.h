/* norm_epilogue.h - which ops after a batch norm its kernel does in the same pass, for each backend
   of our own; the kernels number them alike. */
#ifndef CO_BACKENDS_NORM_EPILOGUE_H
#define CO_BACKENDS_NORM_EPILOGUE_H

#include <string.h>

#include <cohort/ext/kernel.h>

typedef enum co_norm_epilogue {
    CO_NORM_EPILOGUE_NONE,
    CO_NORM_EPILOGUE_RELU,
    CO_NORM_EPILOGUE_ADD,
    CO_NORM_EPILOGUE_ADD_RELU,
    CO_NORM_EPILOGUE_RELU_ADD,
    CO_NORM_EPILOGUE_COUNT
} co_norm_epilogue;

/* CO_NORM_EPILOGUE_COUNT: other ops. */
static inline co_norm_epilogue co_norm_epilogue_of(const co_call *call)
{
    static const char *const names[CO_NORM_EPILOGUE_COUNT][CO_CALL_MAX_FUSED] = {
        [CO_NORM_EPILOGUE_NONE] = {"", ""},
        [CO_NORM_EPILOGUE_RELU] = {"relu", ""},
        [CO_NORM_EPILOGUE_ADD] = {"add", ""},
        [CO_NORM_EPILOGUE_ADD_RELU] = {"add", "relu"},
        [CO_NORM_EPILOGUE_RELU_ADD] = {"relu", "add"}};
    int found = 0;

    for (; found < CO_NORM_EPILOGUE_COUNT; found++) {
        bool same = true;

        for (int i = 0; i < CO_CALL_MAX_FUSED; i++)
            same = same && strcmp(names[found][i], call->fused[i] ? call->fused[i]->name : "") == 0;
        if (same)
            break;
    }
    return (co_norm_epilogue)found;
}

#endif
