/*
 * rundir.c - the folder a run leaves behind: config.yaml, metrics.jsonl, final.safetensors
 * (with `ema` trained.safetensors too), summary.json.
 */
#include "train/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"

#define RUNDIR_MAX_PATH 4096

/* How long the ranks of a job that was killed may take to vanish. */
#define RUNDIR_WAIT_US 5000000
#define RUNDIR_TRY_US  50000

static co_status rundir_join(char *out, const char *dir, const char *file)
{
    int n = snprintf(out, RUNDIR_MAX_PATH, "%s/%s", dir, file);

    if (n < 0 || n >= RUNDIR_MAX_PATH)
        return co_fail(CO_E_USAGE, "%s: the path of the run directory is too long", dir);
    return CO_OK;
}

/* runs/mnist-net-20260131-235959, with -2, -3, ... behind it where that exists. */
static co_status rundir_name(char *path, size_t size, const co_spec *spec)
{
    time_t now = time(NULL);
    struct tm parts;
    char stamp[32];

    if (!localtime_r(&now, &parts) || !strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts))
        return co_fail(CO_E_FAILED, "cannot tell the local time; name a run directory");
    snprintf(path, size, "runs/%s-%s", co_spec_model_name(spec), stamp);
    for (int i = 2; co_fs_exists(path) && i < 1000; i++)
        snprintf(path, size, "runs/%s-%s-%d", co_spec_model_name(spec), stamp, i);
    return CO_OK;
}

co_status co_rundir_write_config(const char *path, const co_spec *spec)
{
    char file[RUNDIR_MAX_PATH];
    co_atomic_file *out = NULL;
    co_status st;

    CO_TRY(rundir_join(file, path, "config.yaml"));
    CO_TRY(co_atomic_open(&out, file));
    st = co_keys_write(co_atomic_stream(out), spec, co_spec_keys, 0);
    if (st != CO_OK) {
        co_atomic_discard(out);
        return st;
    }
    return co_atomic_commit(out);
}

co_status co_rundir_check(char *path, size_t size, const co_spec *spec)
{
    static const char *const traces[] = {"metrics.jsonl", "summary.json", "final.safetensors",
                                         "checkpoints"};

    if (!path[0])
        CO_TRY(rundir_name(path, size, spec));
    for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
        char file[RUNDIR_MAX_PATH];

        CO_TRY(rundir_join(file, path, traces[i]));
        if (co_fs_exists(file))
            return co_fail(CO_E_USAGE,
                           "%s holds an earlier run; go on with it by --resume, remove it, or give "
                           "another --run-dir",
                           path);
    }
    return CO_OK;
}

/* Who has the lock wrote its number into the file; 0: nobody knows. */
static long rundir_holder(int fd)
{
    char text[32] = "";

    return pread(fd, text, sizeof(text) - 1, 0) > 0 ? atol(text) : 0;
}

/* Where others may rename and remove, they choose what this run goes on from. Root is in other
   users' folders by trade. */
static void rundir_warn(const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return;
    if ((info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX))
        co_log(CO_LOG_WARN, "%s: every user of this machine may change this run; chmod o-w %s",
               path, path);
    else if (info.st_uid != geteuid() && geteuid() != 0)
        co_log(CO_LOG_WARN, "%s: belongs to another user, who may change this run", path);
}

co_status co_rundir_lock(int *lock, const char *path)
{
    const int tries = RUNDIR_WAIT_US / RUNDIR_TRY_US;
    char file[RUNDIR_MAX_PATH];
    int fd, bad;

    CO_TRY(rundir_join(file, path, ".lock"));
    CO_TRY(co_fs_mkdirs(path));
    CO_TRY(co_open_lock(&fd, file, path));
    /* Held by whoever has this open, so by the ranks too: it is free when all of a job has gone. */
    for (int i = 0; (bad = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK && i < tries;
         i++)
        co_clock_sleep_us(RUNDIR_TRY_US);
    if (bad) {
        const int error = errno;
        const long holder = rundir_holder(fd);

        close(fd);
        if (error == EWOULDBLOCK)
            return co_fail(CO_E_USAGE,
                           "%s: another job is at work in this run directory (process %ld); wait "
                           "for it, or give another --run-dir",
                           path, holder);
        return co_fail(CO_E_IO, "%s: cannot lock: %s", file, strerror(error));
    }
    if (ftruncate(fd, 0) == 0)
        (void)dprintf(fd, "%ld\n", (long)getpid());
    rundir_warn(path);
    *lock = fd;
    return CO_OK;
}

void co_rundir_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

co_status co_rundir_create(int *lock, char *path, size_t size, const co_spec *spec)
{
    CO_TRY(co_rundir_check(path, size, spec));
    CO_TRY(co_rundir_lock(lock, path));
    CO_TRY(co_rundir_check(path, size, spec)); /* while it was not ours */
    return co_rundir_write_config(path, spec);
}

co_status co_rundir_save_weights(char sha256[65], const char *path, const co_model *model)
{
    char file[RUNDIR_MAX_PATH];
    co_named_tensor *tensors = NULL;
    size_t n = 0;

    CO_TRY(rundir_join(file, path, "final.safetensors"));
    CO_TRY(co_model_tensors(&tensors, &n, model));
    co_safetensors_sha256(sha256, tensors, n);
    co_free(tensors);
    return co_model_save(model, file);
}

co_status co_rundir_save_trained(const char *path, const co_model *model)
{
    char file[RUNDIR_MAX_PATH];

    CO_TRY(rundir_join(file, path, "trained.safetensors"));
    return co_model_save(model, file);
}
