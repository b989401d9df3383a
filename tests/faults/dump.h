/* dump.h - core dumps of a run, and what they cost. */
#ifndef TESTS_FAULTS_DUMP_H
#define TESTS_FAULTS_DUMP_H

#include <stdint.h>
#include <sys/types.h>

/* In the process that will start ranks: they may leave cores, in `dir` where these are files. */
void dump_allow(const char *dir);
/* How many there are; bytes of the largest. */
int dump_count(uint64_t *largest, const char *dir);
/* Bytes that the files in memory take which a launcher shares with its ranks. */
uint64_t dump_shared_bytes(pid_t launcher);

#endif
