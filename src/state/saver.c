/*
 * saver.c - decides when a checkpoint is due, and writes it in a thread.
 *
 * All ranks decide alike from step and epoch numbers; if the clock decides, rank 0 broadcasts it. A
 * failed write does not affect older checkpoints. The run continues with a warning, and reports the
 * failure in its summary and exit code; or it stops, if the config says so.
 */
#include "state/saver.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm/watch.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"

#define SAVER_NICE 10

struct co_saver {
    co_saver_options options;
    const co_saver_policy *policy; /* of the options */
    co_state *state;               /* shared: borrowed from the launcher; else owned by rank 0 */
    bool owns_state;
    char dir[CO_CHECKPOINT_MAX_PATH];
    uint64_t saved_step; /* of the last snapshot; UINT64_MAX: none */
    uint64_t last_ns;    /* when it was taken */
    bool last;           /* its evaluation comes, and then it is written */
    /* Rank 0: the write in progress, and the results of the earlier ones. */
    pthread_t thread;
    bool writing;
    co_checkpoint_test test;
    co_status status;
    char error[512];
};

co_status co_saver_create(co_saver **out, const co_saver_options *options)
{
    const bool root = co_comm_rank(options->source->comm) == 0;
    co_saver *saver;

    if (options->policy->unit == CO_SAVER_OFF)
        return CO_OK;
    saver = *out = co_calloc(1, sizeof(*saver));
    if (!saver)
        return CO_E_NOMEM;
    saver->options = *options;
    saver->policy = options->policy;
    saver->state = options->snapshot;
    saver->saved_step = UINT64_MAX;
    saver->last_ns = co_clock_ns();
    if (root) {
        CO_TRY(co_fs_join(saver->dir, sizeof(saver->dir), options->run_dir, "checkpoints"));
        co_checkpoint_clean(saver->dir);
    }
    if (!root || saver->state)
        return CO_OK;
    saver->owns_state = true;
    return co_state_create(&saver->state, options->shape, false);
}

static co_status saver_write(co_saver *saver)
{
    CO_TRY(co_checkpoint_save(saver->dir, saver->state, saver->options.run, &saver->test));
    return co_checkpoint_prune(saver->dir, (uint64_t)saver->policy->keep, saver->policy->best);
}

static void *saver_thread(void *arg)
{
    co_saver *saver = arg;

    /* This thread only: it shares a core with training. */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), SAVER_NICE);
    saver->status = saver_write(saver);
    if (saver->status != CO_OK)
        snprintf(saver->error, sizeof(saver->error), "%s", co_error_message());
    return NULL;
}

/* Rank 0: wait for the current write and record its result. */
static co_status saver_join(co_saver *saver)
{
    co_saver_counts *counts = saver->options.counts;

    if (!saver->writing)
        return CO_OK;
    pthread_join(saver->thread, NULL);
    saver->writing = false;
    counts->made += saver->status == CO_OK;
    if (saver->status == CO_OK)
        return CO_OK;
    counts->failed++;
    memcpy(counts->error, saver->error, sizeof(counts->error));
    if (saver->policy->on_error == CO_SAVER_STOP)
        return co_fail(saver->status, "no checkpoint: %s", saver->error);
    co_log(CO_LOG_WARN, "no checkpoint at step %llu: %s; training continues",
           (unsigned long long)saver->saved_step, saver->error);
    return saver->status;
}

/* Drop a failure that the config tolerates. */
static co_status saver_forgive(const co_saver *saver, co_status st)
{
    return saver->policy->on_error == CO_SAVER_GO_ON ? CO_OK : st;
}

static co_status saver_start_writing(co_saver *saver)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&saver->thread, NULL, saver_thread, saver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return co_fail(CO_E_FAILED, "cannot start a thread to write a checkpoint: %s",
                       strerror(error));
    saver->writing = true;
    return CO_OK;
}

static co_status saver_capture(co_saver *saver, uint64_t step)
{
    co_comm *comm = saver->options.source->comm;
    const bool root = co_comm_rank(comm) == 0;

    co_watch_phase(comm, CO_PHASE_SAVING);
    if (root)
        CO_TRY(saver_forgive(saver, saver_join(saver)));
    if (saver->state && saver->state->shared)
        CO_TRY(co_comm_barrier(comm)); /* rank 0 may still be reading the shared state */
    CO_TRY(co_state_capture(saver->state, saver->options.source));
    saver->saved_step = step;
    saver->last_ns = co_clock_ns();
    return CO_OK;
}

/* `test` NULL: not evaluated. */
static co_status saver_start(co_saver *saver, const co_checkpoint_test *test)
{
    saver->test = test ? *test : (co_checkpoint_test){.accuracy = (double)NAN};
    return co_comm_rank(saver->options.source->comm) == 0 ? saver_start_writing(saver) : CO_OK;
}

static co_status saver_take(co_saver *saver, uint64_t step, const co_checkpoint_test *test)
{
    if (saver->saved_step == step)
        return CO_OK;
    CO_TRY(saver_capture(saver, step));
    return saver_start(saver, test);
}

/* Whether a checkpoint is due by the clock; the same on every rank. */
static co_status saver_ask_clock(bool *due, co_saver *saver)
{
    uint8_t flag = co_clock_seconds(saver->last_ns, co_clock_ns()) >= (double)saver->policy->every;

    CO_TRY(co_comm_bcast(saver->options.source->comm, &flag, 1, CO_U8, 0));
    *due = flag != 0;
    return CO_OK;
}

bool co_saver_is_due(const co_saver *saver, uint64_t step)
{
    return saver && saver->policy->unit == CO_SAVER_STEPS && step % saver->policy->every == 0;
}

co_status co_saver_step(co_saver *saver, uint64_t step)
{
    bool due = co_saver_is_due(saver, step);

    if (!saver)
        return CO_OK;
    /* With strategies that rarely synchronize, the clock is checked only at the end of an epoch. */
    if (saver->policy->unit == CO_SAVER_SECONDS &&
        co_distributed_is_settled(saver->options.source->distributed))
        CO_TRY(saver_ask_clock(&due, saver));
    return due ? saver_take(saver, step, NULL) : CO_OK;
}

co_status co_saver_epoch(co_saver *saver, const co_saver_epoch_end *end)
{
    const co_saver_policy *policy;
    bool due = false;

    if (!saver)
        return CO_OK;
    policy = saver->policy;
    if (policy->unit == CO_SAVER_SECONDS)
        CO_TRY(saver_ask_clock(&due, saver));
    else
        due = (policy->unit == CO_SAVER_STEPS ? end->step : end->epoch) % policy->every == 0;
    if (due || (end->best && policy->best) || end->last)
        return saver_take(saver, end->step, &end->test);
    return CO_OK;
}

co_status co_saver_last(co_saver *saver, uint64_t step)
{
    if (!saver || saver->saved_step == step)
        return CO_OK;
    CO_TRY(saver_capture(saver, step));
    saver->last = true;
    return CO_OK;
}

co_status co_saver_tested(co_saver *saver, const co_checkpoint_test *test)
{
    if (!saver || !saver->last)
        return CO_OK;
    saver->last = false;
    return saver_start(saver, test);
}

/* *written: on rank 0, what became of the write. */
static co_status saver_now(co_status *written, co_saver *saver, uint64_t step)
{
    co_comm *comm;

    *written = CO_OK;
    if (!saver)
        return CO_OK;
    comm = saver->options.source->comm;
    CO_TRY(saver_take(saver, step, NULL));
    co_watch_phase(comm, CO_PHASE_SAVING); /* the collective part has reset the phase */
    if (co_comm_rank(comm) == 0)
        *written = saver->writing ? saver_join(saver) : saver->status;
    return CO_OK;
}

co_status co_saver_now(co_saver *saver, uint64_t step)
{
    co_status written;

    CO_TRY(saver_now(&written, saver, step));
    return written == CO_OK ? CO_OK : co_fail(written, "no checkpoint: %s", saver->error);
}

co_status co_saver_asked(bool *saved, co_saver *saver, uint64_t step)
{
    co_status written;

    CO_TRY(saver_now(&written, saver, step));
    *saved = saver && written == CO_OK;
    return saver ? saver_forgive(saver, written) : CO_OK;
}

co_status co_saver_finish(co_saver *saver)
{
    return saver ? saver_forgive(saver, saver_join(saver)) : CO_OK;
}

co_status co_saver_status(const co_saver_counts *counts)
{
    if (counts->failed == 0)
        return CO_OK;
    return co_fail(CO_E_IO,
                   "the run is complete, but %llu of its %llu checkpoints could not be written; "
                   "the last to fail: %s",
                   (unsigned long long)counts->failed,
                   (unsigned long long)(counts->failed + counts->made), counts->error);
}

void co_saver_destroy(co_saver *saver)
{
    if (!saver)
        return;
    (void)saver_join(saver); /* a failure is counted */
    if (saver->owns_state)
        co_state_destroy(saver->state);
    co_free(saver);
}

co_status co_saver_rescue(const co_saver_policy *policy, const char *run_dir, const co_state *state,
                          const co_checkpoint_run *run)
{
    char dir[CO_CHECKPOINT_MAX_PATH], folder[CO_CHECKPOINT_MAX_PATH];

    if (policy->unit == CO_SAVER_OFF || !state)
        return CO_OK;
    CO_TRY(co_fs_join(dir, sizeof(dir), run_dir, "checkpoints"));
    CO_TRY(co_checkpoint_path(folder, dir, state->point.step));
    if (co_fs_exists(folder))
        return CO_OK;
    CO_TRY(co_checkpoint_save(dir, state, run, NULL));
    return co_checkpoint_prune(dir, (uint64_t)policy->keep, policy->best);
}
