/* test_limits.c - shared memory under a limit of the address space (`ulimit -v`), and of open files
   (`ulimit -n`). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/shm/internal.h"

#define LIMIT ((size_t)2 << 30)
#define MIB   ((size_t)1 << 20)

/* Whether the process can run with so little address space; under a sanitizer it cannot, and qemu
   sets no such limit. */
static bool limits_set(size_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    struct rlimit now;
    void *some;

    if (setrlimit(RLIMIT_AS, &limit) != 0 || getrlimit(RLIMIT_AS, &now) != 0 ||
        now.rlim_cur != limit.rlim_cur)
        return false;
    some = mmap(NULL, bytes / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (some == MAP_FAILED)
        return false;
    munmap(some, bytes / 2);
    return true;
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, co_error_message());    \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* If the window is too large for the address space, allocations come from the heap and windows are
   refused, with the remedy; later, smaller ones are unaffected. */
static bool limits_of_windows(co_shm *shm, co_comm *comm)
{
    const size_t much = shm->window_bytes, little = 8 * MIB;
    void *data, *window;

    EXPECT(co_comm_alloc(&data, comm, much + MIB) == CO_OK);
    EXPECT(!co_shm_window_has(shm, data, 1));
    co_comm_free(comm, data, much + MIB);
    EXPECT(co_comm_window_create(&window, comm, much + MIB) == CO_E_UNSUPPORTED);
    EXPECT(strstr(co_error_message(), "ulimit -v"));
    EXPECT(co_comm_alloc(&data, comm, little) == CO_OK);
    EXPECT(co_shm_window_has(shm, data, little));
    co_comm_free(comm, data, little);
    EXPECT(co_comm_window_create(&window, comm, little) == CO_OK);
    memset(window, 1, little);
    co_comm_window_destroy(comm, window, little);
    return true;
}

/* Windows leave most of the address space free. */
static bool limits_of_region(void)
{
    co_comm *comm;
    co_shm *shm;
    bool good;

    EXPECT(co_shm_create(&shm, 2) == CO_OK);
    EXPECT(shm->window_base && shm->window_bytes <= LIMIT / 4);
    co_shm_destroy(shm);
    EXPECT(co_shm_create(&shm, 1) == CO_OK);
    EXPECT(co_shm_attach(&comm, shm, 0) == CO_OK);
    good = limits_of_windows(shm, comm);
    co_comm_destroy(comm);
    co_shm_destroy(shm);
    return good;
}

/* Too many ranks for the address space: one error with the remedy. */
static bool limits_of_ranks(void)
{
    co_shm *shm;

    EXPECT(co_shm_create(&shm, 200) == CO_E_NOMEM);
    EXPECT(!shm && strstr(co_error_message(), "start fewer ranks, or raise the limit"));
    return true;
}

/* In a child process, as a limit cannot be raised again. */
static void shm_with_few_addresses_fails_cleanly(void **state)
{
    const pid_t child = fork();
    int how;

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(!limits_set(LIMIT) ? 77 : limits_of_region() && limits_of_ranks() ? 0 : 1);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    if (WEXITSTATUS(how) == 77) {
        print_message("skipped: addresses cannot be limited here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* Who reaches the region alone cannot read what others point to in windows. */
static void shm_join_without_windows_is_refused(void **state)
{
    struct rlimit many, few;
    co_shm_address address;
    co_shm *first, *second;
    int next;

    (void)state;
    assert_int_equal(co_shm_create_open(&first, &address, 2), CO_OK);
    assert_true(address.windows >= 0);
    assert_int_equal(co_shm_join(&second, &address, 2), CO_OK);
    assert_non_null(second->window_base);
    co_shm_destroy(second);
    next = dup(0);
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &many), 0);
    few = (struct rlimit){(rlim_t)next + 1, many.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(co_shm_join(&second, &address, 2), CO_E_UNSUPPORTED);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &many), 0);
    assert_null(second);
    assert_non_null(strstr(co_error_message(), "the windows of process"));
    co_shm_destroy(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shm_with_few_addresses_fails_cleanly),
                                       cmocka_unit_test(shm_join_without_windows_is_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
