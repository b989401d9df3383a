/* describe.c - operations and failures in words, and the groups of a split. */
#include <stdio.h>
#include <string.h>

#include "comm/comm_internal.h"

static const char *const describe_coll_names[CO_COLL_COUNT] = {
    "barrier",   "bcast",          "reduce",        "allreduce",     "reduce_scatter",
    "allgather", "gather",         "scatter",       "split",         "send",
    "recv",      "tree_allreduce", "reduce_slices", "gather_slices", "tree_reduce_slices",
};

static const char *const describe_op_names[CO_REDUCE_OP_COUNT] = {"sum", "product", "minimum",
                                                                  "maximum", "average"};

const char *co_comm_coll_name(co_coll coll)
{
    return (unsigned)coll < CO_COLL_COUNT ? describe_coll_names[coll] : "unknown operation";
}

const char *co_comm_op_name(co_reduce_op op)
{
    return (unsigned)op < CO_REDUCE_OP_COUNT ? describe_op_names[op] : "unknown reduction";
}

char *co_comm_describe(char *out, size_t size, const co_coll_descriptor *d)
{
    size_t used;

    if (d->coll == CO_COLL_BARRIER || d->coll == CO_COLL_SPLIT) {
        snprintf(out, size, "%s", co_comm_coll_name(d->coll));
        return out;
    }
    snprintf(out, size, "%s of %llu %s", co_comm_coll_name(d->coll), (unsigned long long)d->count,
             co_dtype_name((co_dtype)(d->dtype_op & 15)));
    used = strlen(out);
    if (d->coll == CO_COLL_REDUCE || d->coll == CO_COLL_ALLREDUCE ||
        d->coll == CO_COLL_REDUCE_SCATTER || d->coll == CO_COLL_REDUCE_SLICES)
        snprintf(out + used, size - used, " (%s)",
                 co_comm_op_name((co_reduce_op)(d->dtype_op >> 4)));
    used = strlen(out);
    if (d->coll == CO_COLL_ALLREDUCE && d->root)
        snprintf(out + used, size - used, " as %s", co_dtype_name((co_dtype)d->root));
    used = strlen(out);
    if (d->coll == CO_COLL_BCAST || d->coll == CO_COLL_REDUCE || d->coll == CO_COLL_GATHER ||
        d->coll == CO_COLL_SCATTER)
        snprintf(out + used, size - used, " with root %u", d->root);
    if (d->coll == CO_COLL_TREE || d->coll == CO_COLL_TREE_SLICES)
        snprintf(out + used, size - used, " over %u leaves", d->root);
    return out;
}

void co_comm_list_rank(char *out, size_t size, int *n, int rank)
{
    const size_t used = strlen(out);

    snprintf(out + used, size - used, "%s%d", (*n)++ == 0 ? " " : ", ", rank);
}

const char *co_comm_cause_text(const char *text)
{
    return text && text[0] ? text : "it failed without saying why (co_fail)";
}

void co_comm_cause_set(co_comm_cause *cause, int rank, co_status status, const char *text)
{
    cause->status = status;
    cause->rank = rank;
    snprintf(cause->text, sizeof(cause->text), "%s", co_comm_cause_text(text));
}

co_status co_comm_cause_fail(const co_comm_cause *cause, int rank)
{
    switch (cause->status) {
    case CO_E_PEER:
    case CO_E_TIMEOUT:
    case CO_E_MISMATCH:
    case CO_E_INTERRUPTED:
    case CO_E_TERMINATED:
        return co_fail(cause->status, "%s", cause->text);
    default:
        if (cause->rank == rank)
            return co_fail(cause->status, "%s", cause->text);
        return co_fail(CO_E_PEER, "rank %d failed: %s", cause->rank, cause->text);
    }
}

co_comm_group co_comm_group_find(const int32_t (*color_key)[2], int size, int rank)
{
    co_comm_group group = {.rank = 0, .size = 0, .leader = rank};

    for (int p = 0; p < size; p++) {
        const int32_t *a = color_key[p], *b = color_key[rank], *l = color_key[group.leader];

        if (a[0] != b[0])
            continue;
        group.size++;
        if (a[1] < b[1] || (a[1] == b[1] && p < rank))
            group.rank++;
        if (a[1] < l[1] || (a[1] == l[1] && p < group.leader))
            group.leader = p;
    }
    return group;
}
