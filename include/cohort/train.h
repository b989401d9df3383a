/*
 * train.h - models, optimizers and training, for programs.
 *
 * Two levels. co_train does what `cohort train CONFIG` does. Below it, a program writes its own
 * loop: model, distributed optimizer, forward, backward, step (examples/train.c). Functions
 * ..._sized are what the inline ones call: see version.h.
 *
 * Threads: a model and a distributed optimizer belong to one thread at a time; several of them may
 * be used at once. co_train, co_evaluate and co_bench_train fork ranks: they are called while no
 * other thread holds a lock that a rank would need, best while there is none.
 */
#ifndef COHORT_TRAIN_H
#define COHORT_TRAIN_H

#include <cohort/comm.h>
#include <cohort/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model: a network, its weights, and a step on one batch ---- */

typedef struct co_model co_model;

typedef struct co_model_options {
    const char *model; /* config text: "mnist-net", "{name: mlp, hidden: [128]}", or layers */
    const char *loss;  /* config text or NULL */
    /* NULL: "auto", the fastest for each layer; "cpu", our own alone; "onednn"; "ref" */
    const char *backend;
    const char *precision;   /* config text or NULL: fp32. "bf16", "{level: O2, dtype: bf16}" */
    bool direct_convolution; /* no Winograd: slower, and closer to the definition */
    /** Keep only what goes into each block of the network, such as those of ResNets and
     *  transformers, and compute the rest again in the backward pass: the same bits from less
     *  memory. CO_E_USAGE if the network has no blocks. */
    bool recompute;
    int threads;     /* cores of this rank; 0: 1 */
    co_shape sample; /* (C, H, W) of images; (T) of tokens; of other arrays any */
    int64_t classes; /* of a language model: tokens that there are */
    uint64_t seed;   /* of the initial weights and of dropout: the same on all ranks */
} co_model_options;

CO_API co_status co_model_create_sized(co_model **out, const co_model_options *options,
                                       size_t size);
static inline co_status co_model_create(co_model **out, const co_model_options *options)
{
    return co_model_create_sized(out, options, sizeof(*options));
}
CO_API void co_model_destroy(co_model *model);
/** Trained elements. */
CO_API uint64_t co_model_parameter_count(const co_model *model);
/** Weights and running statistics from a safetensors file of F32, F64 (rounded), F16 or BF16.
 * Strict: CO_E_DATA lists what is missing, unexpected or of another shape, and then the model is as
 * it was. PyTorch's `num_batches_tracked` of a batch norm may be there or not. Values are not
 * looked at: a NaN in the file is a NaN in the model. */
CO_API co_status co_model_load(co_model *model, const char *path);
CO_API co_status co_model_save(const co_model *model, const char *path);
/** Weights and running statistics of rank `root` to all. */
CO_API co_status co_model_broadcast(co_model *model, co_comm *comm, int root);

/** A tensor of a model: a parameter, or a buffer. */
typedef struct co_parameter {
    const char *name; /* "conv1.weight", as in files of weights; the model's */
    co_dtype dtype;   /* CO_F32 */
    co_shape shape;
    bool buffer; /* running statistics: kept and saved, not trained */
    bool frozen; /* co_model_freeze */
} co_parameter;

/** Tensor i, in the order of building, which is that of PyTorch's state_dict; false after the last.
 */
CO_API bool co_model_parameter(co_parameter *out, const co_model *model, size_t i);
/** Copy the values of a tensor to `out`, or from `values`: row-major, as many elements as `shape`
 *  says; both stay the caller's. CO_E_USAGE: there is none of that name, or its type or shape is
 *  another. Between steps, not between forward and step. With several ranks all of them set the
 *  same, or one does and co_model_broadcast follows. What the optimizer keeps of the parameter
 *  (momentum) is left as it is. */
CO_API co_status co_model_get_parameter(void *out, const co_model *model, const char *name,
                                        co_dtype dtype, const co_shape *shape);
CO_API co_status co_model_set_parameter(co_model *model, const char *name, co_dtype dtype,
                                        const co_shape *shape, const void *values);
/** Freeze, or train again, the parameters whose name, or a layer above, matches a pattern of
 *  fnmatch(3): "layer1", "layer[12].*.bn?", "*.bias". A frozen parameter has no update, weight
 *  decay included, and no part in the norm of the gradient; the others move as with PyTorch's
 *  requires_grad = False. The optimizer counts each parameter's own updates. Batch norm still
 *  updates its running statistics. CO_E_USAGE: the pattern matches nothing. Between steps, on all
 *  ranks alike; with a strategy under which ranks hold the same weights, else the next step
 *  fails. */
CO_API co_status co_model_freeze(co_model *model, const char *pattern, bool frozen);

/** Statistics of batch norm over the batches of all ranks of `comm`, which is borrowed; NULL: of
 *  this rank alone again. Forward in training mode and backward are then collective: all ranks
 *  call them equally often, also with a batch of no samples. */
CO_API void co_model_sync_batch_norm(co_model *model, co_comm *comm);

/** Results of forward on this rank's samples: sums, so that they add up over ranks. */
typedef struct co_result {
    uint64_t count; /* samples; of sequences with a label for each position, those positions */
    double loss_sum;
    uint64_t correct;  /* top-1; of labels that are there or not, samples with all of them right; of
                          values 0 */
    uint64_t correct5; /* top-5; equals count with 5 classes or fewer; 0 without classes */
} co_result;

CO_API co_status co_model_forward_sized(co_result *out, co_model *model, const co_batch *batch,
                                        size_t size);
CO_API co_status co_model_evaluate_sized(co_result *out, co_model *model, const co_batch *batch,
                                         size_t size);
/** Forward in training mode on `batch`, whose `count` may be 0. */
static inline co_status co_model_forward(co_result *out, co_model *model, const co_batch *batch)
{
    return co_model_forward_sized(out, model, batch, sizeof(*batch));
}
/** Forward in evaluation mode: no dropout, running statistics. It takes the place in memory of
 *  what the last forward has left for backward. */
static inline co_status co_model_evaluate(co_result *out, co_model *model, const co_batch *batch)
{
    return co_model_evaluate_sized(out, model, batch, sizeof(*batch));
}
/** Logits of `count` samples, (count, C, H, W) normalised as in training, into (count, classes):
 * the output of the network before the loss, log-probabilities where it ends with log_softmax.
 * Values of `input` are not checked: a NaN or an infinity mostly gives NaN logits. Evaluation mode,
 * this rank alone; like co_model_evaluate not between forward and backward. CO_E_USAGE: a network
 * of tokens. */
CO_API co_status co_model_predict(float *out, co_model *model, const float *input, uint64_t count);
/** The same of a network of tokens, such as a language model: logits of `count` sequences of
 *  `length` tokens each, (count, length), into (count, length, classes). Row t of a sequence is of
 *  what comes after its tokens 0 to t, so row length - 1 is of the token that follows. `length` is
 *  from 1 to that of co_model_options.sample; a shorter sequence has the logits with which a longer
 *  one begins, to the bit, and takes as long. CO_E_USAGE: a token that the network does not know,
 *  a length that it does not take, a network of values. One that gives no logits at each
 *  position, into (count, classes), or that looks at later positions takes whole sequences alone.
 *  Beside `out` it needs memory for the logits of `count` whole sequences. */
CO_API co_status co_model_predict_tokens(float *out, co_model *model, const int32_t *token,
                                         uint64_t count, int64_t length);
/** Prepare a language model to write: from now on it is for co_model_next alone, which keeps the
 *  keys and values of attention of one sequence, so that a further token does not cost the whole
 *  sequence again. Weights can still be loaded and set; co_model_next then begins at position 0.
 *  CO_E_USAGE: it does not predict a token at each position, or looks at later ones. */
CO_API co_status co_model_decode(co_model *model);
/** Read `count` >= 1 tokens at `position` (from 0) and after it, and write the logits of what
 *  follows the last of them, (classes), to `out`. All positions before `position` have been read;
 *  those from there on are read anew, so a lower position goes back. The last position is that of
 *  co_model_options.sample less 1. Logits are those of co_model_predict_tokens up to rounding. Each
 *  `count` that has been used keeps memory: cut a long text into blocks of few sizes. CO_E_USAGE: a
 *  token that the network does not know, positions that are not its own or were left out. */
CO_API co_status co_model_next(float *out, co_model *model, const int32_t *token, uint64_t count,
                               int64_t position);

/* ---- a distributed optimizer: a strategy, an optimizer, a schedule ---- */

typedef struct co_distributed co_distributed;

typedef struct co_distributed_options {
    co_model *model;                       /* borrowed */
    co_comm *comm;                         /* borrowed */
    const co_tree *tree;                   /* borrowed; NULL: none. Else the batch is cut into as
                                              many shards as it has leaves, of which each rank
                                              computes its own in turn; the bits of all sums then
                                              depend on the shards, and not on the ranks */
    const char *optimizer;                 /* config text: "{name: sgd, lr: 0.01, momentum: 0.5}" */
    const char *schedule;                  /* config text or NULL: constant */
    const char *strategy;                  /* config text or NULL: sync */
    double clip_norm, clip_value;          /* 0: none; not negative */
    uint64_t steps_per_epoch, total_steps; /* for the schedule; 0 where it does not care */
    uint64_t batch;                        /* samples of a step, for lr_batch; 0: not known */
} co_distributed_options;

CO_API co_status co_distributed_create_sized(co_distributed **out,
                                             const co_distributed_options *options, size_t size);
/** Starts the strategy: collective. */
static inline co_status co_distributed_create(co_distributed **out,
                                              const co_distributed_options *options)
{
    return co_distributed_create_sized(out, options, sizeof(*options));
}
CO_API void co_distributed_destroy(co_distributed *distributed);
CO_API co_status co_distributed_backward_sized(co_distributed *distributed, const co_batch *batch,
                                               size_t size, bool more);
/** Backward of the model's last forward, once; gradients are sent as they become final. `more`:
 *  further micro-batches of the same step follow, so gradients are only accumulated. CO_E_USAGE
 *  after one without it in the same step, and without it for a shard that is not the rank's last.
 */
static inline co_status co_distributed_backward(co_distributed *distributed, const co_batch *batch,
                                                bool more)
{
    return co_distributed_backward_sized(distributed, batch, sizeof(*batch), more);
}
/** With a tree, after each shard of this rank except the last; `more` was true for it. A shard may
 *  have no samples. CO_E_USAGE here or in the step: the rank has another number of shards. */
CO_API co_status co_distributed_next_shard(co_distributed *distributed);
/** Wait for the gradients, clip, update the weights. With a loss scale (co_model_options.precision)
 *  a step whose gradients overflow is skipped: on all ranks, where their replicas are in sync; on
 *  this one, where each has weights of its own. */
CO_API co_status co_distributed_step(co_distributed *distributed);
/** Whether the last step was skipped; the number of such steps; the loss scale of the next one, 1:
 *  none. */
CO_API bool co_distributed_skipped(const co_distributed *distributed);
CO_API uint64_t co_distributed_skipped_steps(const co_distributed *distributed);
CO_API double co_distributed_loss_scale(const co_distributed *distributed);
/** After the last step, before co_distributed_destroy: the strategy's final synchronization.
 *  Collective. */
CO_API co_status co_distributed_finish(co_distributed *distributed);
/** Learning rate of the last step. */
CO_API double co_distributed_lr(const co_distributed *distributed);

/* ---- the whole run ---- */

/** A step that is complete, as one rank sees it. */
typedef struct co_step_info {
    size_t size;    /* of this struct in the library */
    uint64_t step;  /* steps of the run so far */
    uint64_t epoch; /* from 0 */
    int rank, ranks;
    double loss;     /* mean over this rank's samples, with `shards` over all; NaN: no sample */
    double lr;       /* learning rate of the step */
    co_model *model; /* borrowed: to be looked at, not changed */
} co_step_info;

/** True: stop the run. */
typedef bool (*co_step_fn)(void *arg, const co_step_info *info);

typedef struct co_train_options {
    const char *config_path; /* NULL: config_text */
    const char *config_text;
    const char *const *set; /* "key=value", ended by NULL; or NULL */
    int ranks;              /* 0: the config's */
    const char *run_dir;    /* NULL: runs/<model>-<date>-<time>; of co_evaluate the run that the
                               weights are of, with whose characters and classes the data is
                               compared; NULL: with none */
    bool quiet;             /* no console */
    bool resume;      /* from the last good checkpoint of run_dir; with none, from the start */
    bool utilization; /* co_bench_train: measure what the cores can do, too, a fifth of a second */
    uint64_t profile_steps; /* steps of which each rank notes where their time goes; 0: none */
    uint64_t profile_skip;  /* steps before the first of them */
    const char *notes; /* for a rank under MPI whose job `cohort train --mpiexec` watches: folder in
                          which it notes how it ends; NULL: none */
    /** Called after each step on every rank, in its process or thread: what it writes to memory the
     *  caller of co_train sees only if that is shared. Where it returns true on any rank, all stop
     *  after this step, and the run ends there as after its last step: evaluated and saved;
     *  summary.json has `stopped_by: callback`. Resumed, it continues. Ranks wait for each other
     *  after each step to know. NULL: none. */
    co_step_fn on_step;
    void *on_step_arg; /* borrowed */
} co_train_options;

#define CO_MAX_METRICS 16 /* that a config may ask for */

/** One of them, over the test split; NaN where it is not defined. */
typedef struct co_metric_value {
    char name[32];
    double value;
} co_metric_value;

/** NaN: nothing was measured, such as the loss of an epoch of which every step overflowed, or the
 *  test figures without `evaluate`. */
typedef struct co_train_summary {
    double test_accuracy, test_loss, train_accuracy, train_loss, train_seconds, samples_per_second;
    uint64_t steps;
    bool stopped; /* in good order before its end: nothing but steps and run_dir counts */
    char weights_sha256[65];
    char run_dir[1024];
    size_t n_metric; /* of the config's `metrics`; 0 without `evaluate` */
    co_metric_value metric[CO_MAX_METRICS];
} co_train_summary;

CO_API co_status co_train_sized(co_train_summary *out, size_t out_size,
                                const co_train_options *options, size_t size);
/** Launch ranks and train; `out` may be NULL. CO_E_FAILED: training has diverged, or no step moved
 *  the weights, as the gradients overflowed in all of them. CO_E_DATA: a sample cannot be read, or
 *  has a value that is not finite, and so the loss is not. */
static inline co_status co_train(co_train_summary *out, const co_train_options *options)
{
    return co_train_sized(out, sizeof(*out), options, sizeof(*options));
}

typedef struct co_eval_summary {
    uint64_t count; /* samples of the test split */
    double loss, accuracy;
    double accuracy_top5; /* -1 with 5 classes or fewer */
    size_t n_metric;      /* of the config's `metrics` */
    co_metric_value metric[CO_MAX_METRICS];
    uint64_t positions; /* of all samples, where each position has a label; else 0 */
} co_eval_summary;

#define CO_EVAL_MAX_CLASSES 4096

/** Confusion matrix. */
typedef struct co_confusion {
    int64_t classes;
    int64_t *count; /* (classes, classes): row label, column the predicted class */
} co_confusion;

CO_API co_status co_evaluate_classes_sized(co_eval_summary *out, size_t out_size,
                                           co_confusion *confusion, const co_train_options *options,
                                           size_t size, const char *weights);
/** Measure weights from a safetensors file on the test split of a config's data. */
static inline co_status co_evaluate(co_eval_summary *out, const co_train_options *options,
                                    const char *weights)
{
    return co_evaluate_classes_sized(out, sizeof(*out), NULL, options, sizeof(*options), weights);
}
/** As co_evaluate; also the confusion matrix. CO_E_USAGE where the network does not classify. */
static inline co_status co_evaluate_classes(co_eval_summary *out, co_confusion *confusion,
                                            const co_train_options *options, const char *weights)
{
    return co_evaluate_classes_sized(out, sizeof(*out), confusion, options, sizeof(*options),
                                     weights);
}
CO_API void co_confusion_free(co_confusion *confusion);

typedef struct co_bench_summary {
    int ranks, rounds;
    uint64_t batch, steps;        /* of one round */
    double samples_per_second[3]; /* minimum, median, maximum over rounds */
    double step_ms[3];            /* the same, of one step */
    double start_seconds;         /* process start to the end of the first step */
    double data_wait_share;       /* of the step time */
    uint64_t peak_memory_bytes;   /* the host's, resident, of the rank that held most */
    /** Floating-point operations of the network by definition, forward and backward, without what
     *  is computed twice. */
    double model_flops_per_second;
    /** That as a part of what the cores of all ranks can do, measured after the rounds (MFU:
     *  Chowdhery et al., arXiv:2204.02311). 0: not on the CPU, or not asked for. */
    double model_flops_utilization;
    /** Memory of its GPU that a rank allocated at once, of the rank that held most. Without what
     * the driver and NVIDIA's libraries take for themselves. 0: on the CPU. */
    uint64_t peak_device_memory_bytes;
} co_bench_summary;

CO_API co_status co_bench_train_sized(co_bench_summary *out, size_t out_size,
                                      const co_train_options *options, size_t size, uint64_t warmup,
                                      uint64_t steps, int rounds);
/** Time training steps: `warmup` steps, then `rounds` times `steps` steps. Nothing is written. */
static inline co_status co_bench_train(co_bench_summary *out, const co_train_options *options,
                                       uint64_t warmup, uint64_t steps, int rounds)
{
    return co_bench_train_sized(out, sizeof(*out), options, sizeof(*options), warmup, steps,
                                rounds);
}

#ifdef __cplusplus
}
#endif
#endif
