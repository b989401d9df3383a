/* stragglers.c - expected maxima of many draws. */
#include "plan/stragglers.h"

#include <math.h>

#define NORMAL_FROM  (-9.0)
#define NORMAL_TO    9.0
#define NORMAL_STEPS 3600

/* E max = integral of (1 - F^n) above 0 less that of F^n below 0, by Simpson's rule. */
double co_normal_max(double n)
{
    const double h = (NORMAL_TO - NORMAL_FROM) / NORMAL_STEPS;
    double sum = 0;

    if (n <= 1)
        return 0;
    for (int i = 0; i <= NORMAL_STEPS; i++) {
        const double x = NORMAL_FROM + h * i, tail = 0.5 * erfc(x / sqrt(2));
        const double power = exp(n * log1p(-tail));
        const double f = i < NORMAL_STEPS / 2 ? -power : 1 - power;
        const double weight = i == 0 || i == NORMAL_STEPS ? 1 : i % 2 ? 4 : 2;

        /* at 0 both halves end: -F^n there and 1 - F^n count half each */
        sum += i == NORMAL_STEPS / 2 ? f - power : weight * f;
    }
    return sum * h / 3;
}

static double sample_max(const double *x, size_t count, double n)
{
    double sum = 0, before = 0;

    for (size_t i = 0; i < count; i++) {
        const double below = pow((double)(i + 1) / (double)count, n);

        sum += x[i] * (below - before);
        before = below;
    }
    return sum;
}

double co_sample_max(const double *x, size_t count, double n)
{
    const double most = (double)count;
    double at_most;

    if (n <= most || count < 2)
        return sample_max(x, count, n);
    at_most = sample_max(x, count, most);
    return at_most + (at_most - sample_max(x, count, most / 2)) * log2(n / most);
}

double co_stragglers_factor(const co_stragglers *s, double ranks, double period)
{
    const double most = s->count ? co_sample_max(s->draw, s->count, ranks) - 1
                                 : s->variation * co_normal_max(ranks);

    if (ranks <= 1)
        return 1;
    return 1 + (most > 0 ? most : 0) / sqrt(period < 1 ? 1 : period);
}
