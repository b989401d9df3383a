/*
 * batchnorm.c - each channel to mean 0 and variance 1 over the batch, then scale and shift.
 *
 * oneDNN computes the mean and the biased variance of the batch, which are kept for backward; the
 * running statistics are updated here, by PyTorch's rule.
 */
#include "backends/onednn/onednn.h"

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };

static unsigned batchnorm_flags(const co_call *call)
{
    return (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift |
           (call->training ? 0u : (unsigned)dnnl_use_global_stats);
}

/* Statistics of the batch are in the workspace: mean (C), variance (C). */
static void batchnorm_statistics(onednn_operand *mean, onednn_operand *var, onednn_self *self)
{
    const co_call *call = self->call;

    *mean = onednn_tensor(self, &call->param[RUNNING_MEAN]);
    *var = onednn_tensor(self, &call->param[RUNNING_VAR]);
    if (call->training) {
        mean->base = var->base = &call->workspace;
        var->offset = call->workspace_bytes / 2;
    }
}

static co_status batchnorm_plan(co_call *call)
{
    const co_batchnorm_attr *a = call->attr;
    onednn_self *self = call->self;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    const onednn_operand weight = onednn_tensor(self, &call->param[WEIGHT]);
    const onednn_operand bias = onednn_tensor(self, &call->param[BIAS]);
    onednn_operand y, mean, var;
    dnnl_status_t st;

    CO_TRY(onednn_begin(call));
    onednn_like(call->out[0], call->in[0]);
    y = onednn_tensor(self, call->out[0]);
    if (call->training)
        call->workspace_bytes = 2 * (size_t)call->in[0]->shape.dim[1] * sizeof(float);
    batchnorm_statistics(&mean, &var, self);
    st = dnnl_batch_normalization_forward_primitive_desc_create(
        &self->forward_pd, self->engine, onednn_direction(call), x.md, y.md, (float)a->eps,
        batchnorm_flags(call), self->attr);
    CO_TRY(onednn_described(self, st, &self->forward_pd));
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, &x},        {DNNL_ARG_DST, &y},
                                  {DNNL_ARG_SCALE, &weight}, {DNNL_ARG_SHIFT, &bias},
                                  {DNNL_ARG_MEAN, &mean},    {DNNL_ARG_VARIANCE, &var}};

        return onednn_add_step(self, &self->forward, ONEDNN_ALWAYS, self->forward_pd, arg, 6);
    }
}

/* One of the two ways to return the gradients of the parameters. */
static co_status batchnorm_add_backward(onednn_self *self, const_dnnl_primitive_desc_t pd,
                                        onednn_when when, const onednn_operand *dy,
                                        const onednn_operand *dx)
{
    const co_call *call = self->call;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    const onednn_operand weight = onednn_tensor(self, &call->param[WEIGHT]);
    const onednn_operand bias = onednn_tensor(self, &call->param[BIAS]);
    const onednn_operand weight_store = onednn_tensor(self, &call->grad_param[WEIGHT]);
    const onednn_operand bias_store = onednn_tensor(self, &call->grad_param[BIAS]);
    const size_t mark = self->backward.scratch;
    const onednn_operand dw = onednn_gradient(self, when, &weight_store, weight_store.md);
    const onednn_operand db = onednn_gradient(self, when, &bias_store, bias_store.md);
    onednn_operand mean, var;

    batchnorm_statistics(&mean, &var, self);
    {
        const onednn_arg arg[] = {
            {DNNL_ARG_SRC, &x},         {DNNL_ARG_DIFF_DST, dy},    {DNNL_ARG_SCALE, &weight},
            {DNNL_ARG_MEAN, &mean},     {DNNL_ARG_VARIANCE, &var},  {DNNL_ARG_DIFF_SRC, dx},
            {DNNL_ARG_DIFF_SCALE, &dw}, {DNNL_ARG_DIFF_SHIFT, &db}, {DNNL_ARG_SHIFT, &bias}};

        CO_TRY(onednn_add_step(self, &self->backward, when, pd, arg, 8 + ONEDNN_BACKWARD_SHIFT));
    }
    CO_TRY(onednn_put_gradient(self, when, &dw, &weight_store));
    CO_TRY(onednn_put_gradient(self, when, &db, &bias_store));
    self->backward.scratch = mark;
    return CO_OK;
}

static co_status batchnorm_plan_backward(co_call *call)
{
    const co_batchnorm_attr *a = call->attr;
    onednn_self *self = call->self;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    onednn_operand dy = onednn_tensor(self, call->grad_out[0]), dx;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st;

    (void)onednn_use_threads(call);
    CO_TRY(onednn_convert(&dy, self, &self->backward, x.md));
    /* oneDNN always computes dx; where it is not needed it goes to scratch. */
    if (call->grad_in[0]) {
        onednn_like(call->grad_in[0], call->in[0]);
        dx = onednn_tensor(self, call->grad_in[0]);
    } else {
        dx = onednn_scratch(self, &self->backward, x.md);
    }
    st = dnnl_batch_normalization_backward_primitive_desc_create(
        &pd, self->engine, dnnl_backward, x.md, x.md, x.md, (float)a->eps, batchnorm_flags(call),
        self->forward_pd, self->attr);
    CO_TRY(onednn_described(self, st, &pd));
    CO_TRY(batchnorm_add_backward(self, pd, ONEDNN_OVERWRITE, &dy, &dx));
    return batchnorm_add_backward(self, pd, ONEDNN_ACCUMULATE, &dy, &dx);
}

/* running = (1 - momentum) running + momentum batch, with the unbiased variance. */
static void batchnorm_move_running(const co_call *call)
{
    const co_batchnorm_attr *a = call->attr;
    const int64_t channels = call->in[0]->shape.dim[1];
    const int64_t values = co_shape_count(&call->in[0]->shape) / channels;
    const double count = (double)values;
    const double unbias = count > 1 ? count / (count - 1) : 1;
    const float *mean = call->workspace, *var = mean + channels;
    float *running_mean = call->param[RUNNING_MEAN].data;
    float *running_var = call->param[RUNNING_VAR].data;

    for (int64_t c = 0; c < channels; c++) {
        running_mean[c] += (float)(a->momentum * ((double)mean[c] - (double)running_mean[c]));
        running_var[c] += (float)(a->momentum * (var[c] * unbias - (double)running_var[c]));
    }
}

static co_status batchnorm_forward(co_call *call, const co_run *run)
{
    CO_TRY(onednn_forward(call, run));
    if (call->training)
        batchnorm_move_running(call);
    return CO_OK;
}

static bool batchnorm_supports(const co_call *call, const char **why)
{
    *why = "its sums cannot be added up over ranks";
    return !call->over_ranks && onednn_takes(call, why);
}

const co_kernel co_onednn_batchnorm = {
    .op = "batchnorm",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .half = ONEDNN_HALF,
    .supports = batchnorm_supports,
    .plan = batchnorm_plan,
    .plan_backward = batchnorm_plan_backward,
    .bind = onednn_bind,
    .forward = batchnorm_forward,
    .backward = onednn_backward,
    .fini = onednn_fini,
    .in_place = true,
};
