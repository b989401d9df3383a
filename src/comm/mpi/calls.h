/*
 * calls.h - table of the MPI calls that Cohort makes, filled in by a module.
 *
 * MPI implementations differ in the representation of handles and constants. A module is compiled
 * against the header of one (module.c) and translates. Cohort itself does not include mpi.h, so one
 * binary works with all implementations that have a module, and without any.
 */
#ifndef CO_COMM_MPI_CALLS_H
#define CO_COMM_MPI_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Increment when this file changes: modules of other versions are not used. */
#define CO_MPI_CALLS_VERSION 3
/* The function that a module exports. */
#define CO_MPI_MODULE_SYMBOL "cohort_mpi_module"

/* MPI handles of any representation. */
typedef uintptr_t mpi_communicator;
typedef uintptr_t mpi_transfer; /* MPI_Request */
typedef uintptr_t mpi_type;
typedef uintptr_t mpi_operator; /* MPI_Op */

/* inout[i] = in[i] op inout[i]; `type` is ignored. */
typedef void mpi_combine(void *in, void *inout, int *n, void *type);

/* Calls return MPI's codes and behave like those of the same name in the standard: counts are int,
   arrays of counts and offsets must live until the transfer is complete, statuses are ignored.
   Exceptions are noted. */
typedef struct co_mpi_calls {
    unsigned version; /* CO_MPI_CALLS_VERSION */

    int success, any_source;
    void *in_place;
    mpi_communicator world, no_communicator;
    mpi_transfer no_transfer;
    mpi_type no_type, i32, u32, i64, u64, u16, u8, f32, f64;
    mpi_operator sum, prod, min, max;

    int (*initialized)(bool *yes);
    int (*finalized)(bool *yes);
    int (*init)(void);                    /* MPI_Init_thread, for threads that take turns */
    int (*threads_take_turns)(bool *yes); /* the level is MPI_THREAD_SERIALIZED or more */
    int (*finalize)(void);
    int (*abort)(mpi_communicator comm, int code);
    /* Texts are cut to `size` bytes and ended by NUL. */
    int (*library_version)(char *out, size_t size);
    int (*error_string)(int code, char *out, size_t size);

    /* New communicators have MPI_ERRORS_RETURN. */
    int (*comm_dup)(mpi_communicator comm, mpi_communicator *out);
    /* color < 0: the rank is in no part and gets no_communicator */
    int (*comm_split)(mpi_communicator comm, int color, int key, mpi_communicator *out);
    int (*comm_free)(mpi_communicator *comm);
    int (*comm_rank)(mpi_communicator comm, int *rank);
    int (*comm_size)(mpi_communicator comm, int *size);

    int (*test)(mpi_transfer *transfer, int *done);
    int (*request_free)(mpi_transfer *transfer);
    int (*isend)(const void *from, int n, mpi_type type, int to, int tag, mpi_communicator comm,
                 mpi_transfer *out);
    int (*irecv)(void *to, int n, mpi_type type, int from, int tag, mpi_communicator comm,
                 mpi_transfer *out);
    /* *from: any_source or a rank; set to the sender */
    int (*recv)(void *to, int n, mpi_type type, int *from, int tag, mpi_communicator comm);
    int (*iprobe)(int *from, int tag, mpi_communicator comm, int *there);

    int (*bcast)(void *data, int n, mpi_type type, int root, mpi_communicator comm);
    int (*allreduce)(const void *in, void *out, int n, mpi_type type, mpi_operator op,
                     mpi_communicator comm);
    int (*ibcast)(void *data, int n, mpi_type type, int root, mpi_communicator comm,
                  mpi_transfer *transfer);
    int (*ireduce)(const void *in, void *out, int n, mpi_type type, mpi_operator op, int root,
                   mpi_communicator comm, mpi_transfer *transfer);
    int (*iallgather)(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                      mpi_type out_type, mpi_communicator comm, mpi_transfer *transfer);
    int (*iallgatherv)(const void *in, int in_n, mpi_type in_type, void *out, const int *out_n,
                       const int *out_at, mpi_type out_type, mpi_communicator comm,
                       mpi_transfer *transfer);
    int (*ialltoallv)(const void *in, const int *in_n, const int *in_at, mpi_type in_type,
                      void *out, const int *out_n, const int *out_at, mpi_type out_type,
                      mpi_communicator comm, mpi_transfer *transfer);
    int (*igather)(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                   mpi_type out_type, int root, mpi_communicator comm, mpi_transfer *transfer);
    int (*iscatter)(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                    mpi_type out_type, int root, mpi_communicator comm, mpi_transfer *transfer);

    /* n elements of `type`, with the given extent in bytes; committed */
    int (*type_block)(int n, mpi_type type, ptrdiff_t extent, mpi_type *out);
    int (*type_free)(mpi_type *type);
    int (*op_create)(mpi_combine *combine, mpi_operator *out); /* commutative */
    int (*op_free)(mpi_operator *op);
} co_mpi_calls;

/* CO_MPI_MODULE_SYMBOL: fills in the caller's table; false: the module has another version. */
typedef bool co_mpi_module_fn(unsigned version, co_mpi_calls *out);

#endif
