/*
 * rank_notes.h - records how each rank of an MPI job ended, in a folder that all hosts see.
 *
 * mpiexec's exit code does not tell which rank ended first, or on which host. So each rank writes a
 * file: its host, then whether it was asked to end, failed or left. A rank without any of these
 * died. Before it knows its number it leaves a sign that processes have been started at all, which
 * a launcher with a queue may do late.
 */
#ifndef CO_LAUNCH_RANK_NOTES_H
#define CO_LAUNCH_RANK_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include <cohort/status.h>

typedef enum co_note_kind {
    CO_NOTE_NONE = 0, /* no file */
    CO_NOTE_BEGUN,    /* started, and no note since: it died */
    CO_NOTE_TOLD,     /* received a signal */
    CO_NOTE_FAILED,
    CO_NOTE_LEFT /* ended in order */
} co_note_kind;

/* Last note of a rank. */
typedef struct co_note {
    co_note_kind kind;
    char host[256]; /* as from gethostname */
    long pid;
    co_status status; /* for FAILED and LEFT */
    uint64_t step;    /* current step, from 1; 0: none yet, or unknown */
    char message[1024];
    char where[512]; /* what it does, from a rank that does not get on; "": it does, or is silent */
} co_note;

/* Why ranks were restarted. */
typedef struct co_notes_restart {
    int count;     /* restarts so far */
    int lost_rank; /* -1: unknown */
    char cause[1400];
} co_notes_restart;

/* Create the folder, empty except for `restart`. */
co_status co_notes_create(const char *folder, const co_notes_restart *restart);
void co_notes_remove(const char *folder);

/* In a process that is to become a rank, before MPI starts; the second says whether any has. */
void co_notes_starting(const char *folder);
bool co_notes_any_starting(const char *folder);

/* In a rank. If nothing can be read, it is the first start. */
void co_notes_read_restart(co_notes_restart *out, const char *folder);
/* In rank `rank`. Write errors are ignored: the run does not depend on notes. */
void co_notes_begin(const char *folder, int rank);
void co_notes_say(const char *folder, int rank, co_note_kind kind, co_status status, uint64_t step,
                  const char *message);
/* `where`: what the rank does, as it does not get on; "": it does again. */
void co_notes_say_where(const char *folder, int rank, const char *where);

/* Read the notes of `ranks` ranks. The files are untrusted. */
void co_notes_read(co_note *out, const char *folder, int ranks);

/* where.c: log what each rank did when they no longer got on, if any has said so: silent ranks
   first, then those that others wait for. */
void co_notes_report_where(const co_note *note, int ranks);

#endif
