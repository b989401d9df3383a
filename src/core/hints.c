/*
 * hints.c - names of PyTorch, Lightning, Accelerate, DeepSpeed, Horovod and of common scripts, and
 * their equivalents here.
 *
 * A name that is valid here never gets this far. tests/cli/test_hints.c tries every path.
 */
#include "core/hints.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct hint_key {
    const char *names; /* separated by blanks */
    const char *path;  /* the key here, dotted; NULL: there is none, and `text` says why */
    const char *text;  /* with a path: an example of its value */
} hint_key;

static const hint_key hint_keys[] = {
    {"model_name net network arch architecture", "model", "resnet18"},
    {"num_classes n_classes num_labels", "model.classes", "10"},
    {"pretrained weights pretrained_weights load_from init_from", "init", "FILE.safetensors"},
    {"dataset datasets train_data train_dataset", "data", "mnist"},
    {"data_dir data_path dataroot dataset_path root data_root", "data.path", "DIR"},
    {"transform transforms augmentation augmentations", "data.augment", "horizontal-flip"},
    {"normalization mean std", "data.normalize", "{mean: 0.5, std: 0.25}"},
    {"image_size img_size input_size", "data.resize", "224"},
    {"batch_size batchsize bs train_batch_size global_batch_size", "batch", "128"},
    {"per_device_train_batch_size per_device_batch_size batch_size_per_gpu batch_size_per_rank "
     "local_batch_size micro_batch_size train_micro_batch_size_per_gpu samples_per_gpu",
     "batch_per_rank", "64"},
    {"gradient_accumulation_steps accumulate_grad_batches accumulation_steps grad_accum "
     "accum_steps iters_to_accumulate",
     "accumulate", "2"},
    {"num_epochs max_epochs n_epochs nepochs num_train_epochs total_epochs", "epochs", "10"},
    {"max_iter max_iters max_iterations iterations num_steps total_steps num_iterations "
     "train_steps",
     "max_steps", "1000"},
    {"max_time time_limit walltime", "max_seconds", "3600"},
    {"lr learning_rate base_lr init_lr initial_lr eta", "optimizer.lr", "0.1"},
    {"momentum nesterov dampening betas eps", NULL,
     "it is a key of some optimizers: `optimizer: {name: sgd, momentum: 0.9}`; see `cohort "
     "list optimizers`"},
    {"weight_decay wd l2 decay", "optimizer.weight_decay", "1e-4"},
    {"beta1 beta2 adam_beta1 adam_beta2 beta_1 beta_2", "optimizer.betas", "[0.9, 0.999]"},
    {"opt optim optimizer_name optimizer_type", "optimizer", "sgd"},
    {"scheduler lr_scheduler lr_schedule sched lr_policy", "schedule", "cosine"},
    {"warmup warmup_epochs warmup_steps num_warmup_steps lr_warmup_epochs", "schedule.warmup", "5"},
    {"milestones gamma lr_gamma step_size lr_step_size lr_steps t_max eta_min min_lr", NULL,
     "it is a matter of the schedule: `schedule: {name: step, every: 30, gamma: 0.1}`; see `cohort "
     "list schedules`"},
    {"grad_clip clip_grad clip_grad_norm max_grad_norm gradient_clip_val clip_norm "
     "gradient_clipping max_norm",
     "clip.norm", "1.0"},
    {"clip_value clip_grad_value", "clip.value", "0.5"},
    {"criterion loss_fn loss_function objective", "loss", "cross_entropy"},
    {"label_smoothing smoothing", "loss.label_smoothing", "0.1"},
    {"random_seed manual_seed rng_seed", "seed", "1234"},
    {"deterministic cudnn_deterministic use_deterministic_algorithms", NULL,
     "runs of one config, seed and number of ranks give the same bits in any case; with `shards: "
     "8` they do for 1 to 8 ranks"},
    {"num_workers workers n_workers num_dataloader_workers dataloader_num_workers",
     "loader.threads", "2"},
    {"prefetch prefetch_factor", "loader.depth", "4"},
    {"pin_memory persistent_workers", NULL, "there is nothing to set; see `loader`"},
    {"shuffle", NULL, "training data is put in a new order in every epoch, by `seed`"},
    {"drop_last", NULL,
     "no sample is left out: a last batch may be smaller, and its mean is weighted right"},
    {"sampler distributed_sampler", "partition", "interleaved"},
    {"world_size nproc_per_node nproc nprocs num_processes num_procs n_procs gpus num_gpus n_gpus "
     "ngpus devices num_devices np",
     "ranks", "2"},
    {"nnodes num_nodes nodes hostfile", NULL,
     "several hosts are named on the command line: `cohort train CONFIG -n 8 --mpiexec mpiexec "
     "--hosts a:4,b:4`"},
    {"rank local_rank node_rank rdzv_endpoint rdzv_backend init_method dist_url master_addr "
     "master_port dist_backend distributed distributed_backend process_group_backend "
     "multiprocessing_distributed",
     NULL, "ranks are started by -n or mpiexec, which is all they need"},
    {"accelerator cuda no_cuda gpu use_gpu use_cuda no_accel", "device", "cuda"},
    {"amp use_amp fp16 bf16 half autocast mixed_precision dtype opt_level torch_dtype "
     "keep_batchnorm_fp32",
     "precision", "bf16"},
    {"loss_scale dynamic_loss_scale grad_scaler static_loss_scale", "precision.loss_scale", "128"},
    {"compile torch_compile jit channels_last", NULL,
     "there is nothing to set: each layer gets the fastest kernel there is; see `backend`"},
    {"num_threads omp_num_threads intra_op_threads cpu_threads threads_per_rank", "threads", "1"},
    {"ddp fsdp zero zero_stage zero_optimization deepspeed horovod distribution_strategy "
     "distributed_strategy algorithm parallel",
     "strategy", "sync"},
    {"bucket_cap_mb bucket_size bucket_size_mb fusion_threshold", "strategy.bucket_mib", "4"},
    {"compression compressor gradient_compression comm_hook", "strategy.compress", "bf16"},
    {"staleness max_staleness staleness_bound", NULL,
     "it is a key of a strategy: `strategy: {name: stale, k: 1}`, or {name: ssp, bound: 3}"},
    {"local_steps sync_every sync_period average_every model_averaging_period inner_steps", NULL,
     "it is a key of a strategy: `strategy: {name: local, period: 16}`"},
    {"find_unused_parameters gradient_as_bucket_view static_graph broadcast_buffers", NULL,
     "there is nothing to set: a network is known whole before the first step"},
    {"sync_bn sync_batchnorm syncbn convert_sync_batchnorm", "sync_batch_norm", "true"},
    {"ema_decay model_ema_decay", "ema.decay", "0.999"},
    {"model_ema use_ema", "ema", "{}"},
    {"target_accuracy stop_accuracy", "stop_at.accuracy", "0.75"},
    {"patience early_stopping early_stop early_stopping_patience early_stop_patience",
     "stop_at.patience", "5"},
    {"validate validation val do_eval eval", "evaluate", "true"},
    {"eval_every eval_interval eval_freq val_interval val_every check_val_every_n_epoch "
     "evaluation_interval",
     "evaluate_every", "1"},
    {"log_interval print_freq logging_steps log_freq log_every_n_steps print_every log_steps "
     "steps_per_print",
     "log_every", "50"},
    {"tensorboard_dir use_tensorboard tb summary_writer", "tensorboard", "true"},
    {"checkpoint_every save_every save_interval save_freq save_steps checkpoint_interval "
     "checkpoint_freq every_n_epochs",
     "checkpoint.every", "1 epoch"},
    {"save_top_k save_total_limit keep_checkpoints max_to_keep", "checkpoint.keep", "3"},
    {"save_best save_best_only", "checkpoint.best", "true"},
    {"checkpoint_dir checkpoints_dir output_dir out_dir save_dir save_path log_dir logdir outdir "
     "run_dir default_root_dir results_dir output",
     NULL, "the command line says where results go: `cohort train CONFIG --run-dir DIR`"},
    {"resume resume_from resume_from_checkpoint ckpt_path checkpoint_path start_epoch", NULL,
     "the command line says it: `cohort train CONFIG --run-dir DIR --resume`"},
    {"elastic max_retries restart on_error fault_tolerance min_nodes", "on_failure", "shrink"},
    {"comm_timeout dist_timeout timeout_s timeout_seconds", "timeout", "300"},
    {"profile profiler use_profiler", NULL,
     "the command line says it: `cohort train CONFIG --profile`"},
    {"verbose progress_bar disable_tqdm", NULL,
     "the command line says it: `--quiet` prints nothing; `log: lines` prints lines instead of "
     "a bar"},
    {"wandb mlflow wandb_project use_wandb comet", NULL,
     "a run writes metrics.jsonl, and with `tensorboard: true` what TensorBoard reads"},
};

typedef struct hint_name {
    const char *what, *names, *text;
} hint_name;

static const char hint_whole[] =
    "every rank holds the whole network here; `sync` is what comes nearest, and with `update: "
    "parts` each rank updates its part of weights that all share";
static const char hint_sync[] = "here that is `sync`";
static const char hint_mpi[] = "it chooses kernels, not the transport of messages: ranks of one "
                               "machine share memory, those under mpiexec use MPI; leave it out";
static const char hint_amp[] = "`bf16` is for CPUs with such instructions; `O1` is Apex's and "
                               "autocast's way, in fp16";

static const hint_name hint_names[] = {
    {"strategy",
     "ddp distributed distributed_data_parallel distributeddataparallel dp data_parallel "
     "allreduce all_reduce horovod bsp mirrored multiworkermirrored ddp_spawn synchronous",
     hint_sync},
    {"strategy",
     "fsdp fully_sharded fully_sharded_data_parallel zero zero1 zero2 zero3 zero_1 zero_2 zero_3 "
     "deepspeed sharded",
     hint_whole},
    {"strategy",
     "pipeline pp tensor_parallel tp megatron model_parallel sequence_parallel expert_parallel",
     "no network is cut into pieces here; every rank holds the whole of it, and shares the data"},
    {"strategy", "async asynchronous asgd dsgd parameter_server ps downpour",
     "here that is `hogwild` (shared weights, no waiting) or `ssp` (no rank further ahead than "
     "`bound`)"},
    {"strategy", "fedavg diloco slowmo post_local post_localsgd local_sgd localsgd periodic",
     "here that is `local`, with `period`, `start` and `outer`"},
    {"strategy", "delayed pipelined dc_asgd delayed_gradient", "here that is `stale`"},
    {"optimizer", "sgdm momentum sgd_momentum msgd nag nesterov",
     "here that is `{name: sgd, momentum: 0.9}`, with `nesterov: true` for Nesterov's"},
    {"schedule", "steplr", "here that is `{name: step, every: 30, gamma: 0.1}`"},
    {"schedule", "exponential exponentiallr exp",
     "here that is `{name: step, every: 1, gamma: ...}`"},
    {"schedule", "multisteplr piecewise", "here that is `multi-step`"},
    {"schedule", "cosineannealing cosineannealinglr cosine_annealing cos cosine_decay",
     "here that is `cosine`"},
    {"schedule", "onecyclelr", "here that is `one-cycle`"},
    {"schedule", "polynomiallr poly polylr linear linear_decay linearlr",
     "here that is `polynomial`, by default a straight line to 0"},
    {"schedule", "none fixed", "here that is `constant`"},
    {"data set", "imagenet imagenet1k imagenette ilsvrc image_folder images folder",
     "folders of JPEG and PNG files are `imagefolder`"},
    {"data set", "fmnist", "here that is `fashion-mnist`"},
    {"data set", "fake fake_data fakedata random dummy",
     "made-up images are `synthetic`, made-up tokens `synthetic-tokens`"},
    {"data set", "cifar", "there are `cifar10` and `cifar100`"},
    {"backend", "gloo nccl mpi ccl ucc shm", hint_mpi},
    {"backend", "cpu torch mkl mkldnn", "`auto` takes the fastest kernel for each layer"},
    {"backend", "cuda gpu", "GPUs are asked for by `device: cuda`"},
    {"backend", "rocm mps xpu", "of GPUs there are those of NVIDIA: `device: cuda`"},
    {"level", "amp mixed autocast fp16 half float16 16 16_mixed true", hint_amp},
    {"level", "bfloat16 bf16_mixed", "here that is `bf16`"},
    {"level", "float float32 32 fp64 float64 double false none", "here there is `fp32`"},
    {"on_failure", "restart elastic continue ignore", "`respawn` puts a fresh rank in its place"},
    {"compressor", "powersgd_hook quantize onebit 1bit qsgd terngrad",
     "there are halves (`bf16`, `fp16`), the largest (`topk`) and thin matrices (`powersgd`)"},
};

static char hint_fold(char c)
{
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

bool co_hint_same(const char *a, const char *b)
{
    for (; *a && hint_fold(*a) == hint_fold(*b); a++)
        b++;
    return *a == '\0' && *b == '\0';
}

/* Whether `name` is one of the words of `names`. */
static bool hint_among(const char *names, const char *name)
{
    for (size_t n; *names; names += n + (names[n] == ' ')) {
        size_t i = 0;

        n = strcspn(names, " ");
        while (i < n && name[i] && hint_fold(name[i]) == names[i])
            i++;
        if (i == n && name[i] == '\0')
            return true;
    }
    return false;
}

static const hint_key *hint_find(const char *name)
{
    for (size_t i = 0; i < sizeof(hint_keys) / sizeof(hint_keys[0]); i++)
        if (hint_among(hint_keys[i].names, name))
            return &hint_keys[i];
    return NULL;
}

/* Layers have keys of their own kind, of which other programs' settings say nothing. */
static const char hint_owners[] = "config model data optimizer schedule strategy loader checkpoint "
                                  "clip ema init stop_at precision partition test_partition";

const char *co_hint_key(char out[CO_HINT_TEXT], const char *what, const char *name)
{
    const hint_key *hint = hint_find(name);
    const size_t owner = strcspn(what, " ");
    const bool top = strcmp(what, "config") == 0;
    char word[32];
    const char *dot;
    size_t section;

    snprintf(word, sizeof(word), "%.*s", (int)owner, what);
    if (!hint || !hint_among(hint_owners, word))
        return NULL;
    dot = hint->path ? strchr(hint->path, '.') : NULL;
    section = dot ? (size_t)(dot - hint->path) : 0;
    if (!hint->path)
        snprintf(out, CO_HINT_TEXT, "%s", hint->text);
    else if (!dot)
        snprintf(out, CO_HINT_TEXT, "%s `%s: %s`", top ? "here it is" : "at the top of a config is",
                 hint->path, hint->text);
    else if (section == owner && strncmp(hint->path, what, owner) == 0)
        snprintf(out, CO_HINT_TEXT, "here it is `%s: %s`", dot + 1, hint->text);
    else
        snprintf(out, CO_HINT_TEXT, "here it is a key of `%.*s`: `%.*s: {%s: %s}`", (int)section,
                 hint->path, (int)section, hint->path, dot + 1, hint->text);
    return out;
}

bool co_hint_option(const char **path, const char **text, const char *name)
{
    const hint_key *hint = hint_find(name);

    *path = hint ? hint->path : NULL;
    *text = hint ? hint->text : NULL;
    return hint != NULL;
}

const char *co_hint_name(const char *what, const char *name)
{
    for (size_t i = 0; i < sizeof(hint_names) / sizeof(hint_names[0]); i++)
        if (strcmp(hint_names[i].what, what) == 0 && hint_among(hint_names[i].names, name))
            return hint_names[i].text;
    return NULL;
}
