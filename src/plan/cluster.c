/* cluster.c - reads a cluster file: nodes, links, topology, price. Does not predict. */
#include "plan/cluster.h"
#include "core/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const co_cluster_allreduces[] = {
    "slices", "ring", "recursive-doubling", "halving-doubling", "tree", "best", NULL};
static const char *const cluster_shapes[] = {"flat", "fat-tree", "dragonfly", NULL};

#define CLUSTER_NODES 1048576

#define CLUSTER_TEXT(owner, field, key, otherwise, words)                                          \
    {                                                                                              \
        .name = key, .type = CO_KEY_STRING, .offset = offsetof(owner, field),                      \
        .fallback = otherwise, .help = words                                                       \
    }
#define CLUSTER_REAL(owner, field, key, otherwise, low, high, words)                               \
    {                                                                                              \
        .name = key, .type = CO_KEY_REAL, .offset = offsetof(owner, field), .fallback = otherwise, \
        .min = low, .max = high, .help = words                                                     \
    }
#define CLUSTER_INT(owner, field, key, otherwise, low, high, words)                                \
    {                                                                                              \
        .name = key, .type = CO_KEY_INT, .offset = offsetof(owner, field), .fallback = otherwise,  \
        .min = low, .max = high, .help = words                                                     \
    }
#define CLUSTER_MAP(owner, field, key, takes, words)                                               \
    {                                                                                              \
        .name = key, .type = CO_KEY_VALUE, .offset = offsetof(owner, field), .fallback = "~",      \
        .choices = CO_KEY_TAKES(takes), .help = words                                              \
    }

static const co_key cluster_keys[] = {
    CLUSTER_TEXT(co_cluster, name, "name", "cluster", "what the report calls it"),
    CLUSTER_INT(co_cluster, nodes, "nodes", NULL, 1, CLUSTER_NODES, "nodes that there are"),
    CLUSTER_REAL(co_cluster, cores, "cores", "0", 0, 65536, "cores of a node that ranks may use"),
    CLUSTER_INT(co_cluster, gpus, "gpus", "0", 0, 1024, "GPUs of a node"),
    CLUSTER_INT(co_cluster, ranks_per_node, "ranks_per_node", "0", 0, 65536,
                "ranks on a node; 0: one for each GPU, or as many as cores and threads allow"),
    CLUSTER_REAL(co_cluster, speed, "speed", "1", 1e-3, 1e6,
                 "of a core or GPU, to the one that was measured"),
    CLUSTER_REAL(co_cluster, price, "price", "0", 0, 1e9, "of a node for an hour"),
    CLUSTER_TEXT(co_cluster, currency, "currency", "$", "of the price"),
    CLUSTER_TEXT(co_cluster, memory_text, "memory", "~", "of a node: 64 GiB"),
    CLUSTER_TEXT(co_cluster, variation_text, "variation", "measured",
                 "standard deviation over mean of a rank's steps: 0.02; or measured"),
    {.name = "allreduce",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(co_cluster, allreduce),
     .fallback = "slices",
     .choices = co_cluster_allreduces,
     .help = "between nodes; slices: as Cohort does over MPI"},
    CLUSTER_TEXT(co_cluster, bucket_text, "bucket", "~", "bytes of a bucket; default: Cohort's"),
    CLUSTER_MAP(co_cluster, links, "links", "a map of inside and across",
                "links between ranks of a node, and between nodes"),
    CLUSTER_MAP(co_cluster, topology, "topology", "flat, or {name: fat-tree, group: 16, taper: 2}",
                "how nodes are joined"),
    CLUSTER_MAP(co_cluster, compute_value, "compute", "a map of samples_per_second and batch",
                "published speed of one rank, in place of what is measured"),
    CO_KEYS_END,
};

typedef struct cluster_links {
    const co_value *inside, *across;
} cluster_links;

static const co_key cluster_link_keys[] = {
    CLUSTER_MAP(cluster_links, inside, "inside", "a map of bandwidth and latency",
                "between ranks of a node"),
    CLUSTER_MAP(cluster_links, across, "across", "a map of bandwidth and latency", "between nodes"),
    CO_KEYS_END,
};

static const co_key cluster_one_link_keys[] = {
    CLUSTER_TEXT(co_cluster_link, bandwidth_text, "bandwidth", NULL,
                 "in each direction: 10 Gbit/s, 1.2 GB/s"),
    CLUSTER_TEXT(co_cluster_link, latency_text, "latency", NULL, "of a small message: 25 us"),
    CLUSTER_TEXT(co_cluster_link, overhead_text, "overhead", "~",
                 "of a rank for each message; default: a tenth of the latency"),
    CLUSTER_TEXT(co_cluster_link, burst_text, "burst", "0 B",
                 "bytes that a token bucket lets through at once: 256 KiB"),
    CLUSTER_TEXT(co_cluster_link, cpu_text, "cpu", "0 s/GB",
                 "time of a core for what a rank sends: 0.4 s/GB"),
    CO_KEYS_END,
};

typedef struct cluster_topology {
    int shape;
    int64_t group;
    double taper;
    const char *hop;
} cluster_topology;

static const co_key cluster_topology_keys[] = {
    {.name = "name",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(cluster_topology, shape),
     .fallback = "flat",
     .choices = cluster_shapes,
     .help = "flat: one switch"},
    CLUSTER_INT(cluster_topology, group, "group", "16", 1, CLUSTER_NODES,
                "nodes of a switch, or of a dragonfly's group"),
    CLUSTER_REAL(cluster_topology, taper, "taper", "1", 1, 1000,
                 "how many times fewer bytes a second leave a group"),
    CLUSTER_TEXT(cluster_topology, hop, "hop", "0 us", "latency of one more switch"),
    CO_KEYS_END,
};

static const co_key cluster_compute_keys[] = {
    CLUSTER_REAL(co_cluster_compute, samples_per_second, "samples_per_second", NULL, 1e-6, 1e12,
                 "of one rank alone"),
    CLUSTER_INT(co_cluster_compute, batch, "batch", NULL, 1, 1e9, "samples of its step"),
    CLUSTER_REAL(co_cluster_compute, backward, "backward", "0.6667", 0, 1,
                 "share of the backward pass"),
    CLUSTER_REAL(co_cluster_compute, weights, "weights", "0", 0, 1e13,
                 "of the network; 0: the config's"),
    CO_KEYS_END,
};

/* ---- numbers with a unit ---- */

typedef struct cluster_unit {
    const char *kind, *text;
    double factor;
} cluster_unit;

static const cluster_unit cluster_units[] = {
    {"s", "s", 1},
    {"s", "ms", 1e-3},
    {"s", "us", 1e-6},
    {"s", "ns", 1e-9},
    {"B", "B", 1},
    {"B", "kB", 1e3},
    {"B", "MB", 1e6},
    {"B", "GB", 1e9},
    {"B", "KiB", 1024},
    {"B", "MiB", 1048576},
    {"B", "GiB", 1073741824},
    {"B", "TiB", 1099511627776.0},
    {"B/s", "bit/s", 0.125},
    {"B/s", "kbit/s", 125},
    {"B/s", "Mbit/s", 125e3},
    {"B/s", "Gbit/s", 125e6},
    {"B/s", "B/s", 1},
    {"B/s", "kB/s", 1e3},
    {"B/s", "MB/s", 1e6},
    {"B/s", "GB/s", 1e9},
    {"s/B", "s/GB", 1e-9},
    {"s/B", "ms/MB", 1e-9},
};

/* 0, or a size with which formulas stay numbers. */
static bool cluster_is_sane(double value)
{
    return value == 0 || (value >= 1e-18 && value <= 1e18);
}

bool co_cluster_quantity(double *out, const char *text, const char *unit)
{
    char *end;
    const double value = co_number_parse(text, &end);

    if (end == text)
        return false;
    end += strspn(end, " ");
    for (size_t i = 0; i < sizeof(cluster_units) / sizeof(cluster_units[0]); i++)
        if (strcmp(cluster_units[i].kind, unit) == 0 && strcmp(cluster_units[i].text, end) == 0) {
            *out = value * cluster_units[i].factor;
            return cluster_is_sane(*out);
        }
    return false;
}

/* A quantity that is above `least`; `map` is where it was given, for the message. */
static co_status cluster_take(double *out, const co_value *map, const char *key, const char *text,
                              const char *unit, const char *example, double least)
{
    const co_value *value = co_value_get(map, key);
    const co_value absent = co_value_absent(map);

    if (text && co_cluster_quantity(out, text, unit) && *out > least)
        return CO_OK;
    return co_value_fail(value ? value : &absent, "%s: '%s' is not what it takes, such as %s", key,
                         text ? text : "", example);
}

/* ---- parts ---- */

static co_status cluster_read_link(co_cluster_link *out, const co_value *map, const char *what,
                                   const co_config *config)
{
    CO_TRY(co_keys_read(out, cluster_one_link_keys, map, what, co_config_arena(config)));
    CO_TRY(cluster_take(&out->cost.bandwidth, map, "bandwidth", out->bandwidth_text, "B/s",
                        "10 Gbit/s or 1.2 GB/s", 0));
    CO_TRY(cluster_take(&out->cost.latency, map, "latency", out->latency_text, "s", "25 us", -1));
    out->cost.overhead = out->cost.latency / 10;
    if (out->overhead_text)
        CO_TRY(cluster_take(&out->cost.overhead, map, "overhead", out->overhead_text, "s", "1 us",
                            -1));
    CO_TRY(cluster_take(&out->burst, map, "burst", out->burst_text, "B", "256 KiB", -1));
    return cluster_take(&out->cpu, map, "cpu", out->cpu_text, "s/B", "0.4 s/GB", -1);
}

static co_status cluster_read_links(co_cluster *c, const co_config *config, int64_t ranks)
{
    const co_value absent = co_value_absent(c->links ? c->links : co_config_root(config));
    cluster_links links;

    CO_TRY(co_keys_read(&links, cluster_link_keys, c->links, "links", co_config_arena(config)));
    if (c->nodes > 1 && !links.across)
        return co_value_fail(&absent, "links: nodes talk to each other; give "
                                      "`across: {bandwidth: 10 Gbit/s, latency: 25 us}`");
    if (ranks > 1 && !links.inside)
        return co_value_fail(&absent, "links: ranks of a node talk to each other; give "
                                      "`inside: {bandwidth: 8 GB/s, latency: 1 us}`");
    if (links.across)
        CO_TRY(cluster_read_link(&c->across, links.across, "links: across", config));
    if (links.inside)
        CO_TRY(cluster_read_link(&c->inside, links.inside, "links: inside", config));
    return CO_OK;
}

static co_status cluster_read_topology(co_cluster *c, const co_config *config)
{
    const co_value *map = c->topology;
    const char *name = NULL;
    cluster_topology t;

    if (map && map->kind == CO_VALUE_SCALAR) {
        CO_TRY(co_value_plugin(&name, &map, c->topology, "topology"));
        if (strcmp(name, "flat") != 0)
            return co_value_unknown(c->topology, "topology", name, cluster_shapes, 3);
    }
    CO_TRY(co_keys_read(&t, cluster_topology_keys, map, "topology", co_config_arena(config)));
    c->shape = t.shape;
    c->group = t.group;
    c->taper = t.taper;
    return cluster_take(&c->hop, map, "hop", t.hop, "s", "0.5 us", -1);
}

static co_status cluster_read_texts(co_cluster *c, const co_value *root)
{
    const co_value *variation = co_value_get(root, "variation");

    c->variation = -1;
    if (strcmp(c->variation_text, "measured") != 0) {
        char *end;

        c->variation = co_number_parse(c->variation_text, &end);
        if (*end || end == c->variation_text || !(c->variation >= 0 && c->variation <= 10))
            return co_value_fail(variation,
                                 "variation: '%s' is not a number from 0 to 10, nor "
                                 "`measured`",
                                 c->variation_text);
    }
    if (c->bucket_text)
        CO_TRY(cluster_take(&c->bucket, root, "bucket", c->bucket_text, "B", "25 MiB", 0));
    return c->memory_text
               ? cluster_take(&c->memory, root, "memory", c->memory_text, "B", "64 GiB", 0)
               : CO_OK;
}

co_status co_cluster_read(co_cluster *out, const co_config *config)
{
    const co_value *root = co_config_root(config);
    int64_t ranks;

    memset(out, 0, sizeof(*out));
    if (root->kind != CO_VALUE_MAP)
        return co_value_fail(root, "a cluster file is a map: nodes, cores, links; see "
                                   "`cohort plan --help`");
    CO_TRY(co_keys_read(out, cluster_keys, root, "cluster", co_config_arena(config)));
    if (out->cores == 0 && out->gpus == 0)
        return co_value_fail(root, "cluster: give the `cores` of a node, or its `gpus`");
    CO_TRY(cluster_read_texts(out, root));
    ranks = out->ranks_per_node ? out->ranks_per_node
            : out->gpus         ? out->gpus
            : out->cores < 1    ? 1
                                : (int64_t)out->cores;
    CO_TRY(cluster_read_links(out, config, ranks));
    CO_TRY(cluster_read_topology(out, config));
    return out->compute_value ? co_keys_read(&out->compute, cluster_compute_keys,
                                             out->compute_value, "compute", co_config_arena(config))
                              : CO_OK;
}

/* ---- as seen from a node ---- */

/* `leaves`: part of what a node sends that leaves its switch or group. */
static co_cost_link cluster_across(const co_cluster *c, double nodes, double leaves)
{
    const double group = (double)c->group;
    co_cost_link link = c->across.cost;
    double hops;

    if (c->shape == CO_TOPOLOGY_FLAT || nodes <= group)
        return link;
    /* up and down a tree with one more level for each factor of `group`; a dragonfly's way leads
       through a switch of its own group, a global link and one of the other's */
    hops = c->shape == CO_TOPOLOGY_DRAGONFLY
               ? 3
               : 2 * (c->group > 1 ? ceil(log(nodes) / log(group) - 1e-9) - 1 : 1);
    link.latency += hops * c->hop;
    if (leaves * c->taper > 1)
        link.bandwidth /= leaves * c->taper;
    return link;
}

co_cost_link co_cluster_across(const co_cluster *c, double nodes, bool all)
{
    return cluster_across(c, nodes, all ? (nodes - (double)c->group) / (nodes - 1) : 0);
}

co_cost_link co_cluster_group(const co_cluster *c, double nodes, double stride, double n)
{
    const double near = fmax(1, floor((double)c->group / stride)); /* of the n, with itself */

    return near >= n ? cluster_across(c, fmin(nodes, stride * n), 0)
                     : cluster_across(c, nodes, (n - near) / (n - 1));
}
