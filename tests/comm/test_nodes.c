/*
 * test_nodes.c - slots, gradients and the own part of a window are on the NUMA node of the rank's
 * core.
 *
 * Two ranks, bound as the launcher binds them. On a machine with one node the test runs but is
 * reported as skipped, as it cannot fail there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/shm/internal.h"
#include "core/thread.h"

#define RANKS 2
#define BYTES ((size_t)8 << 20)
#define SKIP  77

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, co_error_message());    \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int nodes_here(void)
{
    unsigned core, node;

    return syscall(SYS_getcpu, &core, &node, NULL) == 0 ? (int)node : -1;
}

/* The node of a touched page; negative: an errno. */
static int nodes_of(const void *data)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *at = (char *)data - (uintptr_t)data % page;
    int node = -1;

    return syscall(SYS_move_pages, 0, 1ul, &at, NULL, &node, 0) == 0 ? node : -1;
}

static bool nodes_all(const unsigned char *data, size_t bytes, int node)
{
    for (size_t at = 0; at < bytes; at += (size_t)1 << 16)
        if (nodes_of(data + at) != node) {
            print_error("byte %zu lies on node %d, not %d\n", at, nodes_of(data + at), node);
            return false;
        }
    return true;
}

static int nodes_rank(co_shm *shm, int rank)
{
    const int other = 1 - rank;
    unsigned char *window;
    void *gradient;
    co_comm *comm;
    int cores, node;

    EXPECT(co_thread_bind_share(&cores, rank, RANKS) == CO_OK);
    node = nodes_here();
    EXPECT(co_shm_attach(&comm, shm, rank) == CO_OK);
    EXPECT(co_comm_barrier(comm) == CO_OK);
    EXPECT(co_comm_alloc(&gradient, comm, BYTES) == CO_OK);
    EXPECT(co_comm_window_create((void **)&window, comm, RANKS * BYTES) == CO_OK);
    EXPECT(co_comm_allreduce(comm, gradient, gradient, BYTES / sizeof(float), CO_F32, CO_SUM) ==
           CO_OK);
    memset(window + (size_t)other * BYTES, 1, BYTES); /* the page stays where it is */
    EXPECT(co_comm_barrier(comm) == CO_OK);
    if (node < 0 || nodes_of(gradient) < 0)
        return SKIP;
    EXPECT(nodes_all(gradient, BYTES, node));
    EXPECT(nodes_all(window + (size_t)rank * BYTES, BYTES, node));
    for (uint64_t step = 0; step < SHM_SLOTS; step++)
        EXPECT(nodes_of(co_shm_slot((shm_comm *)comm, rank, step)) == node);
    co_comm_window_destroy(comm, window, RANKS * BYTES);
    co_comm_free(comm, gradient, BYTES);
    co_comm_destroy(comm);
    return 0;
}

static void shm_memory_of_rank_is_on_its_numa_node(void **state)
{
    pid_t child[RANKS];
    bool skipped = false;
    co_shm *shm;

    (void)state;
    assert_int_equal(co_shm_create(&shm, RANKS), CO_OK);
    for (int r = 0; r < RANKS; r++) {
        child[r] = fork();
        assert_true(child[r] >= 0);
        if (child[r] == 0)
            _exit(nodes_rank(shm, r));
    }
    for (int r = 0; r < RANKS; r++) {
        int how;

        assert_int_equal(waitpid(child[r], &how, 0), child[r]);
        assert_true(WIFEXITED(how) && (WEXITSTATUS(how) == 0 || WEXITSTATUS(how) == SKIP));
        skipped = skipped || WEXITSTATUS(how) == SKIP;
    }
    co_shm_destroy(shm);
    if (skipped) {
        print_message("skipped: the kernel does not say on which node a page is\n");
        skip();
    }
    if (access("/sys/devices/system/node/node1", F_OK) != 0) {
        print_message("skipped: this machine has one memory node\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shm_memory_of_rank_is_on_its_numa_node)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
