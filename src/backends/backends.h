/* backends.h - the compute backends of this build. */
#ifndef CO_BACKENDS_BACKENDS_H
#define CO_BACKENDS_BACKENDS_H

#include <string.h>

#include <cohort/ext/kernel.h>

extern const co_backend co_backend_ref, co_backend_cpu, co_backend_cpu_general;
#ifdef CO_WITH_ONEDNN
extern const co_backend co_backend_onednn;
#endif
#ifdef CO_WITH_CUDA
extern const co_backend co_backend_cuda;
#endif

/* In order of preference, ended by NULL; ref is last and takes everything. */
extern const co_backend *const co_backends[];
/* {that backend, ref, NULL} for "ref", "onednn" or "cpu-general", both of our own and ref for "cpu"
   (formerly "native"), co_backends for NULL or "auto"; NULL if unknown. */
const co_backend *const *co_backends_find(const char *name);
/* Those that work in the memory of devices of this name; NULL if there are none. */
const co_backend *const *co_backends_on(const char *device);

/* Kernels that change no value, for tensors of one layout: out[0] = in[0], and each input has the
   gradient of the output. Where the plan has given both the same memory, there is nothing to do. */
static inline void co_copy_tensor(const co_tensor *to, const co_tensor *from)
{
    if (to && to->data != from->data)
        memcpy(to->data, from->data, from->bytes);
}

static inline co_status co_copy_forward(co_call *call, const co_run *run)
{
    (void)run;
    co_copy_tensor(call->out[0], call->in[0]);
    return CO_OK;
}

static inline co_status co_copy_backward(co_call *call, const co_run *run)
{
    (void)run;
    for (int i = 0; i < call->op->n_in; i++)
        co_copy_tensor(call->grad_in[i], call->grad_out[0]);
    return CO_OK;
}

#endif
