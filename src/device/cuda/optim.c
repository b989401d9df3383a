/* optim.c - optimizers of GPUs: their settings, for the kernels of src/kernels/cuda/update.cu. */
#include "device/cuda/internal.h"
#include "kernels/cuda/update.h"

static cuda_update optim_range(const co_update *u)
{
    return (cuda_update){.param = u->param,
                         .grad = u->grad,
                         .values = u->values,
                         .n = u->n,
                         .missed = u->missed,
                         .decay = u->decay};
}

static void optim_sgd(const co_optimizer_ops *ops, const void *self, const co_update *u)
{
    const co_sgd *sgd = self;
    cuda_update args = optim_range(u);

    (void)ops;
    args.sgd = *sgd;
    if (sgd->momentum > 0)
        args.first = u->state[0];
    cuda_launch(u->queue, sgd->momentum > 0 ? CUDA_update_sgd_with_velocity : CUDA_update_sgd, u->n,
                &args);
}

static void optim_moments(const void *self, const co_update *u, bool beside)
{
    const co_moments *moments = self;
    cuda_update args = optim_range(u);

    args.first = u->state[0];
    args.second = u->state[1];
    args.beta1 = moments->betas.v[0];
    args.beta2 = moments->betas.v[1];
    args.eps = moments->eps;
    args.beside = beside;
    cuda_launch(u->queue, CUDA_update_moments, u->n, &args);
}

static void optim_adam(const co_optimizer_ops *ops, const void *self, const co_update *u)
{
    (void)ops;
    optim_moments(self, u, false);
}

static void optim_adamw(const co_optimizer_ops *ops, const void *self, const co_update *u)
{
    (void)ops;
    optim_moments(self, u, true);
}

static void optim_adadelta(const co_optimizer_ops *ops, const void *self, const co_update *u)
{
    cuda_update args = optim_range(u);

    (void)ops;
    args.first = u->state[0];
    args.second = u->state[1];
    args.adadelta = *(const co_adadelta *)self;
    cuda_launch(u->queue, CUDA_update_adadelta, u->n, &args);
}

/* Of what is the tensor's alone. */
static double *optim_squares(const co_update *u)
{
    return ((const cuda_queue *)u->queue)->squares;
}

static void optim_lars(const co_optimizer_ops *ops, const void *self, const co_update *u)
{
    const co_lars *lars = self;
    cuda_update args = optim_range(u);

    (void)ops;
    args.first = u->state[0];
    args.lars = *lars;
    args.squares = optim_squares(u);
    args.plain = lars->exclude && u->kind != CO_PARAM_WEIGHT;
    cuda_vector.sum_squares(u->queue, args.squares, NULL, u->param, u->n, NULL);
    cuda_vector.sum_squares(u->queue, args.squares + 1, NULL, u->grad, u->n, &u->values->rule);
    cuda_launch(u->queue, CUDA_update_lars, u->n, &args);
}

static void optim_lamb(const co_optimizer_ops *ops, const void *self, const co_update *u)
{
    const co_lamb *lamb = self;
    cuda_update args = optim_range(u);

    (void)ops;
    args.first = u->state[0];
    args.second = u->state[1];
    args.beta1 = lamb->moments.betas.v[0];
    args.beta2 = lamb->moments.betas.v[1];
    args.eps = lamb->moments.eps;
    args.squares = optim_squares(u);
    args.plain = lamb->exclude && u->kind != CO_PARAM_WEIGHT;
    cuda_launch(u->queue, CUDA_update_lamb_take, u->n, &args);
    if (!args.plain) {
        cuda_vector.sum_squares(u->queue, args.squares, NULL, u->param, u->n, NULL);
        cuda_launch_blocks(u->queue, CUDA_update_lamb_squares, 1, &args);
    }
    cuda_launch(u->queue, CUDA_update_lamb_move, u->n, &args);
}

const co_device_optimizer cuda_optimizers[] = {
    {"sgd", optim_sgd},     {"adam", optim_adam},
    {"adamw", optim_adamw}, {"adadelta", optim_adadelta},
    {"lars", optim_lars},   {"lamb", optim_lamb},
    {NULL, NULL},
};
