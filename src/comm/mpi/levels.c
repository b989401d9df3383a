/* levels.c - splits a number of hosts into factors. */
#include "comm/mpi/levels.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct levels_search {
    int most;     /* hosts that join on a level; 0: any number */
    int64_t each; /* cost of a level, beside its messages */
    int64_t least;
    co_levels now, *best;
} levels_search;

static bool levels_is_prime(int n)
{
    for (int f = 2; f <= n / f; f++)
        if (n % f == 0)
            return false;
    return true;
}

static bool levels_may_join(const levels_search *s, int hosts)
{
    return s->most == 0 || hosts <= s->most || levels_is_prime(hosts);
}

static int64_t levels_add(levels_search *s, int factor)
{
    s->now.factor[s->now.n++] = factor;
    return s->each + factor - 1;
}

/* All ways to split `hosts` into factors of at most `limit`, the largest first; `cost` is that of
   those before. */
static void levels_split(levels_search *s, int hosts, int limit, int64_t cost)
{
    if (hosts <= limit && levels_may_join(s, hosts)) {
        const int64_t all = cost + levels_add(s, hosts);

        if (s->best->n == 0 || all < s->least) {
            s->least = all;
            *s->best = s->now;
        }
        s->now.n--;
    }
    for (int f = hosts / 2 < limit ? hosts / 2 : limit; f >= 2; f--) {
        if (hosts % f != 0 || !levels_may_join(s, f))
            continue;
        levels_split(s, hosts / f, f, cost + levels_add(s, f));
        s->now.n--;
    }
}

void co_levels_find(co_levels *out, int hosts, int most)
{
    levels_search s = {.most = most, .each = most ? INT32_MAX : CO_LEVELS_MESSAGES, .best = out};

    *out = (co_levels){0};
    levels_split(&s, hosts, hosts, 0);
}
