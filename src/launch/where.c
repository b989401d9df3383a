/*
 * where.c - what each rank of a job did when it no longer got on, from the ranks' notes. Does not
 * know why the job has ended.
 */
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/plural.h"
#include "launch/rank_notes.h"

#define WHERE_MOST 8 /* ranks that are named of each kind */

enum { WHERE_SILENT, WHERE_BUSY, WHERE_WAITING, WHERE_KINDS };

/* Silent: it has begun, and has not said since what it does, or how it has ended. */
static int where_kind(const co_note *note)
{
    if (note->kind <= CO_NOTE_BEGUN && !note->where[0])
        return WHERE_SILENT;
    return strstr(note->where, " it waits for ") ? WHERE_WAITING : WHERE_BUSY;
}

static void where_say(const co_note *note, int rank)
{
    if (note->where[0])
        co_log(CO_LOG_WARN, "  %s", note->where);
    else if (note->kind == CO_NOTE_NONE)
        co_log(CO_LOG_WARN, "  rank %d has not begun", rank);
    else if (note->kind == CO_NOTE_BEGUN)
        co_log(CO_LOG_WARN,
               "  rank %d (process %ld on %s) has said nothing: dead, stopped, or cut off", rank,
               note->pid, note->host);
    else
        co_log(CO_LOG_WARN, "  rank %d (process %ld on %s) in step %llu %s", rank, note->pid,
               note->host, (unsigned long long)note->step, note->message);
}

void co_notes_report_where(const co_note *note, int ranks)
{
    int count[WHERE_KINDS] = {0};
    bool any = false;

    for (int r = 0; r < ranks; r++) {
        count[where_kind(&note[r])]++;
        any = any || note[r].where[0];
    }
    if (!any)
        return;
    co_log(CO_LOG_WARN,
           "of %d rank%s %d waited for others, %d did something else, %d said nothing:", ranks,
           co_plural((uint64_t)ranks), count[WHERE_WAITING], count[WHERE_BUSY],
           count[WHERE_SILENT]);
    for (int kind = 0; kind < WHERE_KINDS; kind++) {
        int left = WHERE_MOST;

        for (int r = 0; r < ranks && left > 0; r++)
            if (where_kind(&note[r]) == kind) {
                where_say(&note[r], r);
                left--;
            }
        if (count[kind] > WHERE_MOST)
            co_log(CO_LOG_WARN, "  and %d more of these", count[kind] - WHERE_MOST);
    }
}
