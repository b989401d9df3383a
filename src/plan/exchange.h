/* exchange.h - what it takes to sum a bucket of the gradient over all ranks, for step.c. */
#ifndef CO_PLAN_EXCHANGE_H
#define CO_PLAN_EXCHANGE_H

#include "plan/step.h"

/* Ranks and nodes that take part, and what there is between them. */
typedef struct plan_layout {
    const co_cluster *cluster;
    const co_plan_work *work;
    const co_choice *choice;
    double ranks, nodes, each; /* each: ranks of a node */
} plan_layout;

/* Of one bucket. Buckets follow each other over the wire, and each arrives `latency` after it has
   left. */
typedef struct plan_exchange {
    double own;     /* seconds of the rank itself, in memory that ranks of a node share */
    double wire;    /* seconds in which nothing else goes over the node's link */
    double latency; /* seconds, more */
    double bytes;   /* that a node sends */
} plan_exchange;

/* Of `bytes` of the gradient, in the strategy's first or only round. */
plan_exchange plan_exchange_of(const plan_layout *l, double bytes);
/* The second round of PowerSGD, over all buckets; zeros for others. */
plan_exchange plan_exchange_late(const plan_layout *l);
/* A plain all-reduce of `bytes`, whatever the strategy. */
plan_exchange plan_exchange_whole(const plan_layout *l, double bytes);

#endif
