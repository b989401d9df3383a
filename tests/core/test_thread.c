/* test_thread.c - the cores of each rank, on synthetic machines of hwloc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/roof.h"
#include "core/thread.h"

#define MOST 64

static int thread_machine(co_core *core, const char *description, const cpu_set_t *set)
{
    int n;

    assert_int_equal(setenv("HWLOC_SYNTHETIC", description, 1), 0);
    n = co_thread_list_cores(core, MOST, set);
    unsetenv("HWLOC_SYNTHETIC");
    return n;
}

static cpu_set_t thread_all(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (size_t i = 0; i < MOST; i++)
        CPU_SET(i, &set);
    return set;
}

/* Numbers alternate between nodes, as on many machines: 0, 2, 4, 6 are on the first. */
static void thread_cores_are_sorted_by_numa_node(void **state)
{
    static const co_core want[] = {{0, 0}, {2, 0}, {4, 0}, {6, 0}, {1, 1}, {3, 1}, {5, 1}, {7, 1}};
    const cpu_set_t all = thread_all();
    co_core core[MOST];

    (void)state;
    assert_int_equal(thread_machine(core, "numa:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)", &all), 8);
    assert_memory_equal(core, want, sizeof(want));
}

static void thread_cores_outside_affinity_are_left_out(void **state)
{
    static const co_core want[] = {{1, 0}, {3, 0}, {4, 1}};
    co_core core[MOST];
    cpu_set_t some;

    (void)state;
    CPU_ZERO(&some);
    CPU_SET(4, &some);
    CPU_SET(3, &some);
    CPU_SET(1, &some);
    assert_int_equal(thread_machine(core, "numa:2 core:4 pu:1", &some), 3);
    assert_memory_equal(core, want, sizeof(want));
    assert_int_equal(thread_machine(core, "numa:2 core:4 pu:1", &(cpu_set_t){0}), 0);
}

static void thread_expect(const char *machine, int count, const int *ends)
{
    const cpu_set_t all = thread_all();
    co_core core[MOST];
    const int n = thread_machine(core, machine, &all);
    int at = 0, begin, end;

    for (int r = 0; r < count; r++) {
        co_thread_share(&begin, &end, core, n, r, count);
        assert_int_equal(begin, at);
        assert_int_equal(end, ends[r]);
        at = end;
    }
    assert_int_equal(at, n);
}

static void thread_shares_of_ranks_equal_worked_ones(void **state)
{
    (void)state;
    thread_expect("numa:1 core:2 pu:1", 2, (int[]){1, 2});
    thread_expect("numa:2 core:4 pu:1", 2, (int[]){4, 8});
    thread_expect("numa:2 core:4 pu:1", 8, (int[]){1, 2, 3, 4, 5, 6, 7, 8});
    /* Split within nodes: an even split would be 2, 5, 8, with the second rank on both nodes. */
    thread_expect("numa:2 core:4 pu:1", 3, (int[]){2, 4, 8});
    thread_expect("numa:2 core:6 pu:1", 5, (int[]){2, 4, 6, 9, 12});
    /* Within nodes two ranks would have two cores each instead of three. */
    thread_expect("numa:2 core:5 pu:1", 3, (int[]){3, 6, 10});
    /* Fewer ranks than nodes. */
    thread_expect("numa:4 core:2 pu:1", 3, (int[]){2, 5, 8});
    /* Both threads of a core belong to one rank. */
    thread_expect("numa:2 core:2 pu:2", 4, (int[]){2, 4, 6, 8});
}

/* On any machine every core belongs to one rank, and no rank has fewer than its minimum. */
static void thread_shares_of_any_machine_cover_it_once(void **state)
{
    static const char *const machines[] = {"numa:1 core:7 pu:1", "numa:2 core:4 pu:1",
                                           "numa:2 core:5 pu:2", "numa:3 core:5 pu:1",
                                           "numa:4 core:4 pu:2", "numa:8 core:3 pu:1"};
    const cpu_set_t all = thread_all();

    (void)state;
    for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++) {
        co_core core[MOST];
        const int n = thread_machine(core, machines[m], &all);

        for (int count = 1; count <= n; count++) {
            int at = 0;

            for (int r = 0; r < count; r++) {
                int begin, end;

                co_thread_share(&begin, &end, core, n, r, count);
                assert_int_equal(begin, at);
                assert_true(end - begin >= n / count);
                at = end;
            }
            assert_int_equal(at, n);
        }
    }
}

static void thread_shares_oversubscribed_take_turns(void **state)
{
    const cpu_set_t all = thread_all();
    co_core core[MOST];
    const int n = thread_machine(core, "numa:2 core:1 pu:1", &all);

    (void)state;
    for (int r = 0; r < 5; r++) {
        int begin, end;

        co_thread_share(&begin, &end, core, n, r, 5);
        assert_int_equal(begin, r % 2);
        assert_int_equal(end, begin + 1);
    }
}

static void roof_of_more_threads_than_cores_is_that_of_the_cores(void **state)
{
    const int cores = co_thread_cores();
    co_roof own, many, shared;

    (void)state;
    assert_int_equal(co_roof_measure(&own, cores, 1), CO_OK);
    assert_int_equal(co_roof_measure(&many, 8 * cores, 1), CO_OK);
    assert_int_equal(co_roof_measure(&shared, cores, 8), CO_OK);
    assert_true(own.flops_per_second > 0);
    assert_true(many.flops_per_second < 3 * own.flops_per_second);
    assert_true(8 * shared.flops_per_second < 3 * own.flops_per_second ||
                cores < (int)sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thread_cores_are_sorted_by_numa_node),
        cmocka_unit_test(thread_cores_outside_affinity_are_left_out),
        cmocka_unit_test(thread_shares_of_ranks_equal_worked_ones),
        cmocka_unit_test(thread_shares_of_any_machine_cover_it_once),
        cmocka_unit_test(thread_shares_oversubscribed_take_turns),
        cmocka_unit_test(roof_of_more_threads_than_cores_is_that_of_the_cores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
