/*
 * rank_notes.h - how the ranks of an MPI job have ended, recorded by themselves in a folder that
 * all see.
 *
 * mpiexec's exit code does not say which rank ended first, nor on which host. So each rank keeps a
 * file: its host, then whether it was asked to end, has failed or has left. A rank that has
 * recorded nothing else has died.
 */
#ifndef CO_LAUNCH_RANK_NOTES_H
#define CO_LAUNCH_RANK_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include <cohort/status.h>

typedef enum co_note_kind {
    CO_NOTE_NONE = 0, /* no file */
    CO_NOTE_BEGUN,    /* and nothing since: it has died */
    CO_NOTE_TOLD,     /* by a signal */
    CO_NOTE_FAILED,
    CO_NOTE_LEFT /* in good order */
} co_note_kind;

/* The last note of a rank. */
typedef struct co_note {
    co_note_kind kind;
    char host[256]; /* as gethostname has it */
    long pid;
    co_status status; /* with FAILED and LEFT */
    uint64_t step;    /* the step it was in, from 1; 0: none yet, or unknown */
    char message[1024];
} co_note;

/* Why ranks have been started again. */
typedef struct co_notes_restart {
    int count;     /* 0: they are the first */
    int lost_rank; /* -1: unknown */
    char cause[1400];
} co_notes_restart;

/* Create the folder, without notes except `restart`. */
co_status co_notes_create(const char *folder, const co_notes_restart *restart);
void co_notes_remove(const char *folder);

/* In a rank; if nothing can be read it is a first start. */
void co_notes_read_restart(co_notes_restart *out, const char *folder);
/* In rank `rank`. Errors of writing are ignored: the run does not depend on notes. */
void co_notes_begin(const char *folder, int rank);
void co_notes_say(const char *folder, int rank, co_note_kind kind, co_status status, uint64_t step,
                  const char *message);

/* Of `ranks` ranks; the files may contain anything. */
void co_notes_read(co_note *out, const char *folder, int ranks);

#endif
