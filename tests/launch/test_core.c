/*
 * test_core.c - ranks that die with a core dump: noticed at once, and dumps leave out large
 * mappings.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cohort/launch.h>

#include "core/clock.h"
#include "core/mem.h"
#include "emulated.h"
#include "launch/crash_handler.h"
#include "shell.h"
#include "waits.h"

#define RANKS      3
#define LARGE      ((size_t)8 << 20) /* of a block or a window */
#define MAPPING    ((size_t)4 << 20) /* a mapping of this size or more counts as large */
#define CORE_LIMIT ((rlim_t)1 << 30) /* bounds the damage of a broken dump */
#define GROWTH     ((uint64_t)64 << 20)
#define DUMP_S     1.0 /* how long the dump is watched */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Shared memory in which ranks report to the test. */
typedef struct seen {
    co_watch watch[2];
    _Atomic int pid[RANKS];
    _Atomic uint64_t died_ns, noticed_ns, grown;
    _Atomic int signal, checked;
    char wrong[512]; /* the first large mapping that would be dumped */
} seen;

static seen *shared;

static int map_shared(void **state)
{
    (void)state;
    shared = co_map(sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    return shared ? 0 : -1;
}

static int clear_shared(void **state)
{
    (void)state;
    memset(shared, 0, sizeof(*shared));
    return 0;
}

static void forbid_core(void)
{
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
}

/* ---- recording the signal ---- */

/* Runs `deed` in a child with the handlers installed; returns the wait status. */
static int die_of(void (*deed)(int), int number)
{
    int how = 0;
    pid_t pid;

    memset(shared->watch, 0, sizeof(shared->watch));
    pid = fork();
    if (pid == 0) {
        forbid_core();
        signal(number, SIG_DFL); /* in place of a sanitizer's */
        assert_int_equal(co_crash_handler_install(shared->watch, 2), CO_OK);
        deed(number);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return how;
}

static void send_itself(int number)
{
    kill(getpid(), number);
    for (;;)
        pause();
}

static void call_abort(int number)
{
    (void)number;
    abort();
}

static int *volatile nothing;

static void read_nothing(int number)
{
    (void)number;
    printf("%d", *nothing);
}

static int overflow(volatile char *above, int depth)
{
    volatile char here[4096];

    here[0] = above[0];
    return depth == 0 ? 0 : overflow(here, depth - 1) + here[0];
}

static void overflow_stack(int number)
{
    const struct rlimit small = {(rlim_t)1 << 20, (rlim_t)1 << 20};
    volatile char top[1] = {(char)number};

    setrlimit(RLIMIT_STACK, &small);
    _exit(overflow(top, 1 << 20));
}

static void assert_noted(int how, int number)
{
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), number);
    assert_int_equal(co_watch_gone(&shared->watch[0]), number);
    assert_int_equal(co_watch_gone(&shared->watch[1]), number);
}

static void crash_fatal_signal_is_recorded_and_kills(void **state)
{
    static const int numbers[] = {SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_noted(die_of(send_itself, numbers[i]), numbers[i]);
    assert_noted(die_of(call_abort, SIGABRT), SIGABRT);
    if (SANITIZED)
        return;
    if (is_emulated()) {
        print_message(
            "skipped, addresses without memory: qemu 7.2 itself fails there after a fork\n");
        return;
    }
    assert_noted(die_of(read_nothing, SIGSEGV), SIGSEGV);
    assert_noted(die_of(overflow_stack, SIGSEGV), SIGSEGV);
}

/* A child of a rank is not the rank. */
static void die_in_a_child(int number)
{
    int how;
    const pid_t pid = fork();

    if (pid == 0)
        send_itself(number);
    waitpid(pid, &how, 0);
    _exit(WIFSIGNALED(how) && WTERMSIG(how) == number ? 0 : 1);
}

static void crash_signal_of_child_is_not_recorded(void **state)
{
    const int how = die_of(die_in_a_child, SIGABRT);

    (void)state;
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_int_equal(co_watch_gone(&shared->watch[0]), 0);
}

static void exit_quietly(int number)
{
    (void)number;
    _exit(9);
}

static void crash_handlers_of_others_are_kept(void **state)
{
    struct sigaction now;
    int how;
    const pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        forbid_core();
        signal(SIGABRT, exit_quietly);
        signal(SIGQUIT, SIG_IGN);
        assert_int_equal(co_crash_handler_install(shared->watch, 1), CO_OK);
        sigaction(SIGABRT, NULL, &now);
        if (now.sa_handler != exit_quietly)
            _exit(1);
        raise(SIGQUIT);
        raise(SIGABRT);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 9);
    assert_int_equal(co_watch_gone(&shared->watch[0]), 0);
}

/* ---- the dump ---- */

typedef struct mapping {
    char line[512], access[8];
    size_t size_kib, rss_kib;
} mapping;

/* Shared memory, or private writable memory of which much is touched. */
static bool is_large(const mapping *m)
{
    const bool writable = m->access[1] == 'w';

    if (m->access[3] == 's')
        return writable || m->size_kib >= MAPPING >> 10;
    return !SANITIZED && writable && m->rss_kib >= MAPPING >> 10;
}

/* Whether `line` is the last of a mapping: its flags. */
static bool read_line(mapping *m, const char *line)
{
    unsigned long begin, end;

    if (sscanf(line, "%lx-%lx %7s", &begin, &end, m->access) == 3) {
        snprintf(m->line, sizeof(m->line), "%.*s", (int)strcspn(line, "\n"), line);
        m->size_kib = (end - begin) >> 10;
        return false;
    }
    return sscanf(line, "Rss: %zu", &m->rss_kib) != 1 && strncmp(line, "VmFlags:", 8) == 0;
}

/* The number of large mappings of this process; the first that would be dumped to `wrong`. */
static int check_mappings(char *wrong, size_t size)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    mapping m = {.line = ""};
    char line[512];
    int large = 0;

    while (file && fgets(line, sizeof(line), file)) {
        if (!read_line(&m, line) || !is_large(&m))
            continue;
        large++;
        if (!strstr(line, " dd") && !*wrong)
            snprintf(wrong, size, "%.400s (%zu KiB)", m.line, m.rss_kib);
    }
    if (file)
        fclose(file);
    return large;
}

static co_status take_memory(co_comm *world, void *arg)
{
    seen *s = arg;
    void *window = NULL, *piece = NULL;
    char *block = co_calloc_aligned(LARGE, 1), *plain = co_calloc(LARGE, 1);
    char *grown = co_realloc(NULL, LARGE, 1), *again;

    if (!block || !plain || !grown)
        return CO_E_NOMEM;
    CO_TRY(co_comm_window_create(&window, world, LARGE));
    CO_TRY(co_comm_alloc(&piece, world, LARGE));
    memset(block, 1, LARGE);
    memset(plain, 1, LARGE);
    memset(grown, 1, LARGE);
    CO_TRY(co_comm_barrier(world));
    if (co_comm_rank(world) == 0)
        s->checked = check_mappings(s->wrong, sizeof(s->wrong));
    CO_TRY(co_comm_barrier(world));
    co_free(block);
    co_free(plain);
    co_free(grown);
    again = co_calloc(1024, 1); /* from the heap, dumped again */
    co_free(again);
    co_comm_free(world, piece, LARGE);
    co_comm_window_destroy(world, window, LARGE);
    return CO_OK;
}

static void core_dump_leaves_out_large_memory(void **state)
{
    const co_launch_options options = {.ranks = RANKS};

    (void)state;
    if (access("/proc/self/smaps", R_OK) != 0) {
        print_message("skipped: no /proc/self/smaps here\n");
        skip();
    }
    if (is_emulated()) {
        print_message("skipped: a core dump here is one of qemu\n");
        skip();
    }
    assert_int_equal(co_launch(&options, take_memory, shared), CO_OK);
    if (*shared->wrong)
        fail_msg("a core dump would have %s", shared->wrong);
    assert_true(shared->checked >= (SANITIZED ? 2 : 5));
}

/* Bytes of this process's memory files. */
static uint64_t shared_bytes(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t bytes = 0;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char name[64] = "";
        struct stat about;

        if (readlinkat(dirfd(dir), e->d_name, name, sizeof(name) - 1) > 0 &&
            strstr(name, "memfd:cohort") && fstat(atoi(e->d_name), &about) == 0)
            bytes += (uint64_t)about.st_blocks * 512;
    }
    if (dir)
        closedir(dir);
    return bytes;
}

static void allow_core(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_CORE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max < CORE_LIMIT ? limit.rlim_max : CORE_LIMIT;
    setrlimit(RLIMIT_CORE, &limit);
}

/* How much shared memory the dump of rank 1 adds. */
static uint64_t watch_dump(const seen *s, uint64_t before)
{
    const uint64_t start = co_clock_ns();

    while (kill(s->pid[1], 0) == 0 && co_clock_seconds(start, co_clock_ns()) < DUMP_S)
        co_clock_sleep_us(1000);
    return shared_bytes() > before ? shared_bytes() - before : 0;
}

static co_status meet_until_one_dies(co_comm *world, void *arg)
{
    seen *s = arg;
    const int rank = co_comm_rank(world);
    uint64_t before = 0;
    void *window = NULL;
    co_status st = CO_OK;

    s->pid[rank] = getpid();
    allow_core();
    CO_TRY(co_comm_window_create(&window, world, LARGE));
    for (int round = 0; st == CO_OK; round++) {
        float value = 1;

        if (round == 10)
            before = shared_bytes();
        if (round == 20 && rank == 1) {
            s->died_ns = co_clock_ns();
            raise(s->signal);
        }
        st = co_comm_allreduce(world, &value, &value, 1, CO_F32, CO_SUM);
    }
    if (rank == 0) {
        s->noticed_ns = co_clock_ns();
        s->grown = watch_dump(s, before);
    }
    return st;
}

static void core_dump_is_quick_and_small(void **state)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGQUIT};
    const co_launch_options options = {.ranks = RANKS, .timeout_ms = 2 * WAITS_MS};
    char folder[] = "/tmp/cohort-core-XXXXXX", want[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (SANITIZED && numbers[i] == SIGSEGV) /* sanitizers catch it */
            continue;
        clear_shared(state);
        shared->signal = numbers[i];
        signal(numbers[i], SIG_DFL); /* in place of cmocka's handlers */
        assert_int_equal(co_launch(&options, meet_until_one_dies, shared), CO_E_PEER);
        snprintf(want, sizeof(want), "killed by signal %d ", numbers[i]);
        assert_non_null(strstr(co_error_message(), "rank 1 (process "));
        assert_non_null(strstr(co_error_message(), want));
        assert_true(co_clock_seconds(shared->died_ns, shared->noticed_ns) < WAITS_S);
        if (!is_emulated()) /* qemu's own dump reads what the ranks leave out */
            assert_int_in_range(shared->grown, 0, GROWTH);
    }
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(shell_run("rm -rf %s", folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(crash_fatal_signal_is_recorded_and_kills, clear_shared),
        cmocka_unit_test_setup(crash_signal_of_child_is_not_recorded, clear_shared),
        cmocka_unit_test_setup(crash_handlers_of_others_are_kept, clear_shared),
        cmocka_unit_test_setup(core_dump_leaves_out_large_memory, clear_shared),
        cmocka_unit_test_setup(core_dump_is_quick_and_small, clear_shared),
    };

    return cmocka_run_group_tests(tests, map_shared, NULL);
}
