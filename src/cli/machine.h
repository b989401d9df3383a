/* machine.h - what this machine is, for `cohort doctor`. Every answer may be "unknown". */
#ifndef CO_CLI_MACHINE_H
#define CO_CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "AMD EPYC 9354"; "" when the system does not say. */
void machine_cpu_name(char *out, size_t size);
/* Those of the space-separated `wanted` that the CPU has, in that order. */
void machine_cpu_has(char *out, size_t size, const char *wanted);
/* Cores that are switched on, whoever may use them. */
int machine_cores(void);
/* Bytes that programs can still take, within the control group's limit; 0: unknown. */
uint64_t machine_memory(void);
/* Bytes free in the file system of `path`; false: no such folder. */
bool machine_disk_free(uint64_t *out, const char *path);
/* Path of a program that the shell would find. */
bool machine_find_program(char *out, size_t size, const char *name);
/* "MPICH 4.0.2": the MPI of this name (co_mpi_name); "" where it cannot be used. Tried by a process
   of its own, since one process can open only one. */
void machine_mpi(char *out, size_t size, const char *name);
/* Whether two processes can share memory without a name, as ranks do. */
bool machine_shares_memory(void);

#endif
