/*
 * cost.h - how long a collective takes, by closed forms over a link's latency and bandwidth.
 *
 * Hockney's model (R. Hockney, "The communication challenge for MPP", Parallel Computing 20, 1994):
 * a message of n bytes takes alpha + n / beta. On top, as LogP has it (Culler et al., PPoPP 1993),
 * each message costs its rank `overhead`, so that a rank that sends to p others at once pays p of
 * them but one latency. Seconds, bytes, bytes per second. p = 1 costs nothing.
 */
#ifndef CO_PLAN_COST_H
#define CO_PLAN_COST_H

#include "comm/mpi/levels.h"

typedef struct co_cost_link {
    double latency;   /* alpha: of one message, end to end */
    double bandwidth; /* beta: in each direction at once */
    double overhead;  /* of a rank, for each message that it sends or receives */
} co_cost_link;

/* One message. */
double co_cost_send(const co_cost_link *link, double bytes);

/* All-reduce of n bytes over p, each byte to be summed once, in Thakur, Rabenseifner and Gropp,
   "Optimization of Collective Communication Operations in MPICH", IJHPCA 19, 2005, without their
   gamma (the sum itself, which `bandwidth` contains where it was measured). */
/* 2 (p - 1) alpha + 2 (p - 1) / p n / beta */
double co_cost_ring(const co_cost_link *link, double bytes, double p);
/* log2 p (alpha + n / beta); a p that is no power of 2 takes the next lower one and two messages
   of all bytes more */
double co_cost_recursive_doubling(const co_cost_link *link, double bytes, double p);
/* Rabenseifner: 2 log2 p alpha + 2 (p - 1) / p n / beta; likewise */
double co_cost_halving_doubling(const co_cost_link *link, double bytes, double p);
/* Two binomial trees, up and down, each with half of the bytes (Sanders, Speck, Traeff, "Two-tree
   algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35, 2009):
   2 ceil(log2 p) alpha + 2 n / beta. NCCL's tree. */
double co_cost_two_trees(const co_cost_link *link, double bytes, double p);

/* What one collective takes. Of several in a row, each keeps the link for `busy` and is there
   `latency` later. */
typedef struct co_cost_exchange {
    double busy, latency;
    double bytes; /* that each node sends */
} co_cost_exchange;

/* What src/comm/mpi/pipeline.h does with a sum of n bytes over the hosts of `levels`, on each of
   which `slices` ranks have a slice; link: of each level. In pieces of 1 MiB: on a level with
   factor f, where s hosts share what has been summed below, every rank sends to f - 1 others, and
   later receives from them, 1 / (s f) of the bytes: 2 (alpha + (f - 1) max(overhead, n / (s f) /
   beta)), as a rank's next message is prepared while the last one is on the wire. Levels of one
   piece follow each other; those of several overlap. Messages have 60 KiB at most, and each costs
   its overhead. Where a rank receives at most 16 KiB on a
   level, all bytes go over each level, once. */
co_cost_exchange co_cost_slices(const co_cost_link *link, const co_levels *levels, double bytes,
                                double slices);
/* The same with terms sent in half precision (src/comm/mpi/half.c): pieces are as long in floats,
   and two hosts send all of one to each other. */
co_cost_exchange co_cost_half_slices(const co_cost_link *link, const co_levels *levels,
                                     double bytes, double slices);
/* Its second half alone, in one piece: n bytes, of which each host has as many, to all hosts. */
co_cost_exchange co_cost_gather_slices(const co_cost_link *link, const co_levels *levels,
                                       double bytes);
/* Before it, descriptors are compared (src/comm/mpi/agree.c): among hosts each sends its own to f -
   1 others on a level, alpha + (f - 1) max(overhead, 96 bytes / beta); among the p ranks of a host
   all to the first, and back: 2 (alpha + (p - 1) overhead). */
double co_cost_agree(const co_cost_link *link, const co_levels *levels);
double co_cost_agree_inside(const co_cost_link *link, double p);

/* Every rank's n bytes to all others: alpha + (p - 1) (overhead + n / beta). */
double co_cost_allgather(const co_cost_link *link, double bytes, double p);

/* Sum in place in memory that p ranks share (src/comm/shm): each rank reads its slice of all ranks
   and writes the sum to all: 2 alpha + 2 (p - 1) / p n / beta. */
double co_cost_shared(const co_cost_link *link, double bytes, double p);

/* ceil(log2 p) */
double co_cost_levels(double p);

#endif
