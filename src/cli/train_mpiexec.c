/*
 * train_mpiexec.c - `cohort train --mpiexec`: builds the command that an MPI launcher runs on each
 * rank.
 *
 * Does not train; all ranks are the launcher's processes.
 */
#include "cli/train_mpiexec.h"

#include <string.h>
#include <unistd.h>

#include <cohort/launch.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/mem.h"
#include "launch/mpiexec.h"
#include "state/checkpoint.h"
#include "train/rundir.h"

#define MPIEXEC_MAX_PATH 4352
#define MPIEXEC_WORDS    16 /* of a rank's command, without --set and --plugin */

typedef struct mpiexec {
    const train_options *options;
    const char *config;
    co_spec spec;
    co_arena *arena; /* borrowed from the spec's config */
    char run_dir[1024];
    char notes[MPIEXEC_MAX_PATH];
} mpiexec;

/* PROGRAM train --run-dir=DIR --notes=DIR ... -- CONFIG */
static co_status mpiexec_program(const char *const **out, const mpiexec *m, const char *self,
                                 bool resume)
{
    const train_options *o = m->options;
    const char **argv = co_arena_alloc(
        m->arena, MPIEXEC_WORDS + 2 * (size_t)(o->set.n + o->plugins.n), sizeof(*argv));
    const char *dir = co_arena_printf(m->arena, "--run-dir=%s", m->run_dir);
    const char *notes = co_arena_printf(m->arena, "--notes=%s", m->notes);
    const char *steps =
        co_arena_printf(m->arena, "--profile-steps=%lld", (long long)o->profile_steps);
    const char *skip = co_arena_printf(m->arena, "--profile-skip=%lld", (long long)o->profile_skip);
    int n = 0;

    if (!argv || !dir || !notes || !steps || !skip)
        return CO_E_NOMEM;
    argv[n++] = self;
    argv[n++] = "train";
    argv[n++] = dir;
    argv[n++] = notes;
    if (resume)
        argv[n++] = "--resume";
    if (o->quiet)
        argv[n++] = "--quiet";
    if (o->profile) {
        argv[n++] = "--profile";
        if (o->profile_steps >= 0)
            argv[n++] = steps;
        if (o->profile_skip >= 0)
            argv[n++] = skip;
    }
    for (int i = 0; i < o->set.n; i++) {
        argv[n++] = "--set";
        argv[n++] = o->set.text[i];
    }
    for (int i = 0; i < o->plugins.n; i++) {
        argv[n++] = "--plugin";
        argv[n++] = o->plugins.text[i];
    }
    argv[n++] = "--";
    argv[n++] = m->config;
    argv[n] = NULL;
    *out = argv;
    return CO_OK;
}

static co_status mpiexec_find_self(const char **out, co_arena *arena)
{
    char path[MPIEXEC_MAX_PATH];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (n < 0)
        return co_fail(CO_E_FAILED, "cannot find out where this program is");
    path[n] = '\0';
    *out = co_arena_strdup(arena, path);
    return *out ? CO_OK : CO_E_NOMEM;
}

static co_status mpiexec_set_dir(mpiexec *m)
{
    const char *given = m->options->run_dir;

    snprintf(m->run_dir, sizeof(m->run_dir), "%s", given ? given : "");
    if (!m->options->resume)
        CO_TRY(co_rundir_check(m->run_dir, sizeof(m->run_dir), &m->spec));
    snprintf(m->notes, sizeof(m->notes), "%s/.ranks", m->run_dir);
    return CO_OK;
}

static co_status mpiexec_check(const co_spec *spec)
{
    CO_TRY(co_spec_check_ranks(spec, (int)spec->ranks));
    if (spec->on_failure == CO_ON_FAILURE_SHRINK && spec->batch_per_rank)
        return co_fail(CO_E_USAGE, "on_failure: shrink: with batch_per_rank the batch depends on "
                                   "the number of ranks; give `batch`, or choose respawn");
    if (spec->on_failure != CO_ON_FAILURE_STOP && spec->saver.unit == CO_SAVER_OFF)
        return co_fail(CO_E_USAGE, "on_failure: over MPI a run starts again from its last "
                                   "checkpoint; `checkpoint: off` leaves none");
    return CO_OK;
}

/* 1 + step of the latest checkpoint; 0: none. */
static uint64_t mpiexec_reached(void *arg)
{
    const mpiexec *m = arg;
    char dir[CO_CHECKPOINT_MAX_PATH];
    uint64_t step = 0, *steps = NULL;
    size_t n = 0;

    if (co_fs_join(dir, sizeof(dir), m->run_dir, "checkpoints") == CO_OK &&
        co_checkpoint_list(&steps, &n, dir) == CO_OK) {
        step = n ? steps[0] + 1 : 0;
        co_free(steps);
    }
    return step;
}

static co_status mpiexec_start(mpiexec *m, const co_child_guard *guard)
{
    const train_options *o = m->options;
    const co_spec *spec = &m->spec;
    co_mpiexec job = {.launcher = o->mpiexec,
                      .hosts = o->hosts,
                      .ranks = (int)spec->ranks,
                      .notes = m->notes,
                      .on_failure = (co_on_failure)spec->on_failure,
                      .max_restarts = spec->max_restarts,
                      .max_seconds = spec->max_seconds,
                      .timeout_s = spec->timeout_s,
                      .reached = mpiexec_reached,
                      .arg = m,
                      .arena = m->arena};
    const char *self = NULL;

    CO_TRY(mpiexec_find_self(&self, m->arena));
    CO_TRY(mpiexec_program(&job.program, m, self, o->resume));
    CO_TRY(mpiexec_program(&job.again, m, self, true));
    return co_mpiexec_run(&job, guard);
}

co_status train_mpiexec(const train_options *o, const char *config)
{
    const co_train_options load = {
        .config_path = config, .set = o->set.text, .ranks = (int)o->ranks};
    mpiexec m = {.options = o, .config = config};
    bool made = false;
    co_child_guard guard;
    co_status st;

    if (co_launch_under_mpi())
        return co_fail(CO_E_USAGE, "--mpiexec: mpiexec has started this process already");
    CO_TRY(co_rundir_check_named(o->run_dir, o->resume));
    CO_TRY(co_spec_load(&m.spec, &load));
    m.arena = co_config_arena(m.spec.config);
    st = mpiexec_check(&m.spec);
    if (st == CO_OK)
        st = mpiexec_set_dir(&m);
    if (st == CO_OK) {
        made = !o->run_dir || !co_fs_exists(m.run_dir);
        co_child_guard_enter(&guard);
        st = mpiexec_start(&m, &guard);
        if (made) /* rmdir removes it only if the job wrote nothing */
            (void)rmdir(m.run_dir);
        co_child_guard_leave(&guard);
    }
    co_spec_unload(&m.spec);
    return st;
}
