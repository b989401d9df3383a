/*
 * ext/sum.h - sums of many numbers, as metrics are: on the host and by kernels of devices.
 */
#ifndef COHORT_EXT_SUM_H
#define COHORT_EXT_SUM_H

#ifdef __cplusplus
extern "C" {
#endif

/** A sum with about twice the digits of a double, so that its value is the same in any order but
 *  for a last bit in rare cases (Knuth's TwoSum; its errors are summed in `low`). Its value is
 *  high + low. */
typedef struct co_sum {
    double high, low;
} co_sum;

static inline void co_sum_add(co_sum *sum, double x)
{
    const double high = sum->high + x, part = high - sum->high;

    sum->low += (sum->high - (high - part)) + (x - part);
    sum->high = high;
}

static inline void co_sum_join(co_sum *sum, const co_sum *part)
{
    co_sum_add(sum, part->high);
    sum->low += part->low;
}

static inline double co_sum_value(const co_sum *sum)
{
    return sum->high + sum->low;
}

#ifdef __cplusplus
}
#endif
#endif
