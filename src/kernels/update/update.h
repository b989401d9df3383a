/*
 * update.h - one weight of an update, and the rates of all of them, for loops on any device: what
 * optimizers have in common with kernels of a GPU. The equations are in src/optim.
 */
#ifndef CO_KERNELS_UPDATE_UPDATE_H
#define CO_KERNELS_UPDATE_UPDATE_H

#include <math.h>

#include <cohort/ext/keys.h>
#include <cohort/ext/step.h>

/* ---- sgd ---- */

typedef struct co_sgd {
    double momentum, dampening;
    bool nesterov, dampen_first;
} co_sgd;

/* How a gradient enters the velocity, and the velocity the weight. */
typedef struct co_sgd_rates {
    float lr, decay, momentum, keep;
    bool nesterov;
    co_grad_rule rule;
} co_sgd_rates;

/* `missed`: of a range of tensors (co_update), here and below. */
static inline co_sgd_rates co_sgd_rates_of(const co_sgd *s, const co_step_values *values,
                                           uint64_t missed, double decay)
{
    const bool whole = values->update - missed == 1 && !s->dampen_first;
    co_sgd_rates rates;

    rates.lr = (float)values->given.lr;
    rates.decay = (float)decay;
    rates.momentum = (float)s->momentum;
    rates.keep = whole ? 1.0f : (float)(1 - s->dampening);
    rates.nesterov = s->nesterov;
    rates.rule = values->rule;
    return rates;
}

static inline void co_sgd_move(float *p, float g, const co_sgd_rates *r)
{
    *p -= r->lr * (co_grad_use(g, r->rule) + r->decay * *p);
}

static inline void co_sgd_move_with_velocity(float *p, float *v, float g, const co_sgd_rates *r)
{
    const float d = co_grad_use(g, r->rule) + r->decay * *p;

    *v = r->momentum * *v + r->keep * d;
    *p -= r->lr * (r->nesterov ? d + r->momentum * *v : *v);
}

/* ---- adam, adamw ---- */

typedef struct co_moments {
    co_reals betas; /* two, below 1 */
    double eps;
} co_moments;

typedef struct co_moments_rates {
    float beta1, beta2, rest1, rest2, keep, decay, lr, root, eps;
    co_grad_rule rule;
} co_moments_rates;

/* `beside`: the weight decays beside the gradient, else in it. */
static inline co_moments_rates co_moments_rates_of(double beta1, double beta2, double eps,
                                                   const co_step_values *values, uint64_t missed,
                                                   double decay, bool beside)
{
    const double t = (double)(values->update - missed);
    co_moments_rates rates;

    rates.beta1 = (float)beta1;
    rates.beta2 = (float)beta2;
    rates.rest1 = (float)(1 - beta1);
    rates.rest2 = (float)(1 - beta2);
    rates.keep = beside ? (float)(1 - values->given.lr * decay) : 1.0f;
    rates.decay = beside ? 0.0f : (float)decay;
    rates.lr = (float)(values->given.lr / (1 - pow(beta1, t)));
    rates.root = (float)sqrt(1 - pow(beta2, t));
    rates.eps = (float)eps;
    rates.rule = values->rule;
    return rates;
}

static inline void co_moments_move(float *p, float *m, float *v, float g, const co_moments_rates *r)
{
    const float w = *p * r->keep, d = co_grad_use(g, r->rule) + r->decay * w;

    *m = r->beta1 * *m + r->rest1 * d;
    *v = r->beta2 * *v + r->rest2 * (d * d);
    *p = w - r->lr * (*m / (sqrtf(*v) / r->root + r->eps));
}

/* ---- adadelta ---- */

typedef struct co_adadelta {
    double rho, eps;
} co_adadelta;

typedef struct co_adadelta_rates {
    float lr, decay, rho, rest, eps;
    co_grad_rule rule;
} co_adadelta_rates;

static inline co_adadelta_rates co_adadelta_rates_of(const co_adadelta *a,
                                                     const co_step_values *values, double decay)
{
    co_adadelta_rates rates;

    rates.lr = (float)values->given.lr;
    rates.decay = (float)decay;
    rates.rho = (float)a->rho;
    rates.rest = (float)(1 - a->rho);
    rates.eps = (float)a->eps;
    rates.rule = values->rule;
    return rates;
}

/* v: mean square of gradients, u: of steps. */
static inline void co_adadelta_move(float *p, float *v, float *u, float g,
                                    const co_adadelta_rates *r)
{
    const float d = co_grad_use(g, r->rule) + r->decay * *p;
    float s;

    *v = r->rho * *v + r->rest * (d * d);
    s = sqrtf(*u + r->eps) / sqrtf(*v + r->eps) * d;
    *u = r->rho * *u + r->rest * (s * s);
    *p -= r->lr * s;
}

/* ---- lars ---- */

typedef struct co_lars {
    double momentum, trust;
    bool exclude;
} co_lars;

typedef struct co_lars_rates {
    float momentum, rate, decay;
    co_grad_rule rule;
} co_lars_rates;

/* By the sums of squares of a tensor's weights and of its gradients; `plain`: of one with ratio 1.
 */
static inline co_lars_rates co_lars_rates_of(const co_lars *l, const co_step_values *values,
                                             double decay, bool plain, double weights,
                                             double gradients)
{
    const double p = sqrt(weights), g = sqrt(gradients);
    const double ratio = plain || p == 0 || g == 0 ? 1 : l->trust * p / (g + decay * p);
    co_lars_rates rates;

    rates.momentum = (float)l->momentum;
    rates.rate = (float)(values->given.lr * ratio);
    rates.decay = (float)decay;
    rates.rule = values->rule;
    return rates;
}

static inline void co_lars_move(float *p, float *v, float g, const co_lars_rates *r)
{
    *v = r->momentum * *v + r->rate * (co_grad_use(g, r->rule) + r->decay * *p);
    *p -= *v;
}

/* ---- lamb ---- */

typedef struct co_lamb {
    co_moments moments; /* first: co_moments_count_states */
    bool exclude;
} co_lamb;

typedef struct co_lamb_rates {
    float beta1, beta2, rest1, rest2, scale1, scale2, eps, decay;
    co_grad_rule rule;
} co_lamb_rates;

static inline co_lamb_rates co_lamb_rates_of(double beta1, double beta2, double eps,
                                             const co_step_values *values, uint64_t missed,
                                             double decay)
{
    const double t = (double)(values->update - missed);
    co_lamb_rates rates;

    rates.beta1 = (float)beta1;
    rates.beta2 = (float)beta2;
    rates.rest1 = (float)(1 - beta1);
    rates.rest2 = (float)(1 - beta2);
    rates.scale1 = (float)(1 / (1 - pow(beta1, t)));
    rates.scale2 = (float)(1 / (1 - pow(beta2, t)));
    rates.eps = (float)eps;
    rates.decay = (float)decay;
    rates.rule = values->rule;
    return rates;
}

static inline void co_lamb_take(float *m, float *v, float g, const co_lamb_rates *r)
{
    const float d = co_grad_use(g, r->rule);

    *m = r->beta1 * *m + r->rest1 * d;
    *v = r->beta2 * *v + r->rest2 * (d * d);
}

static inline float co_lamb_step(float p, float m, float v, const co_lamb_rates *r)
{
    return m * r->scale1 / (sqrtf(v * r->scale2) + r->eps) + r->decay * p;
}

/* By the sums of squares of a tensor's weights and of its steps; `plain`: of one with ratio 1. */
static inline float co_lamb_rate(const co_step_values *values, bool plain, double weights,
                                 double steps)
{
    const double ratio = !plain && weights > 0 && steps > 0 ? sqrt(weights / steps) : 1;

    return (float)(values->given.lr * ratio);
}

#endif
