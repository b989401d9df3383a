/* kinds.h - the kinds of faults. */
#ifndef TESTS_FAULTS_KINDS_H
#define TESTS_FAULTS_KINDS_H

#include <signal.h>
#include <stdbool.h>

#include "faults/faulty.h"

/* A fault, and what the report must say. */
typedef struct fault_kind {
    const char *name;
    int signal, value; /* sent to the rank; 0: a limit on its files instead */
    bool accident;     /* a run may recover from it */
    bool root;         /* rank 0 only */
    int exit_code;     /* with on_failure: stop */
    const char *says;
    bool hangs;
} fault_kind;

static const fault_kind kinds[] = {
    {"SIGKILL", SIGKILL, 0, true, false, 4, "killed by signal 9", false},
    {"SIGABRT", SIGABRT, 0, true, false, 4, "killed by signal 6", false},
    {"SIGSEGV", SIGSEGV, 0, true, false, 4, "killed by signal 11", false},
    {"SIGQUIT", SIGQUIT, 0, true, false, 4, "killed by signal 3", false},
    {"SIGSTOP", SIGSTOP, 0, true, false, 4, "is stopped by a signal", true},
    {"exit(1)", SIGUSR1, FAULTY_EXIT, true, false, 4, "exited with code 1", false},
    {"no memory", SIGUSR1, FAULTY_NO_MEMORY, true, true, 1, "out of memory", false},
    {"mismatch", SIGUSR1, FAULTY_MISMATCH, false, false, 4, " calls ", false},
    {"reader", SIGUSR1, FAULTY_READER, true, false, 4, "reading data for", true},
    {"straggler", SIGUSR1, FAULTY_SLOW, true, false, 0, "", false},
    {"disk full", 0, 0, false, true, 1, "cannot write: File too large", false},
    {"read-only", SIGUSR1, FAULTY_READ_ONLY, false, true, 1, "Read-only file system", false},
};

#define DEATHS 4 /* the first entries */
#define KINDS  ((int)(sizeof(kinds) / sizeof(kinds[0])))

#endif
