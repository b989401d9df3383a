/*
 * moments.c - the step that adam and adamw share.
 */
#include "optim/moments.h"

#include "core/isa.h"

const co_key co_moments_keys[] = {
    {"betas", CO_KEY_REALS, offsetof(co_moments, betas), "[0.9, 0.999]", 0, 1, NULL,
     MOMENTS_BETAS_HELP},
    {"eps", CO_KEY_REAL, offsetof(co_moments, eps), "1e-8", MOMENTS_MIN_EPS, 1e6, NULL,
     MOMENTS_EPS_HELP},
    CO_KEYS_END,
};

const char *const co_moments_states[] = {"exp_avg", "exp_avg_sq", NULL};

co_status co_moments_check(const co_moments *m, const char *name)
{
    if (m->betas.n != 2 || m->betas.v[0] >= 1 || m->betas.v[1] >= 1)
        return co_fail(CO_E_USAGE,
                       "optimizer %s: betas are two numbers below 1, such as "
                       "[0.9, 0.999]",
                       name);
    return CO_OK;
}

int co_moments_count_states(const void *self)
{
    (void)self;
    return 2;
}

#ifdef __x86_64__
#define MOMENTS_AVX2   __attribute__((target("avx2")))
#define MOMENTS_AVX512 __attribute__((target("avx512f,prefer-vector-width=512")))
#else
#define MOMENTS_AVX2
#define MOMENTS_AVX512
#endif

#define MOMENTS_LINE  16   /* numbers that a cache fetches at once */
#define MOMENTS_AHEAD 1024 /* numbers that are fetched ahead: CPUs stop where a page ends */

/* Inlined below, so that each copy is compiled for its own instruction set. */
static inline __attribute__((always_inline)) void
moments_step(float *restrict p, const float *restrict g, float *restrict m, float *restrict v,
             size_t n, const co_moments_rates *rates)
{
    const co_moments_rates r = *rates;
    size_t i = 0;

    for (; i + MOMENTS_LINE <= n; i += MOMENTS_LINE) {
        __builtin_prefetch(p + i + MOMENTS_AHEAD, 1);
        __builtin_prefetch(g + i + MOMENTS_AHEAD, 0);
        __builtin_prefetch(m + i + MOMENTS_AHEAD, 1);
        __builtin_prefetch(v + i + MOMENTS_AHEAD, 1);
        for (size_t k = i; k < i + MOMENTS_LINE; k++)
            co_moments_move(p + k, m + k, v + k, g[k], &r);
    }
    for (; i < n; i++)
        co_moments_move(p + i, m + i, v + i, g[i], &r);
}

static void moments_move(float *p, const float *g, float *m, float *v, size_t n,
                         const co_moments_rates *rates)
{
    moments_step(p, g, m, v, n, rates);
}

/* Two divisions and a root bind this loop: twice as many at once, with the same bits. */
MOMENTS_AVX2 static void moments_move_avx2(float *p, const float *g, float *m, float *v, size_t n,
                                           const co_moments_rates *rates)
{
    moments_step(p, g, m, v, n, rates);
}

MOMENTS_AVX512 static void moments_move_avx512(float *p, const float *g, float *m, float *v,
                                               size_t n, const co_moments_rates *rates)
{
    moments_step(p, g, m, v, n, rates);
}

void co_moments_update(const co_moments *m, const co_update *u, bool beside)
{
    const co_moments_rates rates = co_moments_rates_of(m->betas.v[0], m->betas.v[1], m->eps,
                                                       u->values, u->missed, u->decay, beside);

    (co_isa_has(CO_ISA_AVX512) ? moments_move_avx512
     : co_isa_has(CO_ISA_AVX2)
         ? moments_move_avx2
         : moments_move)(u->param, u->grad, u->state[0], u->state[1], u->n, &rates);
}
