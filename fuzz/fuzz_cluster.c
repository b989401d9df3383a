/*
 * fuzz_cluster.c - the reader of cluster files over any bytes.
 *
 * What it accepts has nodes, links and prices that are numbers, and plans by it are, too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
CO_API const char *__lsan_default_suppressions(void);

/* As in fuzz_config.c. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

static void fuzz_link(const co_cluster_link *link)
{
    if (!(link->cost.bandwidth > 0) || !isfinite(link->cost.bandwidth) ||
        !(link->cost.latency >= 0) || !(link->cost.overhead >= 0) || !(link->burst >= 0) ||
        !(link->cpu >= 0))
        abort();
}

static void fuzz_predict(const co_cluster *cluster)
{
    const double batch = cluster->compute_value ? (double)cluster->compute.batch : 32;
    const double speed = cluster->compute_value ? cluster->compute.samples_per_second : 100;
    const double share = cluster->compute_value ? cluster->compute.backward : 0.6;
    co_plan_work work = {.n = 1 << 20, .threads = 1, .accumulate = 1, .readers = 1};
    const int64_t each = co_plan_ranks_per_node(cluster, 1);
    co_choice choice;
    co_prediction p;

    if (co_choice_read(&choice, NULL) != CO_OK)
        abort();
    if (co_work_assume(&work, speed, batch, share) == CO_OK &&
        co_plan_predict(&p, cluster, &work, &choice, cluster->nodes > 1 ? 2 * each : each, batch) &&
        (!(p.step > 0) || !isfinite(p.step)))
        abort();
    co_work_fini(&work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_config *config = NULL;
    co_cluster cluster;

    if (co_config_parse(&config, (const char *)data, size, "input") == CO_OK &&
        co_cluster_read(&cluster, config) == CO_OK) {
        if (cluster.nodes < 1 || cluster.group < 1 || !cluster.name || isnan(cluster.memory))
            abort();
        if (cluster.nodes > 1)
            fuzz_link(&cluster.across);
        if (co_plan_ranks_per_node(&cluster, 1) > 1)
            fuzz_link(&cluster.inside);
        fuzz_predict(&cluster);
    }
    co_config_destroy(config);
    return 0;
}
