/*
 * end_mpiexec.c - ends mpiexec after a rank has aborted the job.
 *
 * MPI_Abort ends the ranks. Open MPI's mpiexec then waits for the daemon of every host: for ever,
 * if a host is gone. So the aborting rank leaves a process behind that kills mpiexec after some
 * time. Only a rank on mpiexec's own host can do that, and only if mpiexec belongs to the same
 * user.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm/mpi/internal.h"
#include "core/process.h"

#define END_GRACE_MS  15000
#define END_ANCESTORS 8

static const char end_message[] =
    "cohort: error: mpiexec had not ended 15 s after its ranks: a host does not answer\n";

/* Name and parent of a process; false: no such process. */
static bool end_look(char name[32], int *parent, int pid)
{
    char path[64], text[128];
    const char *begin, *end;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    end = co_process_stat(text, sizeof(text), path); /* PID (NAME) STATE PARENT ... */
    begin = end ? strchr(text, '(') : NULL;
    if (!begin || strlen(end) < 4)
        return false;
    snprintf(name, 32, "%.*s", (int)(end - begin - 2), begin + 1);
    *parent = atoi(end + 3);
    return true;
}

static bool end_is_launcher(const char *name)
{
    static const char *const names[] = {"mpiexec", "mpirun", "orterun", "prterun"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The launcher that started this process; 0: it is on another host. */
static int end_find_launcher(void)
{
    int pid = getppid(), parent;
    char name[32];

    for (int i = 0; i < END_ANCESTORS && pid > 1 && end_look(name, &parent, pid); i++) {
        if (end_is_launcher(name))
            return pid;
        pid = parent;
    }
    return 0;
}

/* Runs in a fork of a process with threads, so only async-signal-safe calls are allowed. Closes all
   other descriptors, since somebody may wait for their EOF. */
static void end_watch(int launcher, const char *errors)
{
    const int watched = (int)syscall(SYS_pidfd_open, launcher, 0);
    struct pollfd wait = {.fd = 3, .events = POLLIN};
    int out;

    setsid(); /* leave the rank's process group, which mpiexec kills */
    prctl(PR_SET_NAME, "cohort-end");
    if (watched < 0 || (watched != 3 && dup2(watched, 3) != 3))
        return;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    syscall(SYS_close_range, 4u, ~0u, 0u);
    if (poll(&wait, 1, END_GRACE_MS) != 0)
        return;
    out = (int)syscall(SYS_pidfd_getfd, 3, 2, 0u); /* shares mpiexec's file position */
    if (out < 0)
        out = open(errors, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY);
    if (out >= 0)
        (void)!write(out, end_message, sizeof(end_message) - 1);
    kill(launcher, SIGKILL);
}

void co_mpi_end_launcher(void)
{
    const int launcher = end_find_launcher();
    char errors[64];

    if (launcher == 0)
        return;
    snprintf(errors, sizeof(errors), "/proc/%d/fd/2", launcher);
    if (_Fork() != 0)
        return;
    end_watch(launcher, errors);
    _exit(0);
}
