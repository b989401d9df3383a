/*
 * platform.c - writes a platform of SimGrid for so many nodes of a cluster file.
 *
 *   simulate_platform CLUSTER NODES > platform.xml
 *
 * Where plan has a formula for what leaves a switch, this has the switches and cables, with routes
 * by SimGrid: D-mod-k in a fat tree, minimal in a dragonfly. A cable's latency is that of the
 * longest way, as plan has it, divided by the cables on it. Nodes that do not fill the last switch
 * leave places of the platform free.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/cluster.h"

#define PLATFORM_BLADE 4 /* nodes of a router in a dragonfly */

typedef struct platform {
    char topology[128]; /* attributes of <cluster> */
    int cables;         /* on the longest way */
    int64_t places;     /* nodes that fill all switches, of which the first are there */
} platform;

static int64_t platform_parts(int64_t nodes, int64_t group)
{
    return (nodes + group - 1) / group;
}

static void platform_fat_tree(platform *out, const co_cluster *c, int64_t nodes)
{
    const int64_t g = c->group, up = (int64_t)fmax(1, floor((double)g / c->taper + 0.5));
    const bool high = platform_parts(nodes, g) > g;
    const int64_t leaves = platform_parts(nodes, high ? g * g : g) * (high ? g : 1);

    if (high)
        snprintf(out->topology, sizeof(out->topology), "3;%lld,%lld,%lld;1,%lld,%lld;1,1,1",
                 (long long)g, (long long)g, (long long)(leaves / g), (long long)up, (long long)g);
    else
        snprintf(out->topology, sizeof(out->topology), "2;%lld,%lld;1,%lld;1,1", (long long)g,
                 (long long)leaves, (long long)up);
    out->cables = high ? 6 : 4;
    out->places = leaves * g;
}

/* SimGrid's groups each have one router that leads to each other group. */
static co_status platform_dragonfly(platform *out, const co_cluster *c, int64_t nodes)
{
    const int64_t groups = platform_parts(nodes, c->group), routers = c->group / PLATFORM_BLADE;
    const double cables = (double)c->group / c->taper / (double)(groups - 1);

    if (c->group % PLATFORM_BLADE != 0)
        return co_fail(CO_E_USAGE, "groups of %lld nodes are no whole routers of %d",
                       (long long)c->group, PLATFORM_BLADE);
    if (groups > routers)
        return co_fail(CO_E_USAGE,
                       "%lld nodes are %lld groups of %lld, with %lld routers each, of which one "
                       "leads to each other group; give %lld nodes at most",
                       (long long)nodes, (long long)groups, (long long)c->group, (long long)routers,
                       (long long)(routers * c->group));
    snprintf(out->topology, sizeof(out->topology), "%lld,%.0f;1,1;%lld,%d;%d", (long long)groups,
             fmax(1, cables), (long long)routers, PLATFORM_BLADE, PLATFORM_BLADE);
    out->cables = 5;
    out->places = groups * c->group;
    return CO_OK;
}

static co_status platform_lay_out(platform *out, const co_cluster *c, int64_t nodes)
{
    *out = (platform){.cables = 2, .places = nodes};
    if (c->shape == CO_TOPOLOGY_FLAT || nodes <= c->group)
        return CO_OK;
    if (c->shape == CO_TOPOLOGY_DRAGONFLY)
        return platform_dragonfly(out, c, nodes);
    platform_fat_tree(out, c, nodes);
    return CO_OK;
}

static co_status platform_write(const co_cluster *c, int64_t nodes)
{
    const co_cost_link across = co_cluster_across(c, (double)nodes, false);
    const co_cost_link *inside = &c->inside.cost;
    platform p;

    CO_TRY(platform_lay_out(&p, c, nodes));
    printf("<?xml version='1.0'?>\n"
           "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
           "<platform version=\"4.1\">\n"
           "  <cluster id=\"cluster\" prefix=\"n\" suffix=\"\" radical=\"0-%lld\" speed=\"1Gf\"\n"
           "           bw=\"%.9gBps\" lat=\"%.9gs\" sharing_policy=\"SPLITDUPLEX\"",
           (long long)p.places - 1, across.bandwidth, across.latency / p.cables);
    if (inside->bandwidth > 0)
        printf("\n           loopback_bw=\"%.9gBps\" loopback_lat=\"%.9gs\"", inside->bandwidth,
               inside->latency);
    if (*p.topology)
        printf("\n           topology=\"%s\" topo_parameters=\"%s\"",
               c->shape == CO_TOPOLOGY_DRAGONFLY ? "DRAGONFLY" : "FAT_TREE", p.topology);
    puts("/>\n</platform>");
    return CO_OK;
}

static co_status platform_run(const char *path, const char *text)
{
    const int64_t nodes = atoll(text);
    co_config *file = NULL;
    co_cluster cluster;
    co_status st;

    if (nodes < 2)
        return co_fail(CO_E_USAGE, "give 2 nodes or more, not '%s'", text);
    st = co_config_load(&file, path);
    if (st == CO_OK)
        st = co_cluster_read(&cluster, file);
    if (st == CO_OK)
        st = platform_write(&cluster, nodes);
    co_config_destroy(file);
    return st;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s CLUSTER NODES\n", argv[0]);
        return 2;
    }
    if (platform_run(argv[1], argv[2]) == CO_OK)
        return 0;
    fprintf(stderr, "simulate_platform: error: %s\n", co_error_message());
    return co_exit_code(co_error_status());
}
