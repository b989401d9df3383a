/*
 * program.h - runs the program under test like a user, and keeps its output and files.
 *
 * The test's main calls program_init. Every run is in the test's own scratch folder and has a time
 * limit (waits.h), after which all its processes are killed and the test fails.
 */
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define PROGRAM_MAX_ARGS 32
#define PROGRAM_MAX_TEXT 262144

/* mpiexec, for program_options.before, and for the program's --mpiexec. */
#define PROGRAM_MPIEXEC      TEST_MPIEXEC_SH, TEST_MPIEXEC
#define PROGRAM_MPIEXEC_LINE (TEST_MPIEXEC_SH " " TEST_MPIEXEC)

typedef struct program_options {
    const char *before[PROGRAM_MAX_ARGS]; /* command prefix: {"mpiexec", "-n", "2"} */
    uint64_t max_file_bytes;              /* RLIMIT_FSIZE; 0: none */
    int signal;                           /* sent to the program only, ... */
    bool signal_child;                    /* (or to its first child) */
    const char *signal_at;                /* ... once this file has been written to */
    const char *stdout_path;              /* instead of a buffer */
    int timeout_s;                        /* 0: WAITS_S */
    bool terminal;                        /* standard output is a terminal with 100 columns */
} program_options;

typedef struct program_result {
    int exit_code; /* 128 + n if signal n ended it */
    int orphans;   /* processes left shortly after its end */
    char out[PROGRAM_MAX_TEXT], err[PROGRAM_MAX_TEXT];
} program_result;

/* `path`: the program. Creates the scratch folder and enters it. 0 on success. */
int program_init(const char *path);
void program_fini(void);

/* Run the program with `args`, ended by NULL. The result is valid until the next run. `options` may
   be NULL. */
const program_result *program_run(const char *const *args, const program_options *options);

/* Run with the words of `line`, separated by blanks; '...' quotes. */
const program_result *program_line(const char *line);

/* Fail unless stderr ends with one `cohort: error: ` line that contains `words`. */
void program_assert_error(const program_result *r, int exit_code, const char *words);
/* Fail unless it exited with 0 and left no process; prints its errors. */
void program_assert_success(const program_result *r);

/* Skip the test, with a message, if the program or the machine has no MPI. */
void program_need_mpi(void);

/* summary.json of a finished run, to be freed by the caller; the hash of its weights. */
json_t *program_summary(const char *dir);
/* What a command that succeeds prints, an object; freed by the caller. */
json_t *program_json(const char *line);
void program_weights(char out[65], const char *dir);

/* Files in the scratch folder. */
void program_write(const char *path, const void *bytes, size_t n);
void program_write_text(const char *path, const char *text);
/* NUL-terminated, freed by the caller; NULL if there is no such file. */
char *program_read(const char *path);
bool program_exists(const char *path);
/* Number of files and folders in `path`; 0 if it does not exist. */
int program_count_entries(const char *path);
void program_remove(const char *path);

#endif
