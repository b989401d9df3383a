/* timing.h - plans on made-up data, and the time that each of their steps takes. */
#ifndef CO_GRAPH_TIMING_H
#define CO_GRAPH_TIMING_H

#include "graph/plan.h"

/* Normally distributed inputs, labels of all classes, targets of 0. Must not move: `run` has
   pointers into it. */
typedef struct co_plan_data {
    const co_graph *graph; /* borrowed */
    int64_t batch;
    void *input[CO_GRAPH_MAX_INPUT]; /* owned */
    size_t bytes[CO_GRAPH_MAX_INPUT];
    uint32_t *sample; /* owned, (batch) */
    co_step_values values;
    co_run run;
} co_plan_data;

co_status co_plan_data_open(co_plan_data *out, const co_graph *graph, int64_t batch,
                            int64_t classes);
void co_plan_data_close(co_plan_data *data);
/* Into the inputs of a plan of this graph and batch, whose `run` then has what is on its device. */
co_status co_plan_data_feed(co_plan_data *data, co_plan *plan);

#define CO_PLAN_TIMER_MOST 25 /* runs; later ones are not timed */

/* Times of the steps of a plan for training, over the runs of co_plan_timer_run. */
typedef struct co_plan_timer {
    co_plan *plan; /* borrowed */
    int n_step, runs;
    uint64_t begin_ns;
    double *seconds; /* owned, (CO_PLAN_TIMER_MOST, n_step) */
    double *median;  /* owned, (n_step), after co_plan_timer_finish */
    bool off;        /* the run is not to be timed */
    bool one_thread; /* then its processor time counts, which other programs do not lengthen */
    co_plan_observer observer;
} co_plan_timer;

/* `threads` of the plan. Must not move; the plan is destroyed later. */
co_status co_plan_timer_open(co_plan_timer *out, co_plan *plan, int threads);
void co_plan_timer_close(co_plan_timer *timer);
/* Forward and backward; not timed: to warm up. */
co_status co_plan_timer_run(co_plan_timer *timer, co_plan_data *data, bool timed);
/* Medians of the runs so far. */
void co_plan_timer_finish(co_plan_timer *timer);
/* seconds[node] (nodes of the graph): the medians of its steps, see co_plan_step_node. Returns
   those of all steps. */
double co_plan_timer_nodes(double *seconds, const co_plan_timer *timer);

/* The node of the graph that a step is for: of a change of layout, that of the tensor it reads. -1:
   none, for instance sums of gradients. */
int co_plan_step_node(const co_plan *plan, int step);

#endif
