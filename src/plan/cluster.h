/*
 * cluster.h - a described cluster: what a cluster file says.
 */
#ifndef CO_PLAN_CLUSTER_H
#define CO_PLAN_CLUSTER_H

#include "core/config.h"
#include "plan/cost.h"

/* How ranks of several nodes sum. */
typedef enum co_cluster_allreduce {
    CO_ALLREDUCE_SLICES, /* as Cohort does over MPI */
    CO_ALLREDUCE_RING,
    CO_ALLREDUCE_RECURSIVE_DOUBLING,
    CO_ALLREDUCE_HALVING_DOUBLING,
    CO_ALLREDUCE_TREE,
    CO_ALLREDUCE_BEST /* of these, for each size or for a whole step */
} co_cluster_allreduce;
extern const char *const co_cluster_allreduces[];

typedef enum co_cluster_shape {
    CO_TOPOLOGY_FLAT,
    CO_TOPOLOGY_FAT_TREE,
    CO_TOPOLOGY_DRAGONFLY
} co_cluster_shape;

/* A link as the file gives it. */
typedef struct co_cluster_link {
    const char *bandwidth_text, *latency_text, *overhead_text, *burst_text, *cpu_text;
    co_cost_link cost;
    double burst; /* bytes that go at once before the bandwidth holds (a token bucket) */
    double cpu;   /* seconds of a core for each byte that a rank sends and receives */
} co_cluster_link;

/* Times of a network on one rank, published elsewhere, in place of measured ones. */
typedef struct co_cluster_compute {
    double samples_per_second; /* a rank alone, with its update; 0: measured here */
    int64_t batch;             /* at which that was */
    double backward;           /* share of the step */
    double weights;            /* trained elements; 0: the config's network */
} co_cluster_compute;

typedef struct co_cluster {
    const char *name;
    int64_t nodes, ranks_per_node, gpus;
    double cores;     /* of a node; may be less than 1 where nodes are namespaces of one machine */
    double speed;     /* of a core or GPU, to those that were measured */
    double price;     /* of a node and hour; 0: unknown */
    double variation; /* of a step's time on a rank; < 0: as measured */
    double memory;    /* bytes of a node; 0: unknown */
    int allreduce;    /* co_cluster_allreduce */
    double bucket;    /* bytes of a bucket; 0: Cohort's */
    co_cluster_link inside, across;
    int shape;         /* co_cluster_shape */
    int64_t group;     /* nodes of a switch, or of a dragonfly's group */
    double taper, hop; /* of what leaves a group: fewer bytes a second by this; latency of a hop */
    co_cluster_compute compute;
    const char *memory_text, *currency, *bucket_text, *variation_text;
    const co_value *links, *topology, *compute_value;
} co_cluster;

/* Reads and checks the file; texts are the config's. CO_E_USAGE names file, line and key. */
co_status co_cluster_read(co_cluster *out, const co_config *config);

/* "10 Gbit/s", "1.2 GB/s", "25 us", "16 GiB" in bytes, seconds, bytes per second; false: not one.
 */
bool co_cluster_quantity(double *out, const char *text, const char *unit);

/* The link between nodes as `nodes` of them see it: hops add up, and where each node sends to all
   (`all`, not a ring that is laid along the switches) the part that leaves a group is slower by the
   taper. */
co_cost_link co_cluster_across(const co_cluster *cluster, double nodes, bool all);
/* The same for nodes of which each sends to n - 1 others, `stride` apart. */
co_cost_link co_cluster_group(const co_cluster *cluster, double nodes, double stride, double n);

#endif
