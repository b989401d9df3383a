/*
 * waiting_ranks.c - which ranks wait in which collective.
 *
 * MPI does not tell which rank is missing, so ranks that have waited long notify the others, and a
 * rank that times out knows which have not. A rank that saves announces that it will be late, and
 * repeats that where a thread can.
 */
#include "comm/mpi/internal.h"
#include "comm/watch.h"
#include "core/clock.h"

#define NOTE_NS 100000000 /* waiting time after which others are notified */

enum {
    NOTE_WAITING,
    NOTE_SAVING,          /* said once */
    NOTE_SAVING_REPEATED, /* expires after the timeout */
};

static uint64_t waiting_timeout_ns(const mpi_comm *c)
{
    return (uint64_t)c->base.timeout_ms * 1000000;
}

/* Send (kind, sequence + 1 of the operation) to all other ranks. */
static co_status waiting_send(mpi_comm *c, uint32_t note[2])
{
    c->notes_sent++; /* per receiver */
    for (int p = 0; p < c->base.size; p++) {
        mpi_transfer sent;

        if (p == c->base.rank)
            continue;
        CO_TRY(co_mpi_check(
            co_mpi->isend(note, 2, co_mpi->u32, p, CO_MPI_TAG_NOTE, c->check, &sent), "a note"));
        CO_TRY(co_mpi_check(co_mpi->request_free(&sent), "a note"));
    }
    return CO_OK;
}

co_status co_mpi_note_waiting(mpi_comm *c, mpi_request *r)
{
    const uint64_t limit = waiting_timeout_ns(c) / 4, now = co_clock_ns();

    if (r->since_ns == 0)
        r->since_ns = now;
    if (r->noted)
        co_mpi_read_notes(c); /* as they come: they expire */
    if (r->noted || now - r->since_ns < (limit < NOTE_NS ? limit : NOTE_NS))
        return CO_OK;
    r->noted = true;
    c->note[0] = NOTE_WAITING;
    c->note[1] = r->descriptor.sequence + 1;
    return waiting_send(c, c->note);
}

/* A failure shows in the next operation. */
static void waiting_send_saving(mpi_comm *c)
{
    (void)waiting_send(c, c->saving_note);
    if (c->saving_note[0] == NOTE_SAVING_REPEATED)
        c->saving_due_ns = co_clock_ns() + waiting_timeout_ns(c) / 4;
    co_mpi_read_notes(c); /* makes MPI start sending now */
}

void co_mpi_note_saving(mpi_comm *c)
{
    const bool repeated = c->progress_thread && c->base.watch;

    if (!repeated && c->saving_note[1] == c->sequence + 1)
        return;
    c->saving_note[0] = repeated ? NOTE_SAVING_REPEATED : NOTE_SAVING;
    c->saving_note[1] = c->sequence + 1;
    waiting_send_saving(c);
    co_mpi_progress_thread_wake(c);
}

void co_mpi_repeat_saving(mpi_comm *c)
{
    if (c->saving_due_ns &&
        (c->cause.status != CO_OK || atomic_load(&c->base.watch->phase) != CO_PHASE_SAVING))
        c->saving_due_ns = 0;
    if (c->saving_due_ns && co_clock_ns() >= c->saving_due_ns)
        waiting_send_saving(c);
}

bool co_mpi_saves(const mpi_comm *c, int p, uint32_t next)
{
    /* It goes on saying that it saves while it waits there itself. */
    return c->waiting[p] < next && c->saving[p] == next && co_clock_ns() < c->saving_until_ns[p];
}

/* Receive a note that has arrived; false: it failed. */
static bool waiting_read(mpi_comm *c, int from)
{
    uint32_t note[2];

    if (co_mpi->recv(note, 2, co_mpi->u32, &from, CO_MPI_TAG_NOTE, c->check) != co_mpi->success)
        return false;
    c->notes_read++;
    if (note[0] == NOTE_WAITING) {
        c->waiting[from] = note[1];
        return true;
    }
    c->saving[from] = note[1];
    c->saving_until_ns[from] =
        note[0] == NOTE_SAVING ? UINT64_MAX : co_clock_ns() + waiting_timeout_ns(c);
    return true;
}

void co_mpi_read_notes(mpi_comm *c)
{
    int there = 1, from = co_mpi->any_source;

    while (co_mpi->iprobe(&from, CO_MPI_TAG_NOTE, c->check, &there) == co_mpi->success && there &&
           waiting_read(c, from))
        from = co_mpi->any_source;
}

void co_mpi_read_last_notes(mpi_comm *c)
{
    int all = 0;

    if (co_mpi->allreduce(&c->notes_sent, &all, 1, co_mpi->i32, co_mpi->sum, c->check) !=
        co_mpi->success)
        return;
    while (c->notes_read < all - c->notes_sent && waiting_read(c, co_mpi->any_source))
        ;
}
