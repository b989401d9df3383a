/* cases_window.c - memory that all ranks read and write. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/cases.h"

#define WINDOW_WORDS  3000
#define WINDOW_ROUNDS 1000

/* Without shared memory a window is refused, without side effects. */
static bool window_is_refused(co_comm *comm)
{
    void *base = comm;

    CHECK(co_comm_window_create(&base, comm, 64) == CO_E_UNSUPPORTED);
    CHECK(!base);
    CHECK(strstr(co_error_message(), "mpi"));
    CHECK_OK(co_comm_barrier(comm));
    return true;
}

/* All ranks increment the first word, and each fills a part of the others. */
static bool window_fill(co_comm *comm, _Atomic uint32_t *word)
{
    const uint32_t rank = (uint32_t)co_comm_rank(comm), size = (uint32_t)co_comm_size(comm);

    for (size_t i = 0; i < WINDOW_WORDS; i++)
        CHECK(word[i] == 0);
    CHECK_OK(co_comm_barrier(comm));
    for (int i = 0; i < WINDOW_ROUNDS; i++)
        atomic_fetch_add(&word[0], 1);
    for (uint32_t i = 1 + rank; i < WINDOW_WORDS; i += size)
        word[i] = i * 3 + rank;
    CHECK_OK(co_comm_barrier(comm));
    CHECK(word[0] == WINDOW_ROUNDS * size);
    for (uint32_t i = 1; i < WINDOW_WORDS; i++)
        CHECK(word[i] == i * 3 + (i - 1) % size);
    return true;
}

static bool window_of_all_ranks_is_shared(co_comm *comm)
{
    const size_t bytes = WINDOW_WORDS * sizeof(uint32_t);
    void *first, *second;

    if (!comm_shares_memory(comm))
        return window_is_refused(comm);
    CHECK_OK(co_comm_window_create(&first, comm, bytes));
    CHECK(window_fill(comm, first));
    CHECK_OK(co_comm_window_create(&second, comm, bytes));
    CHECK(window_fill(comm, second));
    CHECK_OK(co_comm_barrier(comm));
    if (co_comm_rank(comm) == 0)
        memset(second, 255, bytes);
    CHECK_OK(co_comm_barrier(comm));
    CHECK(((uint32_t *)first)[1] == 3 && ((uint32_t *)second)[1] == UINT32_MAX);
    co_comm_window_destroy(comm, second, bytes);
    co_comm_window_destroy(comm, first, bytes);
    co_comm_window_destroy(comm, NULL, bytes);
    return true;
}

/* Bytes of files in memory that this process may read. */
static uint64_t window_readable(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    uint64_t begin, end, sum = 0;
    char line[512], may[5];

    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "memfd:cohort") &&
            sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, may) == 3 && may[0] == 'r')
            sum += end - begin;
    if (maps)
        fclose(maps);
    return sum;
}

/* Addresses are reserved for many times the machine's memory, and a page that is read takes some,
   as by valgrind, which looks for leaks in all that can be read. */
static bool window_not_made_is_not_readable(co_comm *comm)
{
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    void *base;

    if (!comm_shares_memory(comm) || co_comm_size(comm) == 1)
        return true;
    CHECK_OK(co_comm_window_create(&base, comm, WINDOW_WORDS));
    CHECK(window_readable() > 0 && window_readable() < memory);
    co_comm_window_destroy(comm, base, WINDOW_WORDS);
    return true;
}

/* Where not all ranks share memory, a split communicator has no local group. */
static bool comm_local_is_itself_or_none(co_comm *comm)
{
    CHECK(co_comm_local(comm) == (comm_shares_memory(comm) ? comm : NULL));
    return true;
}

/* Groups of ranks can have windows at the same time. */
static bool window_of_group_is_its_own(co_comm *comm)
{
    const size_t bytes = WINDOW_WORDS * sizeof(uint32_t);
    co_comm *part;
    void *base;

    if (!comm_shares_memory(comm))
        return true;
    CHECK_OK(co_comm_split(&part, comm, co_comm_rank(comm) % 2, 0));
    CHECK_OK(co_comm_window_create(&base, part, bytes));
    CHECK(window_fill(part, base));
    co_comm_window_destroy(part, base, bytes);
    co_comm_destroy(part);
    return true;
}

/* Too large a window is an error on every rank, not a signal later. */
static bool window_too_large_is_an_error(co_comm *comm)
{
    co_comm *part;
    co_status st;
    void *base;

    CHECK(co_comm_window_create(&base, comm, 0) == CO_E_USAGE);
    CHECK(co_comm_window_create(&base, comm, SIZE_MAX) == CO_E_USAGE);
    CHECK(co_comm_window_create(&base, NULL, 8) == CO_E_USAGE);
    if (strcmp(co_comm_transport(comm), "shm") != 0)
        return true;
    CHECK_OK(co_comm_split(&part, comm, 0, 0));
    st = co_comm_window_create(&base, part, (size_t)1 << 50);
    CHECK(st == CO_E_NOMEM || st == CO_E_PEER); /* the first to notice, and the others */
    CHECK(strstr(co_error_message(), "ranks to share"));
    CHECK(!base);
    co_comm_destroy(part);
    CHECK_OK(co_comm_barrier(comm));
    return true;
}

static bool window_of_other_size_is_a_mismatch(co_comm *comm)
{
    const bool last = co_comm_rank(comm) == co_comm_size(comm) - 1;
    co_comm *part;
    co_status st;
    void *base;

    if (!comm_shares_memory(comm) || co_comm_size(comm) == 1)
        return true;
    for (int more = 0; more < 2; more++) {
        CHECK_OK(co_comm_split(&part, comm, 0, 0));
        st = co_comm_window_create(&base, part, last == (more == 1) ? 40960 : 100);
        CHECK(st == CO_E_MISMATCH || st == CO_E_PEER);
        CHECK(strstr(co_error_message(), "ranks differ in its size"));
        CHECK(!base);
        co_comm_destroy(part);
        CHECK_OK(co_comm_barrier(comm));
    }
    return true;
}

const comm_case comm_cases_window[] = {
    {"window_of_all_ranks_is_shared", window_of_all_ranks_is_shared, 1},
    {"window_not_made_is_not_readable", window_not_made_is_not_readable, 1},
    {"comm_local_is_itself_or_none", comm_local_is_itself_or_none, 1},
    {"window_of_group_is_its_own", window_of_group_is_its_own, 1},
    {"window_too_large_is_an_error", window_too_large_is_an_error, 1},
    {"window_of_other_size_is_a_mismatch", window_of_other_size_is_a_mismatch, 1},
    {NULL, NULL, 0},
};
