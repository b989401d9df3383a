/*
 * crash_handler.c - a handler that records signals that dump core where others can read them, and
 * then lets them take effect.
 *
 * Existing handlers are kept: those of sanitizers and some MPI libraries. Does not know what the
 * record is used for.
 */
#include "launch/crash_handler.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/mem.h"

/* A handler has no argument, so this has to be global. */
static co_watch *_Atomic crash_watch;
static int crash_ranks;
static pid_t crash_process; /* children that it forks inherit the handler, but must not record */

/* Raised again, so that the core shows where the signal occurred. */
static void crash_note_signal(int number, siginfo_t *info, void *context)
{
    co_watch *watch = atomic_load(&crash_watch);

    (void)context;
    for (int i = 0; watch && getpid() == crash_process && i < crash_ranks; i++)
        co_watch_go(&watch[i], number);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info) != 0)
        raise(number);
}

/* The thread's stack may have overflowed. Pages, which leak checkers do not look for. */
static co_status crash_take_stack(void)
{
    const long size = sysconf(_SC_SIGSTKSZ);
    stack_t stack = {.ss_size = size > SIGSTKSZ ? (size_t)size : (size_t)SIGSTKSZ}, before;

    if (sigaltstack(NULL, &before) != 0 || !(before.ss_flags & SS_DISABLE))
        return CO_OK;
    stack.ss_sp = co_map(stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!stack.ss_sp)
        return co_fail(CO_E_NOMEM, "out of memory");
    (void)sigaltstack(&stack, NULL);
    return CO_OK;
}

co_status co_crash_handler_install(co_watch *watch, int ranks)
{
    static const int numbers[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                  SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
    struct sigaction action = {.sa_sigaction = crash_note_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    struct sigaction before;

    crash_ranks = ranks;
    crash_process = getpid();
    atomic_store(&crash_watch, watch);
    if (!watch)
        return CO_OK;
    CO_TRY(crash_take_stack());
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
            before.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &action, NULL);
    return CO_OK;
}
