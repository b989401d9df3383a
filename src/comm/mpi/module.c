/*
 * module.c - the table of calls.h for the MPI against whose header this is compiled.
 *
 * Built once per installed MPI, as a module that Cohort opens at run time (load.c). Does not use
 * Cohort, and does not link MPI: its library has been opened before.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "comm/mpi/calls.h"

/* A handle is an int or a pointer. */
#define COMM(h)  ((MPI_Comm)(h))     /* NOLINT(performance-no-int-to-ptr) */
#define TYPE(h)  ((MPI_Datatype)(h)) /* NOLINT(performance-no-int-to-ptr) */
#define OP(h)    ((MPI_Op)(h))       /* NOLINT(performance-no-int-to-ptr) */
#define ASKED(h) ((MPI_Request)(h))  /* NOLINT(performance-no-int-to-ptr) */
#define ID(from) ((uintptr_t)(from))

/* ---- startup and exit ---- */

static int module_initialized(bool *yes)
{
    int flag = 0;
    const int code = MPI_Initialized(&flag);

    *yes = flag != 0;
    return code;
}

static int module_finalized(bool *yes)
{
    int flag = 0;
    const int code = MPI_Finalized(&flag);

    *yes = flag != 0;
    return code;
}

static int module_init(void)
{
    int provided;

    return MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
}

static int module_threads_take_turns(bool *yes)
{
    int level = MPI_THREAD_SINGLE;
    const int code = MPI_Query_thread(&level);

    *yes = level >= MPI_THREAD_SERIALIZED;
    return code;
}

static int module_abort(mpi_communicator comm, int code)
{
    return MPI_Abort(COMM(comm), code);
}

static int module_library_version(char *out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    const int code = MPI_Get_library_version(text, &n);

    snprintf(out, size, "%s", code == MPI_SUCCESS ? text : "");
    return code;
}

static int module_error_string(int error, char *out, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    const int code = MPI_Error_string(error, text, &n);

    snprintf(out, size, "%s", code == MPI_SUCCESS ? text : "");
    return code;
}

/* ---- communicators ---- */

/* Sets *out, and makes a new communicator return errors. */
static int module_new_comm(int code, MPI_Comm made, mpi_communicator *out)
{
    *out = ID(code == MPI_SUCCESS ? made : MPI_COMM_NULL);
    if (code == MPI_SUCCESS && made != MPI_COMM_NULL)
        return MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return code;
}

static int module_comm_dup(mpi_communicator comm, mpi_communicator *out)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_dup(COMM(comm), &made);

    return module_new_comm(code, made, out);
}

static int module_comm_split(mpi_communicator comm, int color, int key, mpi_communicator *out)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_split(COMM(comm), color < 0 ? MPI_UNDEFINED : color, key, &made);

    return module_new_comm(code, made, out);
}

static int module_comm_free(mpi_communicator *comm)
{
    MPI_Comm handle = COMM(*comm);
    const int code = MPI_Comm_free(&handle);

    *comm = ID(handle);
    return code;
}

static int module_comm_rank(mpi_communicator comm, int *rank)
{
    return MPI_Comm_rank(COMM(comm), rank);
}

static int module_comm_size(mpi_communicator comm, int *size)
{
    return MPI_Comm_size(COMM(comm), size);
}

/* ---- transfers ---- */

static int module_test(mpi_transfer *transfer, int *done)
{
    MPI_Request request = ASKED(*transfer);
    const int code = MPI_Test(&request, done, MPI_STATUS_IGNORE);

    *transfer = ID(request);
    return code;
}

static int module_request_free(mpi_transfer *transfer)
{
    MPI_Request request = ASKED(*transfer);
    const int code = MPI_Request_free(&request);

    *transfer = ID(request);
    return code;
}

static int module_isend(const void *from, int n, mpi_type type, int to, int tag,
                        mpi_communicator comm, mpi_transfer *out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(from, n, TYPE(type), to, tag, COMM(comm), &request);

    *out = ID(request);
    return code;
}

static int module_irecv(void *to, int n, mpi_type type, int from, int tag, mpi_communicator comm,
                        mpi_transfer *out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Irecv(to, n, TYPE(type), from, tag, COMM(comm), &request);

    *out = ID(request);
    return code;
}

static int module_recv(void *to, int n, mpi_type type, int *from, int tag, mpi_communicator comm)
{
    MPI_Status status;
    const int code = MPI_Recv(to, n, TYPE(type), *from, tag, COMM(comm), &status);

    if (code == MPI_SUCCESS)
        *from = status.MPI_SOURCE;
    return code;
}

static int module_iprobe(int *from, int tag, mpi_communicator comm, int *there)
{
    MPI_Status status;
    const int code = MPI_Iprobe(*from, tag, COMM(comm), there, &status);

    if (code == MPI_SUCCESS && *there)
        *from = status.MPI_SOURCE;
    return code;
}

/* ---- collectives ---- */

static int module_bcast(void *data, int n, mpi_type type, int root, mpi_communicator comm)
{
    return MPI_Bcast(data, n, TYPE(type), root, COMM(comm));
}

static int module_allreduce(const void *in, void *out, int n, mpi_type type, mpi_operator op,
                            mpi_communicator comm)
{
    return MPI_Allreduce(in, out, n, TYPE(type), OP(op), COMM(comm));
}

static int module_ibcast(void *data, int n, mpi_type type, int root, mpi_communicator comm,
                         mpi_transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Ibcast(data, n, TYPE(type), root, COMM(comm), &request);

    *transfer = ID(request);
    return code;
}

static int module_ireduce(const void *in, void *out, int n, mpi_type type, mpi_operator op,
                          int root, mpi_communicator comm, mpi_transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Ireduce(in, out, n, TYPE(type), OP(op), root, COMM(comm), &request);

    *transfer = ID(request);
    return code;
}

static int module_iallgather(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                             mpi_type out_type, mpi_communicator comm, mpi_transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        MPI_Iallgather(in, in_n, TYPE(in_type), out, out_n, TYPE(out_type), COMM(comm), &request);

    *transfer = ID(request);
    return code;
}

static int module_iallgatherv(const void *in, int in_n, mpi_type in_type, void *out,
                              const int *out_n, const int *out_at, mpi_type out_type,
                              mpi_communicator comm, mpi_transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Iallgatherv(in, in_n, TYPE(in_type), out, out_n, out_at, TYPE(out_type),
                                     COMM(comm), &request);

    *transfer = ID(request);
    return code;
}

static int module_ialltoallv(const void *in, const int *in_n, const int *in_at, mpi_type in_type,
                             void *out, const int *out_n, const int *out_at, mpi_type out_type,
                             mpi_communicator comm, mpi_transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Ialltoallv(in, in_n, in_at, TYPE(in_type), out, out_n, out_at,
                                    TYPE(out_type), COMM(comm), &request);

    *transfer = ID(request);
    return code;
}

static int module_igather(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                          mpi_type out_type, int root, mpi_communicator comm,
                          mpi_transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Igather(in, in_n, TYPE(in_type), out, out_n, TYPE(out_type), root,
                                 COMM(comm), &request);

    *transfer = ID(request);
    return code;
}

static int module_iscatter(const void *in, int in_n, mpi_type in_type, void *out, int out_n,
                           mpi_type out_type, int root, mpi_communicator comm,
                           mpi_transfer *transfer)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Iscatter(in, in_n, TYPE(in_type), out, out_n, TYPE(out_type), root,
                                  COMM(comm), &request);

    *transfer = ID(request);
    return code;
}

/* ---- types and operators ---- */

static int module_type_block(int n, mpi_type type, ptrdiff_t extent, mpi_type *out)
{
    MPI_Datatype piece, block = MPI_DATATYPE_NULL;
    int code = MPI_Type_contiguous(n, TYPE(type), &piece);

    if (code == MPI_SUCCESS)
        code = MPI_Type_create_resized(piece, 0, extent, &block);
    if (code == MPI_SUCCESS)
        code = MPI_Type_free(&piece);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(&block);
    *out = ID(block);
    return code;
}

static int module_type_free(mpi_type *type)
{
    MPI_Datatype handle = TYPE(*type);
    const int code = MPI_Type_free(&handle);

    *type = ID(handle);
    return code;
}

static int module_op_create(mpi_combine *combine, mpi_operator *out)
{
    MPI_Op made = MPI_OP_NULL;
    /* The types differ only in the last argument, a pointer in both. */
    const int code = MPI_Op_create((MPI_User_function *)(void (*)(void))combine, 1, &made);

    *out = ID(made);
    return code;
}

static int module_op_free(mpi_operator *op)
{
    MPI_Op handle = OP(*op);
    const int code = MPI_Op_free(&handle);

    *op = ID(handle);
    return code;
}

/* ---- the table ---- */

static void module_constants(co_mpi_calls *out)
{
    out->success = MPI_SUCCESS;
    out->any_source = MPI_ANY_SOURCE;
    out->in_place = MPI_IN_PLACE;
    out->world = ID(MPI_COMM_WORLD);
    out->no_communicator = ID(MPI_COMM_NULL);
    out->no_transfer = ID(MPI_REQUEST_NULL);
    out->no_type = ID(MPI_DATATYPE_NULL);
    out->i32 = ID(MPI_INT32_T);
    out->u32 = ID(MPI_UINT32_T);
    out->i64 = ID(MPI_INT64_T);
    out->u64 = ID(MPI_UINT64_T);
    out->u16 = ID(MPI_UINT16_T);
    out->u8 = ID(MPI_UINT8_T);
    out->f32 = ID(MPI_FLOAT);
    out->f64 = ID(MPI_DOUBLE);
    out->sum = ID(MPI_SUM);
    out->prod = ID(MPI_PROD);
    out->min = ID(MPI_MIN);
    out->max = ID(MPI_MAX);
}

__attribute__((visibility("default"))) bool cohort_mpi_module(unsigned version, co_mpi_calls *out);

bool cohort_mpi_module(unsigned version, co_mpi_calls *out)
{
    if (version != CO_MPI_CALLS_VERSION)
        return false;
    *out = (co_mpi_calls){
        .version = version,
        .initialized = module_initialized,
        .finalized = module_finalized,
        .init = module_init,
        .threads_take_turns = module_threads_take_turns,
        .finalize = MPI_Finalize,
        .abort = module_abort,
        .library_version = module_library_version,
        .error_string = module_error_string,
        .comm_dup = module_comm_dup,
        .comm_split = module_comm_split,
        .comm_free = module_comm_free,
        .comm_rank = module_comm_rank,
        .comm_size = module_comm_size,
        .test = module_test,
        .request_free = module_request_free,
        .isend = module_isend,
        .irecv = module_irecv,
        .recv = module_recv,
        .iprobe = module_iprobe,
        .bcast = module_bcast,
        .allreduce = module_allreduce,
        .ibcast = module_ibcast,
        .ireduce = module_ireduce,
        .iallgather = module_iallgather,
        .iallgatherv = module_iallgatherv,
        .ialltoallv = module_ialltoallv,
        .igather = module_igather,
        .iscatter = module_iscatter,
        .type_block = module_type_block,
        .type_free = module_type_free,
        .op_create = module_op_create,
        .op_free = module_op_free,
    };
    module_constants(out);
    return true;
}
