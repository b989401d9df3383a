/*
 * run_eval.c - measures weights on the test split: `cohort eval`; and what the network says of
 * images: `cohort predict`.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "core/mem.h"
#include "core/sized.h"
#include "core/thread.h"
#include "data/data.h"
#include "train/evaluate.h"
#include "train/finite.h"
#include "train/logits.h"
#include "train/measures.h"
#include "train/run_internal.h"
#include "train/rundir.h"

CO_SIZED_END(co_eval_summary, positions);

static co_status run_eval(co_comm *comm, co_job *job)
{
    co_eval_summary *out = &job->result->eval;
    const co_feed_source from = {
        .dataset = job->test, .split = CO_SPLIT_TEST, .queue = job->model->store->queue};
    co_feed feed = {.tree = NULL};
    co_tested tested;
    co_status st;

    co_thread_flush_denormals();
    co_model_setup(job->model, co_spec_threads(&job->spec));
    CO_TRY(co_feed_open(&feed, &job->spec, comm, &from));
    st = co_trainer_evaluate(&tested, comm, job->model, &feed);
    co_feed_close(&feed);
    if (st == CO_OK && co_comm_rank(comm) == 0) {
        const co_target target = co_model_target(job->model);
        const co_result result = tested.all;
        const double n = result.count ? (double)result.count : (double)NAN;

        out->count = job->model->positions ? co_dataset_count(job->test) : result.count;
        out->positions = job->model->positions ? result.count : 0;
        out->loss = result.loss_sum / n;
        out->accuracy = target == CO_TARGET_VALUES ? (double)NAN : (double)result.correct / n;
        out->accuracy_top5 = (double)result.correct5 / n;
        if (!co_model_has_top5(job->model))
            out->accuracy_top5 = -1;
        out->n_metric = co_measures_name(out->metric, &job->spec.metrics, tested.value);
        if (!job->images)
            st = co_finite_explain(&tested.all, job->test, job->model->graph, &job->spec);
    }
    return st;
}

/* Sum the confusion matrix over ranks into the memory that rank 0 shares with the caller. */
static co_status run_gather_confusion(const co_job *job, co_comm *comm, int64_t *own)
{
    const size_t n = (size_t)(job->model->classes * job->model->classes);

    CO_TRY(co_comm_allreduce(comm, own, own, n, CO_I64, CO_SUM));
    if (co_comm_rank(comm) == 0)
        memcpy(job->confusion, own, n * sizeof(*own));
    return CO_OK;
}

static co_status run_eval_classes(co_comm *comm, co_job *job)
{
    const size_t classes = (size_t)job->model->classes;
    co_status st = CO_OK;

    if (!job->confusion)
        return run_eval(comm, job);
    job->model->confusion = co_calloc(classes * classes, sizeof(*job->model->confusion));
    if (!job->model->confusion)
        return CO_E_NOMEM;
    st = run_eval(comm, job);
    if (st == CO_OK)
        st = run_gather_confusion(job, comm, job->model->confusion);
    co_free(job->model->confusion);
    job->model->confusion = NULL;
    return st;
}

static co_status run_eval_rank(co_comm *comm, void *arg)
{
    co_job *job = arg;

    CO_TRY(co_job_enter_device(job, comm));
    CO_TRY(run_eval_classes(comm, job));
    return co_run_share_result(comm, job);
}

/* Memory that ranks, which may be processes, share with the caller. */
static co_status run_map(void *out, size_t bytes)
{
    void *memory = co_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);

    *(void **)out = memory;
    return memory ? CO_OK : co_fail(CO_E_NOMEM, "out of memory");
}

static co_status run_map_confusion(co_job *job, size_t *bytes)
{
    const int64_t classes = job->model->classes;

    if (classes > CO_EVAL_MAX_CLASSES)
        return co_fail(CO_E_USAGE, "confusion matrix: at most %d classes, and the model has %lld",
                       CO_EVAL_MAX_CLASSES, (long long)classes);
    *bytes = (size_t)(classes * classes) * sizeof(*job->confusion);
    return run_map(&job->confusion, *bytes);
}

static co_status run_take_confusion(co_confusion *out, const co_job *job, size_t bytes)
{
    out->classes = job->model->classes;
    out->count = co_calloc(1, bytes);
    if (!out->count)
        return CO_E_NOMEM;
    memcpy(out->count, job->confusion, bytes);
    return CO_OK;
}

static co_status run_map_logits(co_job *job, size_t *bytes)
{
    const uint64_t samples = co_dataset_count(job->test), classes = (uint64_t)job->model->classes;

    if (job->under_mpi)
        return co_fail(CO_E_USAGE, "logits: ranks have to share memory; start it without mpiexec");
    if (job->model->positions)
        return co_fail(CO_E_USAGE, "logits: for networks with one row of them per sample, not one "
                                   "per token");
    if (samples > CO_LOGITS_MAX_BYTES / sizeof(float) / classes)
        return co_fail(CO_E_USAGE,
                       "logits: %llu samples of %llu classes are more than %llu GiB; take fewer",
                       (unsigned long long)samples, (unsigned long long)classes,
                       (unsigned long long)(CO_LOGITS_MAX_BYTES >> 30));
    *bytes = (size_t)(samples * classes) * sizeof(float);
    if (*bytes)
        CO_TRY(run_map(&job->model->logits, *bytes));
    for (uint64_t i = 0; i < samples * classes; i++)
        job->model->logits[i] = NAN; /* of samples that others replace */
    return CO_OK;
}

static co_status run_take_logits(co_logits *out, const co_job *job, size_t bytes)
{
    out->samples = co_dataset_count(job->test);
    out->classes = job->model->classes;
    out->value = co_calloc(1, bytes ? bytes : 1);
    if (!out->value)
        return CO_E_NOMEM;
    if (bytes)
        memcpy(out->value, job->model->logits, bytes);
    return CO_OK;
}

/* `confusion` and `logits`: NULL is not wanted; of values there is no confusion. */
static co_status run_measure(co_job *job, co_confusion *confusion, co_logits *logits,
                             const co_train_options *options)
{
    size_t confusion_bytes = 0, logit_bytes = 0;
    co_status st = CO_OK;

    if (co_model_target(job->model) != CO_TARGET_LABEL)
        confusion = NULL;
    if (confusion)
        st = run_map_confusion(job, &confusion_bytes);
    if (st == CO_OK && logits)
        st = run_map_logits(job, &logit_bytes);
    if (st == CO_OK)
        st = co_run_launch(job, options, NULL, run_eval_rank);
    if (st == CO_OK && confusion)
        st = run_take_confusion(confusion, job, confusion_bytes);
    if (st == CO_OK && logits)
        st = run_take_logits(logits, job, logit_bytes);
    if (job->confusion)
        munmap(job->confusion, confusion_bytes);
    if (job->model->logits)
        munmap(job->model->logits, logit_bytes);
    job->model->logits = NULL;
    return st;
}

static bool run_has_classes(const co_model *model)
{
    return co_model_target(model) == CO_TARGET_LABEL && !model->positions;
}

static co_status run_evaluate(co_job *job, co_confusion *confusion, co_logits *logits,
                              const co_train_options *options, const char *weights)
{
    if (!weights)
        return co_fail(CO_E_USAGE, "the file of weights is missing (NULL)");
    CO_TRY(co_run_open(job, options, false));
    if (job->images && co_model_target(job->model) != CO_TARGET_LABEL)
        return co_fail(CO_E_USAGE, "predict is for networks that classify images; this one gives "
                                   "other values");
    if (confusion && !logits && co_model_target(job->model) != CO_TARGET_LABEL)
        return co_fail(CO_E_USAGE, "confusion matrix: for networks that classify; this one gives "
                                   "other values");
    /* The last batch, too: kernels depend on the size, and predict computes in full batches. */
    if (job->images ? job->pad_images : run_has_classes(job->model))
        job->model->pad = co_feed_test_rows(&job->spec);
    if (options->run_dir && !job->images)
        CO_TRY(co_rundir_check_data(options->run_dir, job->test));
    else if (!job->images)
        CO_TRY(co_rundir_check_weights(weights, job->test));
    CO_TRY(co_model_load(job->model, weights));
    return run_measure(job, confusion, logits, options);
}

co_status co_evaluate_classes_sized(co_eval_summary *out, size_t out_size, co_confusion *confusion,
                                    const co_train_options *given, size_t size, const char *weights)
{
    co_job job = {.quiet = true};
    co_train_options options;
    co_status st;

    CO_TRY(CO_SIZED_READ(&options, given, size, co_train_options));
    st = run_evaluate(&job, confusion, NULL, &options, weights);
    if (st == CO_OK)
        co_sized_write(out, out_size, &job.result->eval, sizeof(job.result->eval));
    co_run_close(&job);
    return st;
}

co_status co_evaluate_logits(co_eval_summary *out, co_confusion *confusion, co_logits *logits,
                             const co_train_options *options, const char *weights)
{
    co_job job = {.quiet = true};
    co_status st;

    *logits = (co_logits){0};
    st = run_evaluate(&job, confusion, logits, options, weights);
    if (st == CO_OK)
        *out = job.result->eval;
    co_run_close(&job);
    return st;
}

co_status co_predict_images(co_logits *logits, const co_image_files *images, bool full,
                            const co_train_options *options, const char *weights)
{
    co_job job = {.quiet = true, .images = images, .pad_images = full};
    co_status st;

    *logits = (co_logits){0};
    st = run_evaluate(&job, NULL, logits, options, weights);
    co_run_close(&job);
    return st;
}

void co_confusion_free(co_confusion *confusion)
{
    co_free(confusion->count);
    confusion->count = NULL;
}

void co_logits_free(co_logits *logits)
{
    co_free(logits->value);
    *logits = (co_logits){0};
}
