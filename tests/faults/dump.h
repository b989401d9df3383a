/* dump.h - core dumps of a run, and their size. */
#ifndef TESTS_FAULTS_DUMP_H
#define TESTS_FAULTS_DUMP_H

#include <stdint.h>
#include <sys/types.h>

/* Called in the process that will start ranks: allows core dumps, in `dir` where they are files. */
void dump_allow(const char *dir);
/* The number of dumps; *largest: bytes of the largest. */
int dump_count(uint64_t *largest, const char *dir);
/* Bytes of the memory files that a launcher shares with its ranks. */
uint64_t dump_shared_bytes(pid_t launcher);

#endif
