/*
 * check.c - compares the descriptors that ranks exchange, to check that all called the same
 * operation. Does not know how they or data are moved.
 */
#include <stdio.h>

#include "comm/mpi/internal.h"

void co_mpi_describe_fields(uint64_t *out, const co_coll_descriptor *d)
{
    const uint64_t field[CO_MPI_FIELDS] = {d->sequence,      d->coll, d->dtype_op & 15,
                                           d->dtype_op >> 4, d->root, d->count};

    for (int i = 0; i < CO_MPI_FIELDS; i++) {
        out[i] = field[i];
        out[CO_MPI_FIELDS + i] = ~field[i];
    }
}

static const char *check_field_text(char *out, size_t size, int field, uint64_t value)
{
    switch (field) {
    case 1:
        return co_comm_coll_name((co_coll)value);
    case 2:
        return co_dtype_name((co_dtype)value);
    case 3:
        return co_comm_op_name((co_reduce_op)value);
    default:
        snprintf(out, size, "%llu", (unsigned long long)value);
        return out;
    }
}

static co_status check_fields(const mpi_comm *c, const mpi_request *r)
{
    static const char *const names[CO_MPI_FIELDS] = {"their number",  "the operation", "the type",
                                                     "the reduction", "the root",      "the count"};
    char here[CO_COMM_DESCRIBE_MAX], a[32], b[32];

    for (int i = 0; i < CO_MPI_FIELDS; i++) {
        const uint64_t most = r->most[i], least = ~r->most[CO_MPI_FIELDS + i];

        if (most != least)
            return co_fail(CO_E_MISMATCH, "ranks differ in %s, %s and %s; rank %d calls %s",
                           names[i], check_field_text(a, sizeof(a), i, least),
                           check_field_text(b, sizeof(b), i, most), c->base.rank,
                           co_comm_describe(here, sizeof(here), &r->descriptor));
    }
    return CO_OK;
}

static co_status check_header(const mpi_comm *c, const mpi_request *r)
{
    const co_coll_descriptor *sent = &r->header;
    char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];

    if (sent->count == r->descriptor.count && sent->dtype_op == r->descriptor.dtype_op)
        return CO_OK;
    return co_fail(CO_E_MISMATCH, "rank %d calls %s where rank %d calls %s", r->link.base.args.peer,
                   co_comm_describe(a, sizeof(a), sent), c->base.rank,
                   co_comm_describe(b, sizeof(b), &r->descriptor));
}

static co_status check_any(const mpi_comm *c, const mpi_request *r)
{
    switch (r->link.base.args.coll) {
    case CO_COLL_SEND:
        return CO_OK;
    case CO_COLL_RECV:
        return check_header(c, r);
    default:
        return check_fields(c, r);
    }
}

co_status co_mpi_compare(bool *arrived, mpi_comm *c, mpi_request *r)
{
    int there = 0;

    *arrived = r->checked;
    if (r->checked)
        return CO_OK;
    if (r->agree) {
        CO_TRY(co_mpi_agree_advance(arrived, c, r));
    } else {
        CO_TRY(co_mpi_check(co_mpi->test(&r->check, &there), "a descriptor"));
        *arrived = there;
    }
    if (*arrived)
        CO_TRY(check_any(c, r));
    r->checked = *arrived;
    return CO_OK;
}
