/* test_cost.c - collectives and expected maxima against their closed forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "plan/cost.h"
#include "plan/stragglers.h"

static const co_cost_link cost_link = {.latency = 10e-6, .bandwidth = 1e9, .overhead = 1e-6};

#define CLOSE(a, b) assert_true(fabs((a) - (b)) <= 1e-9 * fabs(b) + 1e-15)

static void send_takes_latency_and_bytes(void **state)
{
    (void)state;
    CLOSE(co_cost_send(&cost_link, 1e6), 10e-6 + 1e-3);
}

static void ring_of_four_sends_one_and_a_half_times_all_bytes(void **state)
{
    (void)state;
    CLOSE(co_cost_ring(&cost_link, 4e6, 4), 6 * 10e-6 + 6e-3);
}

static void recursive_doubling_of_eight_sends_all_bytes_three_times(void **state)
{
    (void)state;
    CLOSE(co_cost_recursive_doubling(&cost_link, 1e6, 8), 3 * (10e-6 + 1e-3));
    /* 6 = 4 + 2: to the neighbour, two rounds, and back */
    CLOSE(co_cost_recursive_doubling(&cost_link, 1e6, 6), 4 * (10e-6 + 1e-3));
}

static void halving_doubling_of_eight_has_the_bytes_of_a_ring(void **state)
{
    const double ring = co_cost_ring(&cost_link, 8e6, 8) - 14 * 10e-6;

    (void)state;
    CLOSE(co_cost_halving_doubling(&cost_link, 8e6, 8), 6 * 10e-6 + ring);
}

static void trees_of_1024_take_twenty_latencies(void **state)
{
    (void)state;
    CLOSE(co_cost_two_trees(&cost_link, 1e6, 1024), 20 * 10e-6 + 2e-3);
}

/* A sum over p hosts, all links alike. */
static co_cost_exchange cost_slices(double bytes, int p, double slices)
{
    co_cost_link link[CO_LEVELS_MAX];
    co_levels levels;

    co_levels_find(&levels, p, 0);
    for (int k = 0; k < levels.n; k++)
        link[k] = cost_link;
    return co_cost_slices(link, &levels, bytes, slices);
}

static void slices_pay_their_messages_or_their_bytes(void **state)
{
    const co_cost_exchange four = cost_slices(4e6, 4, 1), many = cost_slices(1.2e6, 997, 1);

    (void)state;
    CLOSE(four.busy, 6e-3);
    CLOSE(four.latency, 2 * 10e-6);
    CLOSE(four.bytes, 6e6);
    /* two pieces of 1 MiB to 996 others, twice: 4 ms, and the bytes take 2.4 */
    CLOSE(many.busy, 2 * 2 * 996 * 1e-6);
    CLOSE(many.latency, 2 * 10e-6);
}

/* Half a megabyte to one other, there and back, is 9 messages each way. Of two ranks, each has 5.
 */
static void long_slices_pay_for_several_messages(void **state)
{
    const co_cost_link fast = {.latency = 10e-6, .bandwidth = 1e12, .overhead = 1e-6};
    const co_levels two = {.n = 1, .factor = {2}};

    (void)state;
    CLOSE(co_cost_slices(&fast, &two, 1e6, 1).busy, 2 * 9e-6);
    CLOSE(co_cost_slices(&fast, &two, 1e6, 2).busy, 2 * 5e-6);
    CLOSE(co_cost_slices(&fast, &two, 120e3, 1).busy, 2 * 1e-6);
}

static void slices_on_levels_pay_each_level(void **state)
{
    const co_cost_exchange x = cost_slices(640e3, 64, 1); /* 8 * 8 */

    (void)state;
    CLOSE(x.bytes, 2 * 63.0 / 64 * 640e3);
    CLOSE(x.busy, x.bytes / 1e9);
    CLOSE(x.latency, 4 * 10e-6); /* on the second level 7 us of messages, 70 of bytes */
    /* 16 * 8 * 8, 64 KB: 14 and 14 us of messages take longer than their bytes */
    CLOSE(cost_slices(64e3, 1024, 1).busy, 2 * 1023.0 / 1024 * 64e-6);
    CLOSE(cost_slices(64e3, 1024, 1).latency,
          6 * 10e-6 + 2 * (15 / 16.0 * 64 + 7 + 7 - 1023.0 / 1024 * 64) * 1e-6);
}

static void small_slices_are_exchanged_once(void **state)
{
    (void)state;
    CLOSE(cost_slices(4096, 4, 1).busy, 3 * 4096 / 1e9);
    CLOSE(cost_slices(4096, 4, 1).latency, 10e-6);
    CLOSE(cost_slices(4097, 4, 1).bytes, 2 * 0.75 * 4097);
    CLOSE(cost_slices(8192, 4, 2).bytes, 3.0 * 8192);
    CLOSE(cost_slices(1024, 1024, 1).bytes, (15 + 7 + 7) * 1024.0);
    CLOSE(cost_slices(1024, 1024, 1).latency, 3 * 10e-6);
}

static void half_slices_send_half_and_two_hosts_at_once(void **state)
{
    const co_levels two = {1, {2}}, four = {1, {4}};
    const co_cost_exchange pair = co_cost_half_slices(&cost_link, &two, 4e6, 1),
                           more = co_cost_half_slices(&cost_link, &four, 4e6, 1);

    (void)state;
    CLOSE(pair.bytes, 2e6);
    CLOSE(pair.busy, 2e-3);
    CLOSE(pair.latency, 10e-6);
    CLOSE(more.bytes, 3e6);
    CLOSE(more.busy, 3e-3);
    CLOSE(more.latency, 2 * 10e-6);
    /* 8 KiB are received as 4 */
    CLOSE(co_cost_half_slices(&cost_link, &four, 8192, 1).bytes, 3.0 * 4096);
}

static void gathered_slices_go_once_over_each_level(void **state)
{
    const co_levels levels = {2, {8, 8}};
    const co_cost_link link[] = {cost_link, cost_link};
    const co_cost_exchange x = co_cost_gather_slices(link, &levels, 640e3);

    (void)state;
    CLOSE(x.bytes, 63.0 / 64 * 640e3);
    CLOSE(x.busy, x.bytes / 1e9);
    CLOSE(x.latency, 2 * 10e-6);
}

static void descriptors_go_once_over_each_level(void **state)
{
    const co_levels one = {1, {1}}, many = {3, {16, 8, 8}};
    const co_cost_link link[] = {cost_link, cost_link, cost_link};

    (void)state;
    CLOSE(co_cost_agree(link, &one), 0.0);
    CLOSE(co_cost_agree(link, &many), 3 * 10e-6 + (15 + 7 + 7) * 1e-6);
}

static void descriptors_of_a_host_go_to_its_first_rank_and_back(void **state)
{
    (void)state;
    CLOSE(co_cost_agree_inside(&cost_link, 1), 0.0);
    CLOSE(co_cost_agree_inside(&cost_link, 4), 2 * (10e-6 + 3e-6));
}

static void allgather_sends_to_all_others(void **state)
{
    (void)state;
    CLOSE(co_cost_allgather(&cost_link, 1e6, 5), 10e-6 + 4 * (1e-6 + 1e-3));
}

static void shared_sum_memory_of_two_moves_half_twice(void **state)
{
    (void)state;
    CLOSE(co_cost_shared(&cost_link, 1e6, 2), 20e-6 + 1e-3);
}

static void collective_of_one_rank_is_free(void **state)
{
    (void)state;
    assert_true(co_cost_ring(&cost_link, 1e6, 1) == 0);
    assert_true(co_cost_recursive_doubling(&cost_link, 1e6, 1) == 0);
    assert_true(co_cost_halving_doubling(&cost_link, 1e6, 1) == 0);
    assert_true(co_cost_two_trees(&cost_link, 1e6, 1) == 0);
    assert_true(cost_slices(1e6, 1, 1).busy == 0 && cost_slices(1e6, 1, 1).latency == 0);
    assert_true(co_cost_allgather(&cost_link, 1e6, 1) == 0);
    assert_true(co_cost_shared(&cost_link, 1e6, 1) == 0);
}

/* ---- stragglers ---- */

static void normal_maximum_is_the_known_one(void **state)
{
    (void)state;
    assert_true(co_normal_max(1) == 0);
    assert_true(fabs(co_normal_max(2) - 1 / sqrt(M_PI)) < 1e-6);
    assert_true(fabs(co_normal_max(3) - 1.5 / sqrt(M_PI)) < 1e-6);
    /* Harter, "Expected values of normal order statistics", Biometrika 48, 1961 */
    assert_true(fabs(co_normal_max(10) - 1.53875) < 1e-5);
    assert_true(fabs(co_normal_max(100) - 2.50759) < 1e-5);
}

static void sample_maximum_counts_places_of_draws(void **state)
{
    static const double x[] = {1, 2, 3, 4};

    (void)state;
    CLOSE(co_sample_max(x, 4, 1), 2.5);
    CLOSE(co_sample_max(x, 4, 2), (1 * 1 + 2 * 3 + 3 * 5 + 4 * 7) / 16.0);
}

static void sample_maximum_beyond_its_draws_grows_by_the_last_doubling(void **state)
{
    static const double x[] = {1, 2, 3, 4};
    const double two = co_sample_max(x, 4, 2), four = co_sample_max(x, 4, 4);

    (void)state;
    CLOSE(co_sample_max(x, 4, 16), four + 2 * (four - two));
}

static void noise_between_waits_averages_by_the_root(void **state)
{
    const co_stragglers s = {.variation = 0.1};

    (void)state;
    CLOSE(co_stragglers_factor(&s, 1, 1), 1.0);
    CLOSE(co_stragglers_factor(&s, 2, 1), 1 + 0.1 * co_normal_max(2));
    CLOSE(co_stragglers_factor(&s, 2, 16), 1 + 0.1 * co_normal_max(2) / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_takes_latency_and_bytes),
        cmocka_unit_test(ring_of_four_sends_one_and_a_half_times_all_bytes),
        cmocka_unit_test(recursive_doubling_of_eight_sends_all_bytes_three_times),
        cmocka_unit_test(halving_doubling_of_eight_has_the_bytes_of_a_ring),
        cmocka_unit_test(trees_of_1024_take_twenty_latencies),
        cmocka_unit_test(slices_pay_their_messages_or_their_bytes),
        cmocka_unit_test(long_slices_pay_for_several_messages),
        cmocka_unit_test(slices_on_levels_pay_each_level),
        cmocka_unit_test(small_slices_are_exchanged_once),
        cmocka_unit_test(half_slices_send_half_and_two_hosts_at_once),
        cmocka_unit_test(gathered_slices_go_once_over_each_level),
        cmocka_unit_test(descriptors_go_once_over_each_level),
        cmocka_unit_test(descriptors_of_a_host_go_to_its_first_rank_and_back),
        cmocka_unit_test(allgather_sends_to_all_others),
        cmocka_unit_test(shared_sum_memory_of_two_moves_half_twice),
        cmocka_unit_test(collective_of_one_rank_is_free),
        cmocka_unit_test(normal_maximum_is_the_known_one),
        cmocka_unit_test(sample_maximum_counts_places_of_draws),
        cmocka_unit_test(sample_maximum_beyond_its_draws_grows_by_the_last_doubling),
        cmocka_unit_test(noise_between_waits_averages_by_the_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
