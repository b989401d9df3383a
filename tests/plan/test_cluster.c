/* test_cluster.c - cluster files: quantities, defaults, and errors that name their line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "plan/cluster.h"

static co_status cluster_from(co_cluster *out, co_config **config, const char *text)
{
    assert_int_equal(co_config_parse(config, text, strlen(text), "c.yaml"), CO_OK);
    return co_cluster_read(out, *config);
}

static void cluster_refuses(const char *text, const char *message)
{
    co_config *config;
    co_cluster cluster;

    assert_int_equal(cluster_from(&cluster, &config, text), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), message));
    co_config_destroy(config);
}

#define CLUSTER_LINK "links: {across: {bandwidth: 10 Gbit/s, latency: 25 us}}\n"

static void quantity_without_its_unit_is_refused(void **state)
{
    double value;

    (void)state;
    assert_true(co_cluster_quantity(&value, "10 Gbit/s", "B/s") && value == 1.25e9);
    assert_true(co_cluster_quantity(&value, "1.2GB/s", "B/s") && value == 1.2e9);
    assert_true(co_cluster_quantity(&value, "16 GiB", "B") && value == 16.0 * 1073741824);
    assert_true(co_cluster_quantity(&value, "25 us", "s") && fabs(value - 25e-6) < 1e-15);
    assert_false(co_cluster_quantity(&value, "25 us", "B"));
    assert_false(co_cluster_quantity(&value, "25", "s"));
    assert_false(co_cluster_quantity(&value, "-1 s", "s"));
    assert_false(co_cluster_quantity(&value, "nan s", "s"));
    assert_false(co_cluster_quantity(&value, "1e300 GB/s", "B/s"));
    assert_false(co_cluster_quantity(&value, "5e-324 B/s", "B/s"));
    assert_false(co_cluster_quantity(&value, "", "s"));
}

static void cluster_file_gives_links_and_defaults(void **state)
{
    co_config *config;
    co_cluster c;

    (void)state;
    assert_int_equal(cluster_from(&c, &config, "nodes: 64\ncores: 1\nprice: 2\n" CLUSTER_LINK),
                     CO_OK);
    assert_int_equal(c.nodes, 64);
    assert_true(c.across.cost.bandwidth == 1.25e9 && c.speed == 1 && c.variation < 0);
    assert_true(fabs(c.across.cost.overhead - 2.5e-6) < 1e-12);
    co_config_destroy(config);
}

static void cluster_error_names_line_and_remedy(void **state)
{
    (void)state;
    cluster_refuses("nodes: 4\ncors: 2\n", "c.yaml:2:");
    cluster_refuses("nodes: 4\ncors: 2\n", "cores");
    cluster_refuses("nodes: many\ncores: 1\n", "c.yaml:1:8");
    cluster_refuses("nodes: 4\n" CLUSTER_LINK, "cores");
    cluster_refuses("nodes: 4\ncores: 1\n", "across");
    cluster_refuses("nodes: 1\ncores: 2\n", "inside");
    cluster_refuses("nodes: 4\ncores: 1\nlinks: {across: {bandwidth: 10 Gb, latency: 1 us}}\n",
                    "c.yaml:3:");
    cluster_refuses("nodes: 4\ncores: 1\nlinks: {across: {bandwidth: 0 GB/s, latency: 1 us}}\n",
                    "c.yaml:3:");
    cluster_refuses("nodes: 4\ncores: 1\n" CLUSTER_LINK "topology: star\n", "c.yaml:4:11");
    cluster_refuses("nodes: 4\ncores: 1\nvariation: some\n" CLUSTER_LINK, "c.yaml:3:");
    cluster_refuses("nodes: 4\ncores: 1\n" CLUSTER_LINK "compute: {batch: 4}\n",
                    "samples_per_second");
}

static void cluster_of_four_switches(co_cluster *out, co_config **config)
{
    assert_int_equal(cluster_from(out, config,
                                  "nodes: 64\ncores: 1\n" CLUSTER_LINK
                                  "topology: {name: fat-tree, group: 16, taper: 4, hop: 1 us}\n"),
                     CO_OK);
}

static void taper_slows_only_what_leaves_a_switch(void **state)
{
    co_config *config;
    co_cluster c;

    (void)state;
    cluster_of_four_switches(&c, &config);
    assert_true(co_cluster_across(&c, 16, true).bandwidth == 1.25e9);
    /* 48 of 63 others are on another switch */
    assert_true(fabs(co_cluster_across(&c, 64, true).bandwidth - 1.25e9 / (4 * 48.0 / 63)) < 1);
    assert_true(co_cluster_across(&c, 64, false).bandwidth == 1.25e9);
    assert_true(fabs(co_cluster_across(&c, 64, true).latency - 27e-6) < 1e-12);
    co_config_destroy(config);
}

static void taper_spares_groups_within_a_switch(void **state)
{
    co_config *config;
    co_cluster c;

    (void)state;
    cluster_of_four_switches(&c, &config);
    assert_true(co_cluster_group(&c, 64, 1, 8).bandwidth == 1.25e9);
    assert_true(co_cluster_group(&c, 64, 1, 8).latency == c.across.cost.latency);
    /* 8 apart: 2 of 8 are on this switch, 6 of the 7 others on another */
    assert_true(fabs(co_cluster_group(&c, 64, 8, 8).bandwidth - 1.25e9 / (4 * 6.0 / 7)) < 1);
    assert_true(fabs(co_cluster_group(&c, 64, 8, 8).latency - 27e-6) < 1e-12);
    assert_true(co_cluster_group(&c, 64, 16, 4).bandwidth == 1.25e9 / 4);
    co_config_destroy(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantity_without_its_unit_is_refused),
        cmocka_unit_test(cluster_file_gives_links_and_defaults),
        cmocka_unit_test(cluster_error_names_line_and_remedy),
        cmocka_unit_test(taper_slows_only_what_leaves_a_switch),
        cmocka_unit_test(taper_spares_groups_within_a_switch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
