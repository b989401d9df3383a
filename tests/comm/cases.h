/*
 * cases.h - test cases for every transport, as functions that each rank runs.
 *
 * Ranks may be threads, forked processes or processes of mpiexec, so a case reports failure by its
 * return value only; the runner then aborts the other ranks.
 */
#ifndef TESTS_COMM_CASES_H
#define TESTS_COMM_CASES_H

#include <cohort/comm.h>

typedef struct comm_case {
    const char *name;
    bool (*run)(co_comm *comm); /* true: passed */
    int min_ranks;
} comm_case;

/* Each terminated by an entry without a name. */
extern const comm_case comm_cases_data[], comm_cases_order[], comm_cases_failure[],
    comm_cases_window[], comm_cases_tree[], comm_cases_sum[], comm_cases_alloc[],
    comm_cases_slices[], comm_cases_wire[];

/* Prints place, check and last error message; returns false. */
bool comm_case_fault(const char *file, int line, const char *what);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return comm_case_fault(__FILE__, __LINE__, #condition);                                \
    } while (0)
#define CHECK_OK(call) CHECK((call) == CO_OK)

/* Whether the ranks know themselves to be on one machine. */
bool comm_shares_memory(const co_comm *comm);

/* ---- test data: small whole numbers, exact in every type ---- */

/* Element i of a rank's buffer: -4..3, or 0..7 in unsigned types. */
int64_t comm_value(co_dtype dtype, int rank, size_t i);
/* Elements begin .. begin + count of that rank's buffer; free with comm_free. */
void *comm_data(co_dtype dtype, int rank, size_t begin, size_t count);
/* A buffer filled with a value that no result has. */
void *comm_blank(co_dtype dtype, size_t count);
void comm_free(void *data);
/* Whether data[i] equals element begin + i of the rank's buffer. */
bool comm_is_data(const void *data, co_dtype dtype, int rank, size_t begin, size_t count);
/* Whether data[i] equals element begin + i of `ranks` buffers combined with `op`. */
bool comm_is_combined(const void *data, co_dtype dtype, co_reduce_op op, int ranks, size_t begin,
                      size_t count);
bool comm_is_blank(const void *data, co_dtype dtype, size_t count);

#endif
