/*
 * process.h - what the kernel says of a process.
 */
#ifndef CO_CORE_PROCESS_H
#define CO_CORE_PROCESS_H

#include <stddef.h>

/* A stat file of /proc into `text`; returns what stands behind the name, " S 1 ...": fields 3 and
   on, see proc(5). NULL: the process is gone. */
const char *co_process_stat(char *text, size_t size, const char *path);

#endif
