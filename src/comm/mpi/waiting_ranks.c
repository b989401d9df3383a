/*
 * waiting_ranks.c - which ranks wait in which collective. MPI does not say which one is missing, so
 * ranks that wait long notify the others, and a rank whose timeout has expired knows them. A rank
 * that saves announces that it will be late.
 */
#include "comm/mpi/internal.h"
#include "core/clock.h"

#define NOTE_NS 100000000 /* who waits longer notifies the others */

enum { NOTE_WAITING, NOTE_SAVING };

/* To all others: the kind, and the operation's sequence + 1. */
static co_status waiting_send(mpi_comm *c, uint32_t note[2])
{
    c->notes_sent++; /* to each */
    for (int p = 0; p < c->base.size; p++) {
        MPI_Request sent;

        if (p == c->base.rank)
            continue;
        CO_TRY(co_mpi_check(MPI_Isend(note, 2, MPI_UINT32_T, p, CO_MPI_TAG_NOTE, c->check, &sent),
                            "a note"));
        CO_TRY(co_mpi_check(MPI_Request_free(&sent), "a note"));
    }
    return CO_OK;
}

co_status co_mpi_note_waiting(mpi_comm *c, mpi_request *r)
{
    const uint64_t limit = (uint64_t)c->base.timeout_ms * 1000000 / 4, now = co_clock_ns();

    if (r->since_ns == 0)
        r->since_ns = now;
    if (r->noted || now - r->since_ns < (limit < NOTE_NS ? limit : NOTE_NS))
        return CO_OK;
    r->noted = true;
    c->note[0] = NOTE_WAITING;
    c->note[1] = r->descriptor.sequence + 1;
    return waiting_send(c, c->note);
}

/* The next operation finds failures of this one. */
void co_mpi_note_saving(mpi_comm *c)
{
    if (c->saving_note[1] == c->sequence + 1)
        return;
    c->saving_note[0] = NOTE_SAVING;
    c->saving_note[1] = c->sequence + 1;
    (void)waiting_send(c, c->saving_note);
    co_mpi_read_notes(c); /* started now: nobody calls MPI while this rank saves */
}

/* One that has arrived; false: none, or a failure. */
static bool waiting_read(mpi_comm *c, int from)
{
    MPI_Status status;
    uint32_t note[2];

    if (MPI_Recv(note, 2, MPI_UINT32_T, from, CO_MPI_TAG_NOTE, c->check, &status) != MPI_SUCCESS)
        return false;
    if (note[0] == NOTE_SAVING)
        c->saving[status.MPI_SOURCE] = note[1];
    else
        c->waiting[status.MPI_SOURCE] = note[1];
    c->notes_read++;
    return true;
}

void co_mpi_read_notes(mpi_comm *c)
{
    MPI_Status status;
    int there = 1;

    while (MPI_Iprobe(MPI_ANY_SOURCE, CO_MPI_TAG_NOTE, c->check, &there, &status) == MPI_SUCCESS &&
           there && waiting_read(c, status.MPI_SOURCE))
        ;
}

void co_mpi_read_last_notes(mpi_comm *c)
{
    int all = 0;

    if (MPI_Allreduce(&c->notes_sent, &all, 1, MPI_INT, MPI_SUM, c->check) != MPI_SUCCESS)
        return;
    while (c->notes_read < all - c->notes_sent && waiting_read(c, MPI_ANY_SOURCE))
        ;
}
