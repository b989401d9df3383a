/* machine.h - facts about this machine, for `cohort doctor`. Any of them may be unknown. */
#ifndef CO_CLI_MACHINE_H
#define CO_CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "AMD EPYC 9354"; "" if unknown. */
void machine_cpu_name(char *out, size_t size);
/* The flags of the space-separated list `wanted` that the CPU has, in that order. */
void machine_cpu_has(char *out, size_t size, const char *wanted);
/* Online cores, including those this process may not use. */
int machine_cores(void);
/* Bytes that can still be allocated, within the control group's limit; 0: unknown. */
uint64_t machine_memory(void);
/* Free bytes in the file system of `path`; false: no such folder. */
bool machine_disk_free(uint64_t *out, const char *path);
/* Search PATH for a program. */
bool machine_find_program(char *out, size_t size, const char *name);
/* "MPICH 4.0.2": the MPI of this name (co_mpi_name); "" where it cannot be used. Tried by a process
   of its own, since one process can open only one. */
void machine_mpi(char *out, size_t size, const char *name);
/* Whether processes can share anonymous memory, as ranks do. */
bool machine_shares_memory(void);

#endif
