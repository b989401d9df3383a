/* faulty.h - faults of a rank of `faulty`: values of SIGUSR1. */
#ifndef TESTS_FAULTS_FAULTY_H
#define TESTS_FAULTS_FAULTY_H

enum {
    FAULTY_NOTHING,
    FAULTY_EXIT,      /* exit(1) without a message */
    FAULTY_NO_MEMORY, /* allocations fail from now on */
    FAULTY_MISMATCH,  /* the next collective has one element more */
    FAULTY_READER,    /* the next read of a sample never returns */
    FAULTY_SLOW,      /* late for every collective from now on */
    FAULTY_READ_ONLY  /* writing to files fails from now on */
};

#endif
