/*
 * mock_backend.c - calls are copied when queued, with all host memory they point to; the worker
 * puts its own addresses into the copy.
 */
#include "device/mock_backend.h"

#include <assert.h>
#include <string.h>

#include "core/half.h"
#include "device/mock.h"

typedef struct backend_job {
    const co_kernel *kernel; /* of a host backend */
    bool backward;
    co_run run;
    co_call call;
    co_tensor in[CO_OP_MAX_IN], out[CO_OP_MAX_OUT];
    co_tensor grad_in[CO_OP_MAX_IN], grad_out[CO_OP_MAX_OUT];
    co_tensor grad_out_extra;
} backend_job;

static void *job_find(mock_memory *memory, void *at)
{
    return at ? mock_memory_reach(memory, at) : NULL;
}

static void job_take(co_tensor *copy, const co_tensor *tensor)
{
    if (tensor)
        *copy = *tensor;
}

static void job_give(co_tensor **tensor, co_tensor *copy, mock_memory *memory)
{
    if (!*tensor)
        return;
    *tensor = copy;
    copy->data = job_find(memory, copy->data);
}

static co_status job_do(void *what, mock_memory *memory)
{
    backend_job *job = what;
    co_call *call = &job->call;

    for (int i = 0; i < call->n_in; i++) {
        job_give(&call->in[i], &job->in[i], memory);
        job_give(&call->grad_in[i], &job->grad_in[i], memory);
    }
    for (int i = 0; i < call->n_out; i++) {
        job_give(&call->out[i], &job->out[i], memory);
        job_give(&call->grad_out[i], &job->grad_out[i], memory);
    }
    job_give(&call->grad_out_extra, &job->grad_out_extra, memory);
    for (int i = 0; i < call->n_param; i++) {
        call->param[i].data = job_find(memory, call->param[i].data);
        call->grad_param[i].data = job_find(memory, call->grad_param[i].data);
    }
    call->workspace = job_find(memory, call->workspace);
    call->scratch = job_find(memory, call->scratch);
    call->queue = NULL;
    call->kernel = job->kernel;
    job->run.values = mock_memory_reach(memory, job->run.values);
    job->run.sample = mock_memory_reach(memory, job->run.sample);
    return job->backward ? job->kernel->backward(call, &job->run)
                         : job->kernel->forward(call, &job->run);
}

static co_status backend_queue(const co_call *call, const co_run *run, bool backward)
{
    const mock_kernel *kernel = (const mock_kernel *)call->kernel;
    backend_job job = {.kernel = kernel->of, .run = *run, .backward = backward, .call = *call};

    for (int i = 0; i < call->n_in; i++) {
        job_take(&job.in[i], call->in[i]);
        job_take(&job.grad_in[i], call->grad_in[i]);
    }
    for (int i = 0; i < call->n_out; i++) {
        job_take(&job.out[i], call->out[i]);
        job_take(&job.grad_out[i], call->grad_out[i]);
    }
    job_take(&job.grad_out_extra, call->grad_out_extra);
    return mock_enqueue(call->queue, job_do, &job, sizeof(job));
}

static co_status backend_forward(co_call *call, const co_run *run)
{
    return backend_queue(call, run, false);
}

static co_status backend_backward(co_call *call, const co_run *run)
{
    return backend_queue(call, run, true);
}

typedef struct convert_job {
    void *to;
    const void *from;
    co_dtype to_type, from_type;
    size_t n;
} convert_job;

static co_status convert_do(void *what, mock_memory *memory)
{
    const convert_job *job = what;
    void *to = mock_memory_reach(memory, job->to);
    const void *from = mock_memory_reach(memory, job->from);

    if (co_dtype_is_half(job->from_type))
        co_half_widen(to, from, job->n, job->from_type);
    else
        co_half_round(to, from, job->n, job->to_type);
    return CO_OK;
}

static co_status backend_convert(co_queue *queue, void *to, co_dtype to_type, const void *from,
                                 co_dtype from_type, size_t n)
{
    const convert_job job = {to, from, to_type, from_type, n};

    return mock_enqueue(queue, convert_do, &job, sizeof(job));
}

/* A worker has no communicator. */
static bool backend_is_alone(const co_call *call, const char **why)
{
    *why = "batch statistics over ranks";
    return !call->over_ranks;
}

void mock_backend_init(mock_backend *out, const co_backend *const *of)
{
    int n = 0;

    memset(out, 0, sizeof(*out));
    for (; *of; of++)
        for (const co_kernel *const *k = (*of)->kernels; *k; k++) {
            mock_kernel *kernel = &out->kernel[n];

            assert(n < MOCK_MAX_KERNELS && !(*k)->reads && !(*k)->self_size && !(*k)->bind);
            kernel->kernel = *(kernel->of = *k);
            if (strcmp((*k)->op, "batchnorm") == 0)
                kernel->kernel.supports = backend_is_alone;
            kernel->kernel.forward = backend_forward;
            kernel->kernel.backward = (*k)->backward ? backend_backward : NULL;
            out->list[n++] = &kernel->kernel;
        }
    out->backend = (co_backend){.name = "mock",
                                .summary = "kernels of the host, called by workers (tests)",
                                .kernels = out->list,
                                .device = "mock",
                                .convert = backend_convert};
    out->all[0] = &out->backend;
}
