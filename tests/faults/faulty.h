/* faulty.h - what the harness can make a rank of `faulty` do: the value of a SIGUSR1. */
#ifndef TESTS_FAULTS_FAULTY_H
#define TESTS_FAULTS_FAULTY_H

enum {
    FAULTY_NOTHING,
    FAULTY_EXIT,      /* exit(1) without a word */
    FAULTY_NO_MEMORY, /* from now on, allocations fail */
    FAULTY_MISMATCH,  /* the next collective asks for one element more */
    FAULTY_READER,    /* the next sample that is read never comes */
    FAULTY_SLOW,      /* from now on, it comes late to every collective */
    FAULTY_READ_ONLY  /* from now on, writing to a file is refused */
};

#endif
