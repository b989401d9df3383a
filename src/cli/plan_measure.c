/* plan_measure.c - the work of a rank for `cohort plan`: from runs made here, or an earlier one. */
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lists.h"
#include "cli/plan.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/process.h"
#include "core/thread.h"

#define MEASURE_SHARE 4 /* times smaller is the second batch, for what does not fall with it */

/* ---- a short run ---- */

static int measure_remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

/* The config, changed so that steps are all that it does. */
static co_status measure_set(const char *set[CLI_MAX_LIST + 16], const plan_job *job, double batch,
                             const char *strategy)
{
    const cli_list *own = &job->options->set;
    co_arena *arena = co_config_arena(job->lists);
    int n = own->n;

    memcpy(set, own->text, (size_t)n * sizeof(*set));
    set[n++] = co_arena_printf(arena, "batch_per_rank=%.0f", batch);
    set[n++] =
        co_arena_printf(arena, "max_steps=%d", (int)(job->options->skip + job->options->steps) + 1);
    set[n++] = strategy;
    set[n++] = "epochs=1000000";
    set[n++] = "evaluate=false";
    set[n++] = "stop_at=~"; /* which needs evaluations */
    set[n++] = "checkpoint=off";
    set[n++] = "on_failure=stop"; /* `shrink` goes only with a batch of all ranks */
    set[n++] = "tensorboard=false";
    set[n++] = "log_every=1";
    set[n++] = "shards=auto";
    set[n] = NULL;
    return set[own->n] && set[own->n + 1] ? CO_OK : CO_E_NOMEM;
}

/* Ratios, and other lists for each rank, are of the config's number of ranks. */
static co_status measure_explain(co_status st, int ranks)
{
    const char *message = co_error_message();

    if (st != CO_E_USAGE || !strstr(message, "partition "))
        return st;
    return co_fail(st,
                   "%s. Steps are measured here on %d rank%s, whatever number is planned: "
                   "-s partition=global measures and plans equal parts, --profile-from DIR takes "
                   "the times of a run with these",
                   message, ranks, co_plural((uint64_t)ranks));
}

/* Train in a folder of its own, and read what is in it. */
static co_status measure_run(co_plan_work *out, const plan_job *job, int ranks, double batch,
                             const char *strategy)
{
    const char *set[CLI_MAX_LIST + 16], *tmp = getenv("TMPDIR");
    char dir[CLI_MAX_PATH], run[CLI_MAX_PATH + 8];
    const int n = snprintf(dir, sizeof(dir), "%s/cohort-plan-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const co_train_options options = {.config_path = job->path,
                                      .set = set,
                                      .ranks = ranks,
                                      .run_dir = run,
                                      .quiet = true,
                                      .profile_steps = (uint64_t)job->options->steps,
                                      .profile_skip = (uint64_t)job->options->skip};
    co_status st;

    CO_TRY(measure_set(set, job, batch, strategy));
    if (n < 0 || (size_t)n >= sizeof(dir) || !mkdtemp(dir))
        return co_fail(CO_E_IO, "%s: cannot make a folder: %s", tmp && *tmp ? tmp : "/tmp",
                       strerror(errno));
    snprintf(run, sizeof(run), "%s/run", dir);
    st = measure_explain(co_train(NULL, &options), ranks);
    if (st == CO_OK)
        st = co_work_read(out, run, &job->names);
    if (nftw(dir, measure_remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        co_log(CO_LOG_WARN, "%s: cannot be removed: %s", dir, strerror(errno));
    return st == CO_OK ? co_process_asked() : st;
}

/* ---- what is made of it ---- */

/* How many ranks a node has here: each with its threads, on cores of its own. Nodes of less than a
   core share a machine, all of whose cores are busy then. */
static int measure_ranks(const plan_job *job)
{
    const int64_t each = co_plan_ranks_per_node(&job->cluster, job->work.threads);
    const int fit = co_thread_cores() / job->work.threads;
    const bool part = !job->cluster.gpus && job->cluster.cores < 1;

    return each < fit && !part ? (int)each : fit > 1 ? fit : 1;
}

static void measure_name(plan_job *job, const char *text)
{
    job->work.source = text ? text : "";
    job->work.full = job->work.ranks * job->work.threads >= co_thread_cores();
}

/* What a compressor computes, on one rank, which sends nothing. */
static co_status measure_choice(plan_job *job, size_t i, double batch)
{
    co_plan_work work = {.n = job->work.n};
    co_status st = measure_run(&work, job, 1, batch, job->set[i]);

    job->choice[i].post = work.post;
    job->choice[i].take = work.take;
    job->choice[i].measured = true;
    co_work_fini(&work);
    return st;
}

/* Kernels take k0 + k1 batch: by two batches. */
static co_status measure_fixed(plan_job *job, int ranks)
{
    co_plan_work *w = &job->work, small = {.n = w->n};
    const double less = w->batch >= MEASURE_SHARE ? (double)(int64_t)(w->batch / MEASURE_SHARE) : 1;
    const double share = less / w->batch;
    double ratio;
    co_status st;

    if (less >= w->batch || (job->n_batch < 2 && !job->options->global_batch))
        return CO_OK;
    st = measure_run(&small, job, ranks, less, "strategy={name: sync, update: whole}");
    ratio = (small.forward + small.backward) / (w->forward + w->backward);
    w->fixed = ratio > share ? (ratio - share) / (1 - share) : 0;
    w->fixed = w->fixed < 1 ? w->fixed : 1;
    co_work_fini(&small);
    return st;
}

co_status plan_measure(plan_job *job)
{
    const int ranks = measure_ranks(job);
    const double batch = job->batch[0];

    co_process_hold_requests();
    CO_TRY(measure_run(&job->work, job, ranks, batch, "strategy={name: sync, update: whole}"));
    measure_name(job, co_arena_printf(co_config_arena(job->lists),
                                      "measured here, %d step%s on %d rank%s",
                                      (int)job->options->steps, job->options->steps == 1 ? "" : "s",
                                      ranks, ranks == 1 ? "" : "s"));
    CO_TRY(measure_fixed(job, ranks));
    for (size_t i = 0; i < job->n_choice; i++)
        if (job->choice[i].compress != CO_CHOICE_WHOLE)
            CO_TRY(measure_choice(job, i, batch));
    return CO_OK;
}

/* Whether the earlier run had this strategy, on one rank. */
static bool measure_is_same(const plan_job *job, const co_choice *choice, const char *title)
{
    return job->work.ranks == 1 && strcmp(choice->title, title) == 0;
}

/* The strategy of that run, from its resolved config. */
static co_status measure_title(const char **out, co_config **file, const plan_job *job)
{
    const co_value *strategy;
    char path[CLI_MAX_PATH];

    *out = "";
    if (snprintf(path, sizeof(path), "%s/config.yaml", job->options->profile_from) >=
        (int)sizeof(path))
        return co_fail(CO_E_USAGE, "--profile-from: the path is too long");
    CO_TRY(co_config_load(file, path));
    strategy = co_value_get(co_config_root(*file), "strategy");
    return strategy && strategy->kind != CO_VALUE_NULL
               ? cli_strategy_title(out, job->lists, strategy)
               : CO_OK;
}

co_status plan_read_profile(plan_job *job)
{
    const char *dir = job->options->profile_from, *title = "";
    co_config *file = NULL;
    co_status st;

    CO_TRY(co_work_read(&job->work, dir, &job->names));
    measure_name(job, dir);
    st = measure_title(&title, &file, job);
    for (size_t i = 0; i < job->n_choice && st == CO_OK; i++) {
        co_choice *choice = &job->choice[i];

        if (choice->compress != CO_CHOICE_WHOLE && measure_is_same(job, choice, title)) {
            choice->post = job->work.post;
            choice->take = job->work.take;
            choice->measured = true;
        }
    }
    co_config_destroy(file);
    return st;
}
