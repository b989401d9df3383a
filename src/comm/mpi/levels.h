/*
 * levels.h - into which groups hosts are joined, one level after another, to sum over all of them.
 *
 * With p hosts and factors f1, f2, ..., whose product is p, level 1 has groups of f1 neighbours,
 * level 2 joins f2 of these groups, and so on. A host exchanges with f - 1 others on each level. So
 * it sends about log p messages where p has small factors, and p - 1 where p is a prime.
 */
#ifndef CO_COMM_MPI_LEVELS_H
#define CO_COMM_MPI_LEVELS_H

#define CO_LEVELS_MAX 31 /* of as many hosts as an int counts */

/* Messages that a rank sends in the time in which one arrives; so plan has it, too, where a cluster
   file does not say. */
#define CO_LEVELS_MESSAGES 10

typedef struct co_levels {
    int n;
    int factor[CO_LEVELS_MAX]; /* the largest first, so that most bytes stay among neighbours */
} co_levels;

/* The factors that take the least time, counted in messages: CO_LEVELS_MESSAGES + f - 1 on each
   level. `most` > 0: the fewest levels on which at most so many join, as far as p's prime factors
   allow that. One level at least; hosts >= 1. */
void co_levels_find(co_levels *out, int hosts, int most);

#endif
