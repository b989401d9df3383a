/*
 * kernels_groups.h - which layers have to be compared together when two plans of a graph run some
 * of them by other kernels.
 */
#ifndef CO_MODEL_KERNELS_GROUPS_H
#define CO_MODEL_KERNELS_GROUPS_H

#include "graph/timing.h"

typedef struct co_kernel_groups {
    const co_graph *graph; /* borrowed */
    int *parent;           /* owned, (nodes): towards the node that stands for the group */
    bool *in_changed;      /* owned, (nodes): layouts of inputs and their gradients */
    bool *out_changed;     /* owned, (nodes): layouts of outputs, and steps that change them */
    bool *switched;        /* owned, (nodes): of the op that is tried, by another kernel */
    int n_switched;
    double *seconds[2]; /* owned, (nodes): of a group, in both plans */
    bool *gains;        /* owned, (nodes): of a group */
} co_kernel_groups;

co_status co_kernel_groups_open(co_kernel_groups *out, const co_graph *graph);
void co_kernel_groups_close(co_kernel_groups *groups);
/* Group the nodes for two plans that differ in the kernels of an op, NULL: of any: those that are
   done in one call in either plan, neighbours whose tensor has another layout, and switched layers
   with the same shapes. */
void co_kernel_groups_find(co_kernel_groups *groups, const co_plan *base, const co_plan *other,
                           const co_op *op);
/* By the medians of both plans: how many groups with switched nodes take less than 1 - `gain` of
   their time in the base. */
int co_kernel_groups_judge(co_kernel_groups *groups, const co_plan_timer *base,
                           const co_plan_timer *other, double gain);
/* Seconds that the groups with switched nodes take less than in the base, by the last judgement. */
double co_kernel_groups_saving(const co_kernel_groups *groups);
/* Whether a node was switched, and its group gains by the last judgement. */
bool co_kernel_groups_gains(const co_kernel_groups *groups, int node);

#endif
