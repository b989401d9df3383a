/* measure.c - a child that measures, and what it has found. */
#include "live/measure.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

#define MEASURE_MAX_PATH 4352
#define MEASURE_AGAIN_NS UINT64_C(30000000000)
/* Times of files advance in ticks of a few milliseconds: two changes within one look like one. */
#define MEASURE_TICK_S 0.02

/* The final weights, or where checkpoints come and go. */
static bool measure_weights(struct stat *out, const char *dir)
{
    char path[MEASURE_MAX_PATH];

    snprintf(path, sizeof(path), "%s/final.safetensors", dir);
    if (stat(path, out) == 0)
        return true;
    snprintf(path, sizeof(path), "%s/checkpoints", dir);
    return stat(path, out) == 0;
}

/* Whether they are others than those looked at last, and their time will show any change. */
static bool measure_is_new(const co_measured *m, const struct stat *weights)
{
    const struct timespec at = weights->st_mtim;
    struct timespec now;
    double age;

    clock_gettime(CLOCK_REALTIME, &now);
    age = difftime(now.tv_sec, at.tv_sec) + 1e-9 * (double)(now.tv_nsec - at.tv_nsec);
    if (age >= 0 && age < MEASURE_TICK_S)
        return false;
    return weights->st_ino != m->inode || at.tv_sec != m->modified.tv_sec ||
           at.tv_nsec != m->modified.tv_nsec;
}

/* Connections of the server must not live on in the child. */
static void measure_close_others(int keep)
{
    if (keep > 3)
        (void)close_range(3, (unsigned)keep - 1, 0);
    (void)close_range((unsigned)keep + 1, ~0U, 0);
}

/* In the child: does not return. */
static void measure_in_child(const co_live_measure *how, const char *dir, const co_measured *m,
                             pid_t parent)
{
    const struct sched_param idle = {.sched_priority = 0};
    json_t *run = json_object();
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    measure_close_others(m->out);
    if (m->idle)
        (void)sched_setscheduler(0, SCHED_IDLE, &idle);
    if (!run || how->run(run, dir, how->arg) != CO_OK ||
        json_dumpfd(run, m->out, JSON_COMPACT | JSON_REAL_PRECISION(7)) != 0)
        _exit(1);
    _exit(0);
}

static void measure_end_child(co_measured *m)
{
    if (!m->child)
        return;
    kill(m->child, SIGKILL);
    (void)waitpid(m->child, NULL, 0);
    close(m->out);
    m->child = 0;
}

co_status co_measured_begin(co_measured *m, const co_live_measure *how, const char *dir,
                            bool training)
{
    const pid_t parent = getpid();
    struct stat now;

    if (m->idle && !training) { /* it may take for ever, and for older weights */
        measure_end_child(m);
        m->inode = 0;
        m->next_ns = 0;
        m->idle = false;
    }
    if (!how->run || m->child || co_clock_ns() < m->next_ns || !measure_weights(&now, dir) ||
        !measure_is_new(m, &now))
        return CO_OK;
    m->inode = now.st_ino;
    m->modified = now.st_mtim;
    m->out = memfd_create("cohort-measured", MFD_CLOEXEC);
    if (m->out < 0)
        return co_fail(CO_E_IO, "no memory for what is measured: %s", strerror(errno));
    m->idle = training;
    m->child = fork();
    if (m->child == 0)
        measure_in_child(how, dir, m, parent);
    if (m->child > 0)
        return CO_OK;
    m->child = 0;
    close(m->out);
    return co_fail(CO_E_IO, "no process can be started: %s", strerror(errno));
}

bool co_measured_take(co_measured *m)
{
    json_t *found = NULL;
    int ending;

    if (!m->child || waitpid(m->child, &ending, WNOHANG) != m->child)
        return false;
    if (WIFEXITED(ending) && WEXITSTATUS(ending) == 0 && lseek(m->out, 0, SEEK_SET) == 0)
        found = json_loadfd(m->out, 0, NULL);
    close(m->out);
    m->child = 0;
    m->next_ns = co_clock_ns() + MEASURE_AGAIN_NS;
    if (!json_is_object(found)) {
        json_decref(found);
        m->inode = 0; /* it may have lacked memory: once more, later */
        return false;
    }
    json_decref(m->json);
    m->json = found;
    return true;
}

void co_measured_free(co_measured *m)
{
    measure_end_child(m);
    json_decref(m->json);
    *m = (co_measured){.child = 0};
}
