/* cases_failure.c - wrong calls, calls that differ between ranks, late ranks, failed ranks: one
   clear error each. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "comm/cases.h"
#include "comm/watch.h"
#include "core/clock.h"
#include "core/mem.h"
#include "waits.h"

static bool failure_is_mpi(const co_comm *comm)
{
    return strcmp(co_comm_transport(comm), "mpi") == 0;
}

/* A failed communicator fails at once, with the same message again. */
static bool failure_is_dead(co_comm *comm, co_status status)
{
    char first[512];
    float x = 0;
    co_comm *part;

    snprintf(first, sizeof(first), "%s", co_error_message());
    CHECK(co_comm_barrier(comm) == status);
    CHECK(strcmp(first, co_error_message()) == 0);
    CHECK(co_comm_allreduce(comm, &x, &x, 1, CO_F32, CO_SUM) == status);
    CHECK(co_comm_progress(comm) == status);
    CHECK(co_comm_split(&part, comm, 0, 0) == status);
    CHECK(strcmp(first, co_error_message()) == 0);
    return true;
}

/* Invalid arguments are refused and leave the communicator usable. */
static bool collective_bad_arguments_are_refused(co_comm *comm)
{
    const int size = co_comm_size(comm);
    float x[8] = {0}, y[64];
    co_comm *part;

    CHECK(co_comm_bcast(comm, x, 1, CO_F32, size) == CO_E_USAGE);
    CHECK(strstr(co_error_message(), "bcast"));
    CHECK(co_comm_bcast(comm, x, 1, CO_F32, -1) == CO_E_USAGE);
    CHECK(co_comm_send(comm, x, 1, CO_F32, size) == CO_E_USAGE);
    CHECK(co_comm_allreduce(comm, y, x, 1, CO_DTYPE_COUNT, CO_SUM) == CO_E_USAGE);
    CHECK(co_comm_allreduce(comm, y, x, 1, CO_F32, CO_REDUCE_OP_COUNT) == CO_E_USAGE);
    CHECK(co_comm_allreduce(comm, NULL, x, 1, CO_F32, CO_SUM) == CO_E_USAGE);
    CHECK(co_comm_allreduce(comm, y, NULL, 1, CO_F32, CO_SUM) == CO_E_USAGE);
    CHECK(co_comm_allreduce(comm, x + 1, x, 4, CO_F32, CO_SUM) == CO_E_USAGE);
    CHECK(strstr(co_error_message(), "overlap"));
    CHECK(co_comm_allgather(comm, x, x, 1, CO_F32) == CO_E_USAGE);
    CHECK(co_comm_allreduce(comm, y, x, SIZE_MAX / 2, CO_F32, CO_SUM) == CO_E_USAGE);
    CHECK(co_comm_barrier(NULL) == CO_E_USAGE);
    CHECK(co_comm_split(&part, comm, -2, 0) == CO_E_USAGE);
    CHECK(co_comm_set_timeout(comm, 0) == CO_E_USAGE);
    CHECK(co_comm_timeout(comm) == 300000);
    co_request_destroy(NULL);
    co_comm_destroy(NULL);
    CHECK_OK(co_comm_allreduce(comm, NULL, NULL, 0, CO_F32, CO_SUM));
    CHECK_OK(co_comm_barrier(comm));
    return true;
}

/* Makes a call of the given kind, one way as the last rank and another as the others. */
static co_status failure_differ(co_comm *comm, int kind, bool last)
{
    int32_t in[64] = {0}, out[512];

    switch (kind) {
    case 0:
        return co_comm_allreduce(comm, out, in, last ? 5 : 6, CO_I32, CO_SUM);
    case 1:
        return co_comm_allreduce(comm, out, in, 5, last ? CO_F32 : CO_I32, CO_SUM);
    case 2:
        return co_comm_allreduce(comm, out, in, 5, CO_I32, last ? CO_MIN : CO_AVG);
    case 3:
        return co_comm_bcast(comm, in, 5, CO_I32, last ? 1 : 0);
    case 4:
        return last ? co_comm_barrier(comm) : co_comm_allgather(comm, out, in, 3, CO_I32);
    default: /* one has much more data than the other */
        return co_comm_bcast(comm, last ? in : out, last ? 1 : 512, CO_I32, 0);
    }
}

static bool collective_mismatch_fails_on_all_ranks(co_comm *comm)
{
    static const char *const says[] = {"5", "f32", "minimum", "1", "barrier", "512"};
    const bool last = co_comm_rank(comm) == co_comm_size(comm) - 1;

    for (int kind = 0; kind < 6; kind++) {
        co_comm *part;

        CHECK_OK(co_comm_split(&part, comm, 0, 0));
        CHECK(failure_differ(part, kind, last) == CO_E_MISMATCH);
        CHECK(strstr(co_error_message(), says[kind]));
        CHECK(failure_is_dead(part, CO_E_MISMATCH));
        co_comm_destroy(part);
        CHECK_OK(co_comm_barrier(comm)); /* the parent still works */
    }
    return true;
}

static bool message_mismatch_fails_on_both_ranks(co_comm *comm)
{
    const int rank = co_comm_rank(comm);
    int32_t in[4] = {0}, out[4];
    co_comm *part;

    for (int kind = 0; kind < 2; kind++) {
        CHECK_OK(co_comm_split(&part, comm, 0, 0));
        if (rank == 0)
            CHECK_OK(co_comm_send(part, in, 3, CO_I32, 1));
        if (rank == 1) {
            CHECK(co_comm_recv(part, out, kind ? 3 : 4, kind ? CO_F32 : CO_I32, 0) ==
                  CO_E_MISMATCH);
            CHECK(strstr(co_error_message(), "rank 0 calls send of 3 i32"));
            CHECK(failure_is_dead(part, CO_E_MISMATCH));
        }
        if (comm_shares_memory(comm) && rank != 1)
            CHECK(co_comm_recv(part, out, 1, CO_I32, 1) == CO_E_MISMATCH);
        CHECK_OK(co_comm_barrier(comm));
        if (comm_shares_memory(comm))
            co_comm_destroy(part); /* otherwise collective, and only rank 1's has failed */
    }
    return true;
}

/* The last rank stays away; the others, in that phase, name it. */
static bool failure_late(co_comm *comm, bool message, co_phase phase)
{
    const int rank = co_comm_rank(comm), last = co_comm_size(comm) - 1;
    const double most =
        phase == CO_PHASE_SAVING ? 1e-3 * WAITS_SHORT_MS * CO_WATCH_SAVING / 2 : WAITS_S;
    uint64_t start;
    float x = 0;
    char name[32];
    co_comm *part;

    CHECK_OK(co_comm_split(&part, comm, 0, 0));
    CHECK_OK(co_comm_barrier(part)); /* the others start together */
    CHECK_OK(co_comm_set_timeout(part, WAITS_SHORT_MS));
    start = co_clock_ns();
    snprintf(name, sizeof(name), "for rank %d", last);
    if (rank != last) {
        co_watch_phase(part, phase);
        const co_status st = message ? co_comm_recv(part, &x, 1, CO_F32, last)
                                     : co_comm_allreduce(part, &x, &x, 1, CO_F32, CO_SUM);
        const double seconds = co_clock_seconds(start, co_clock_ns());

        CHECK(st == CO_E_TIMEOUT);
        CHECK(strstr(co_error_message(), name));
        CHECK(strstr(co_error_message(), message ? "recv" : "allreduce"));
        CHECK(seconds > 0.9e-3 * WAITS_SHORT_MS && seconds < most);
        CHECK(failure_is_dead(part, CO_E_TIMEOUT));
        co_watch_phase(part, CO_PHASE_COMPUTING);
    }
    CHECK_OK(co_comm_barrier(comm));
    if (rank == last && comm_shares_memory(comm)) {
        CHECK(co_comm_barrier(part) == CO_E_TIMEOUT);
        CHECK(strstr(co_error_message(), name));
    }
    if (rank != last || comm_shares_memory(comm))
        co_comm_destroy(part);
    return true;
}

static bool collective_late_rank_is_named(co_comm *comm)
{
    return failure_late(comm, false, CO_PHASE_COMPUTING) &&
           failure_late(comm, true, CO_PHASE_COMPUTING);
}

/* Ranks that wait within a save do not give each other more time. */
static bool collective_late_rank_of_save_is_named(co_comm *comm)
{
    return failure_late(comm, false, CO_PHASE_SAVING);
}

/* A rank that saves has more time than others: the last one arrives after two limits. */
static bool collective_extended_limit_is_waited_for(co_comm *comm)
{
    const int rank = co_comm_rank(comm), last = co_comm_size(comm) - 1;
    co_comm *part;

    if (co_comm_size(comm) > 3)
        return true;
    CHECK_OK(co_comm_split(&part, comm, 0, 0));
    CHECK_OK(co_comm_set_timeout(part, WAITS_SHORT_MS));
    CHECK_OK(co_comm_barrier(part));
    if (rank == last) {
        co_watch_phase(part, CO_PHASE_SAVING);
        co_clock_sleep_us(WAITS_SHORT_MS * 2500u);
        co_watch_phase(part, CO_PHASE_COMPUTING);
    }
    CHECK_OK(co_comm_barrier(part));
    co_comm_destroy(part);
    return true;
}

/* Over MPI an abort ends the processes, which has its own test. */
static bool abort_ends_wait_of_others(co_comm *comm)
{
    const int rank = co_comm_rank(comm), last = co_comm_size(comm) - 1;
    float *data;
    char says[64];
    co_comm *part;

    if (failure_is_mpi(comm))
        return true;
    CHECK_OK(co_comm_split(&part, comm, 0, 0));
    if (rank == last) {
        for (int p = 0; p < last; p++) /* once all have reached this point */
            CHECK_OK(co_comm_recv(part, NULL, 0, CO_F32, p));
        co_clock_sleep_us(5000);
        co_comm_abort(comm, CO_E_DATA, "the disk is on fire");
        CHECK(co_comm_barrier(part) == CO_E_DATA);
        CHECK(strstr(co_error_message(), "the disk is on fire"));
        CHECK(failure_is_dead(comm, CO_E_DATA));
    } else {
        data = comm_data(CO_F32, rank, 0, 500000);
        snprintf(says, sizeof(says), "rank %d failed: the disk is on fire", last);
        CHECK_OK(co_comm_send(part, NULL, 0, CO_F32, last));
        CHECK(co_comm_allreduce(part, data, data, 500000, CO_F32, CO_SUM) == CO_E_PEER);
        CHECK(strcmp(co_error_message(), says) == 0);
        CHECK(failure_is_dead(comm, CO_E_PEER));
        comm_free(data);
    }
    co_comm_abort(comm, CO_E_IO, "too late to be the cause");
    CHECK(co_comm_barrier(comm) == (rank == last ? CO_E_DATA : CO_E_PEER));
    CHECK(strstr(co_error_message(), "the disk is on fire"));
    co_comm_destroy(part);
    return true;
}

/* When ranks fail at the same time, one cause is reported, complete. */
static bool abort_on_all_ranks_has_one_cause(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    char cause[300], whole[340];
    co_status st;
    bool one = false;

    if (failure_is_mpi(comm))
        return true;
    st = co_comm_barrier(comm); /* the first to leave may end it for the others */
    CHECK(st == CO_OK || st == CO_E_PEER);
    memset(cause, 'a' + rank, sizeof(cause));
    cause[sizeof(cause) - 1] = '\0';
    co_comm_abort(comm, CO_E_IO, cause);
    st = co_comm_barrier(comm);
    CHECK(st == CO_E_IO || st == CO_E_PEER);
    for (int p = 0; p < size; p++) {
        memset(cause, 'a' + p, sizeof(cause) - 1);
        snprintf(whole, sizeof(whole), "rank %d failed: %s", p, cause);
        one = one || strcmp(co_error_message(), p == rank ? cause : whole) == 0;
    }
    CHECK(one);
    return true;
}

/* Pending requests of a failed communicator can be destroyed. */
static bool requests_of_dead_comm_are_destroyed(co_comm *comm)
{
    const int rank = co_comm_rank(comm);
    static float data[4][1000]; /* static: still written to after this function returns */
    co_request *requests[4] = {NULL};
    co_comm *part;

    if (!comm_shares_memory(comm))
        return true;
    CHECK_OK(co_comm_split(&part, comm, 0, 0));
    if (rank == 0) {
        CHECK_OK(co_comm_set_timeout(part, 50));
        for (int i = 0; i < 3; i++)
            CHECK_OK(
                co_comm_iallreduce(&requests[i], part, data[i], data[i], 1000, CO_F32, CO_SUM));
        CHECK_OK(co_comm_irecv(&requests[3], part, data[3], 1000, CO_F32, 1));
        CHECK(co_request_wait(requests[1]) == CO_E_TIMEOUT);
        CHECK(co_request_wait(requests[3]) == CO_E_TIMEOUT);
        for (int i = 0; i < 4; i++)
            co_request_destroy(requests[i]);
    }
    CHECK_OK(co_comm_barrier(comm));
    co_comm_destroy(part);
    return true;
}

/* Each allocation of a split fails in turn; the split is all or nothing. With one rank, as several
   could fail at different allocations. */
static bool split_failed_allocation_is_an_error(co_comm *comm)
{
    co_status st = CO_E_NOMEM;

    if (co_comm_size(comm) > 1)
        return true;
    for (uint64_t k = 1; st != CO_OK && k < 100; k++) {
        co_comm *parent, *part;

        CHECK_OK(co_comm_split(&parent, comm, 0, 0));
        co_mem_fail_at(k);
        st = co_comm_split(&part, parent, 0, 0);
        co_mem_fail_at(0);
        CHECK((part != NULL) == (st == CO_OK));
        co_comm_destroy(part);
        co_comm_destroy(parent);
    }
    return st == CO_OK;
}

const comm_case comm_cases_failure[] = {
    {"split_failed_allocation_is_an_error", split_failed_allocation_is_an_error, 1},
    {"collective_bad_arguments_are_refused", collective_bad_arguments_are_refused, 1},
    {"collective_mismatch_fails_on_all_ranks", collective_mismatch_fails_on_all_ranks, 2},
    {"message_mismatch_fails_on_both_ranks", message_mismatch_fails_on_both_ranks, 2},
    {"collective_late_rank_is_named", collective_late_rank_is_named, 2},
    {"collective_late_rank_of_save_is_named", collective_late_rank_of_save_is_named, 3},
    {"collective_extended_limit_is_waited_for", collective_extended_limit_is_waited_for, 2},
    {"requests_of_dead_comm_are_destroyed", requests_of_dead_comm_are_destroyed, 2},
    {"abort_ends_wait_of_others", abort_ends_wait_of_others, 2},
    {"abort_on_all_ranks_has_one_cause", abort_on_all_ranks_has_one_cause, 2},
    {NULL, NULL, 0},
};
