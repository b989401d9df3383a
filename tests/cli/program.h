/*
 * program.h - run the program under test as a user would, and keep what it said and left behind.
 *
 * The test's main calls program_init; every run happens in a scratch folder of the test's own and
 * has a time limit (waits.h) after which everything it started is killed and the test fails.
 */
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define PROGRAM_MAX_ARGS 32
#define PROGRAM_MAX_TEXT 262144

/* mpiexec, for program_options.before; Open MPI leaks by itself, and wants to be told that there
   may be more ranks than cores and that root may start them. */
#define PROGRAM_MPIEXEC                                                                            \
    "env", "ASAN_OPTIONS=detect_leaks=0", "OMPI_MCA_rmaps_base_oversubscribe=1",                   \
        "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", TEST_MPIEXEC
/* The same for the program's --mpiexec. */
#define PROGRAM_MPIEXEC_LINE                                                                       \
    "env ASAN_OPTIONS=detect_leaks=0 OMPI_MCA_rmaps_base_oversubscribe=1 "                         \
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " TEST_MPIEXEC

typedef struct program_options {
    const char *before[PROGRAM_MAX_ARGS]; /* a command in front: {"mpiexec", "-n", "2"} */
    uint64_t max_file_bytes;              /* RLIMIT_FSIZE; 0: none */
    int signal;                           /* sent to the program, and to it alone, ... */
    bool signal_child;                    /* (or to the first process that it has started) */
    const char *signal_at;                /* ... when this file has been written to */
    const char *stdout_path;              /* instead of a buffer */
    int timeout_s;                        /* 0: WAITS_S */
    bool terminal;                        /* standard output is one, of 100 columns */
} program_options;

typedef struct program_result {
    int exit_code; /* 128 + n when signal n ended it */
    int orphans;   /* processes that were there a moment after its end */
    char out[PROGRAM_MAX_TEXT], err[PROGRAM_MAX_TEXT];
} program_result;

/* `path` is the program; makes the scratch folder and goes there. 0 on success. */
int program_init(const char *path);
void program_fini(void);

/* Run it with `args`, ended by NULL. The result is good until the next run. `options` may be
   NULL. */
const program_result *program_run(const char *const *args, const program_options *options);

/* The result of the words of `line`: blanks part them, '...' keeps them together. */
const program_result *program_line(const char *line);

/* Fail unless the last block on stderr is one `cohort: error: ` line that holds `words`. */
void program_assert_error(const program_result *r, int exit_code, const char *words);
/* Fail unless it ended with 0 and left no process; says what it complained of. */
void program_assert_success(const program_result *r);

/* Skip the test, saying so, where the program or the machine has no MPI. */
void program_need_mpi(void);

/* summary.json of a finished run, the test's to give back; and the hash of its weights. */
json_t *program_summary(const char *dir);
void program_weights(char out[65], const char *dir);

/* Files in the scratch folder. */
void program_write(const char *path, const void *bytes, size_t n);
void program_write_text(const char *path, const char *text);
/* NUL-terminated, the test's to free; NULL when it is not there. */
char *program_read(const char *path);
bool program_exists(const char *path);
/* Files and folders in `path`, 0 when there is none. */
int program_count_entries(const char *path);
void program_remove(const char *path);

#endif
