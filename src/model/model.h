/* model.h - a network with its weights. */
#ifndef CO_MODEL_MODEL_H
#define CO_MODEL_MODEL_H

#include <cohort/ext/kernel.h>
#include <cohort/safetensors.h>
#include <cohort/train.h>

#include "core/config.h"
#include "device/images.h"
#include "graph/plan.h"
#include "metrics/metrics.h"
#include "model/precision.h"
#include "optim/optim.h"

#define CO_MODEL_MAX_LATE   64 /* micro-batches per step on a device, of all shards */
#define CO_MODEL_LATE_STEPS 32 /* steps whose results may be in flight */

/* A plan for one batch size; a model keeps one for each size it has seen. */
typedef struct model_plan {
    co_plan *plan;      /* owned */
    int64_t logit_rows; /* of its options */
    struct model_plan *next;
} model_plan;

/* A micro-batch on a device, and its results, copied from there (late.c). */
typedef struct model_late {
    void *staged; /* owned, on the device; (staged_bytes): indices of samples, then fields */
    size_t staged_bytes;
    void *memory; /* owned, pinned; (bytes) */
    size_t bytes;
    void *wanted; /* owned; (wanted_bytes): its labels or targets, where the host counts */
    size_t wanted_bytes;
    uint64_t count; /* samples */
} model_late;

struct co_model {
    co_config *config; /* owned if `owns_config`: holds the attributes of the layers */
    bool owns_config;
    co_graph *graph; /* owned */
    co_store *store; /* owned */
    const co_backend *const *backends;
    co_plan_pick *pick; /* owned, (nodes): kernels of layers (model/kernels.h); NULL: none */
    int threads;        /* for its layers; 0: not set yet */
    bool direct_convolution, recompute;
    bool whole_logits;                 /* of all positions at once, for who reads them */
    bool backward_next, backward_adds; /* co_model_announce */
    uint64_t backward_samples;
    co_precision precision;
    uint64_t seed;
    co_comm *norm_comm; /* borrowed; ranks that share batch statistics; NULL: this rank alone */
    uint64_t freezes;   /* counts changes of frozen parameters */
    uint64_t moves;     /* counts changes of memory that queued work names */
    bool given;         /* initial weights came from a file, not from the seed */
    int64_t classes;    /* logits per sample, or position */
    int64_t positions;  /* of a sample, if it is a sequence with a label for each; else 0 */
    int64_t *confusion; /* borrowed; evaluation adds to it (co_metrics_confuse); NULL: not wanted */
    float *logits; /* borrowed: evaluation writes those of sample i to row i; NULL: not wanted */
    uint64_t pad;  /* evaluation: zeros up to so many samples, so that kernels are those of a full
                      batch; 0: none */
    const co_metric_set *metrics; /* borrowed; accumulated in each forward; NULL: none */
    co_sum *metric_sums;          /* owned, (n_sum): of the last forward */
    model_plan *plans[2];         /* lists: evaluation, training */
    model_late *late;    /* owned, (CO_MODEL_LATE_STEPS, CO_MODEL_MAX_LATE); NULL: none yet */
    void *found;         /* owned, on the device: what it counts */
    co_plan_block block; /* memory of all plans */
    struct co_profiler *profiler; /* borrowed; NULL: no profiling */
    int64_t decode;               /* positions kept where it decodes (decode.h); else 0 */
    int64_t read;                 /* positions that it has read then */
    float **kept;                 /* owned, and each: (n_node) co_decoding.kept; NULL: none */
    co_plan *last; /* plan of the last training forward, until its memory is overwritten; NULL:
                      none, or no samples */
    bool spent;    /* a backward has overwritten what that forward left for it */
};

/* co_model_options as config values; borrowed. */
typedef struct co_model_values {
    const co_value *model, *layers, *loss, *precision;
    co_config *config;
    const co_value *kernels; /* of layers (co_kernels.layers); NULL: none */
} co_model_values;

/* Without co_model_setup, because a launcher creates the model before it knows the ranks, and with
   weights of 0: who only looks at a network, or loads a file, has no use for others. */
co_status co_model_create_from(co_model **out, const co_model_values *values,
                               const co_model_options *options);
/* Initial weights, by the seed. */
co_status co_model_draw(co_model *model);
/* Set the number of threads for its layers, at least one. */
void co_model_setup(co_model *model, int threads);

/* Move weights and running statistics to `device` and use `backends` (NULL-terminated) from now on.
   Call it in a rank, before anything else uses them. Both are borrowed. */
co_status co_model_move(co_model *model, co_device *device, const co_backend *const *backends);

/* The plan for `batch` samples, made if there is none yet. Borrowed until the next one is made. */
co_status co_model_plan(co_plan **out, co_model *model, uint64_t batch, bool training);

/* How its plans are compiled, but for their memory. */
co_plan_options co_model_plan_options(const co_model *model, int64_t batch, bool training);

/* Set the values of a step that the network reads, without sending them. */
void co_model_give_values(const co_model *model, const co_batch *batch);
/* If results are read later, set bad_loss of the step's values unless all `count` losses of the
   plan's last forward are finite. */
void co_model_check_loss(const co_model *model, const co_plan *plan, uint64_t count);

/* Micro-batch `part` of a step whose results are read later, to memory of the device: checked, and
   copied on `queue`, one of its device; with `images`, drawn there from them. `step` says which of
   CO_MODEL_LATE_STEPS slots to use; the device has done what the slot held before. All memory is
   taken that the forward needs. */
co_status co_model_stage(co_model *model, const co_batch *batch, const co_images *images,
                         co_queue *queue, int step, uint64_t part);
/* Its training forward, after the copies. All of it is queued, and the same for all batches of one
   size as long as model->moves stays. */
co_status co_model_forward_late(co_model *model, const co_batch *batch, int step, uint64_t part);
/* The result of co_model_forward_late; call it when the device has run that. */
void co_model_take_late(co_result *out, co_model *model, int step, uint64_t part);
/* Free the slots; no copy may be in flight. */
void co_model_drop_late(co_model *model);
/* co_run.reduce over the ranks of norm_comm; `model` is a co_model. */
co_status co_model_reduce(void *model, double *v, size_t n);
/* With batch statistics over ranks, a rank without samples runs the same plan as the others on a
   sample that does not count, so that it takes part in every reduction. */
co_status co_model_phantom_forward(co_model *model, const co_batch *batch);
/* As co_model_evaluate; with `images` the input is drawn from them, as in co_model_stage. */
co_status co_model_evaluate_drawn(co_result *out, co_model *model, const co_batch *batch,
                                  const co_images *images);
/* Shared parts of the above: the forward of a batch that has been checked and has samples, in
   memory of the host or the device; counting. */
co_status co_model_compute(co_plan **out, co_model *model, const co_batch *batch,
                           const co_images *images, bool training);
void co_model_count(co_result *out, co_model *model, const float *score, const float *loss,
                    const co_batch *batch, bool training);

/* What the network is a function of. */
const co_graph_input *co_model_input(const co_model *model);
/* Its output for `count` > 0 samples that have no labels, borrowed until the next use of a plan.
   `decoding`: NULL, or of a model that decodes, whose samples are positions. */
co_status co_model_outputs(const float **out, co_model *model, const void *input, uint64_t count,
                           const co_decoding *decoding);

/* Check that samples have the fields that the network takes; CO_E_USAGE names what is missing. */
co_status co_model_check_data(const co_model *model, const co_dataset *dataset);
/* The same for one input of the graph; `owner` is the prefix of the message. */
co_status co_model_check_form(const co_model *model, const co_field *field,
                              const co_graph_input *input, const char *owner);
/* Whether the model takes whole samples, and `count` of them are few enough for sizes in bytes not
   to overflow. */
co_status co_model_check_count(const co_model *model, uint64_t count);
/* Whether the arrays of a batch, perhaps a program's own, have the right types and shapes, and
   labels are below the number of classes. With `images` it needs no input. */
co_status co_model_check_batch(const co_model *model, const co_batch *batch,
                               const co_images *images, bool training);
/* Whether whole numbers for one input of the graph, tokens or labels, are some that the network
   knows; `owner` is the prefix of the message. */
co_status co_model_check_indices(const co_model *model, const co_graph_input *input,
                                 const int32_t *value, uint64_t count, const char *owner);
/* Shape of one sample of an input, and bytes of `count` of them. */
co_shape co_model_input_shape(const co_model *model, int var);
size_t co_model_input_bytes(const co_model *model, const co_graph_input *input, uint64_t count);
/* From now on each forward stores the sums of these metrics in model->metric_sums. The set is
   borrowed, must fit the network, and may be empty. */
co_status co_model_measure(co_model *model, const co_metric_set *set);
/* What metrics are told of its outputs. */
co_metric_form co_model_form(const co_model *model);
/* Whether its outputs are enough for a top-5 accuracy. */
bool co_model_has_top5(const co_model *model);
/* Rows of logits of `count` samples: their number, or that of their positions. */
uint64_t co_model_rows(const co_model *model, uint64_t count);
/* What the loss compares with. It defines accuracy: none for values. */
co_target co_model_target(const co_model *model);
/* Shape of one sample's input, and its number of elements. */
co_shape co_model_sample(const co_model *model);
size_t co_model_sample_size(const co_model *model);
/* Whether training computes the logits of its positions in parts: of a language model with a large
   vocabulary, on the host, unless someone reads them. */
bool co_model_has_parts(const co_model *model);
/* Say that the next forward is followed by the backward pass of the same batch with this
   `accumulate` and co_batch.global, so that it may compute some of the gradients itself. */
void co_model_announce(co_model *model, const co_batch *batch, bool accumulate);
/* Before the plan's forward: what was announced, with the scale of gradients of that backward. */
co_status co_model_pass_on(co_model *model, co_plan *plan);
/* How many positions have their logits in memory at once; 0: all. */
int64_t co_model_logit_rows(const co_model *model);
/* Backward of the last forward; `accumulate`: add to the gradients of earlier micro-batches. */
co_status co_model_backward(co_model *model, const co_batch *batch, bool accumulate,
                            co_ready_fn ready, void *arg);

/* Plans hold pointers into the store, so they must be dropped when its arrays have moved. */
void co_model_drop_plans(co_model *model);

/* Weights and running statistics as the named tensors of a file, in construction order, in one
   allocation. Where the host cannot access the store, or files have another order, they are a copy.
 */
co_status co_model_tensors(co_named_tensor **out, size_t *n, const co_model *model);
/* Freeze what a config's `freeze` names: a pattern or a list of them; NULL: nothing. */
co_status co_model_freeze_value(co_model *model, const co_value *value);
/* The positions of the trainable tensors in the store, in store order, in one allocation. */
co_status co_model_segments(co_segment **out, size_t *n, const co_model *model);

/* Metadata keys of a weights file: the sizes of a sample ("3,32,32": channels, height and width of
   an image), and the number of logits. */
#define CO_MODEL_SAMPLE_KEY  "cohort.sample"
#define CO_MODEL_CLASSES_KEY "cohort.classes"
/* Write (3, 32, 32) as "3,32,32". */
void co_model_format_sizes(char *out, size_t size, const co_shape *shape);

/* The tensor named PREFIX + the parameter's name, or its alias if the file lacks that; NULL
   if it has neither. */
const co_named_tensor *co_param_find(const co_safetensors *file, const char *prefix,
                                     const co_param *param);

/* Names of layers; each includes the layers below it: "layer4" covers "layer4.0.conv1". */
typedef struct co_layer_names {
    size_t n;
    const char *const *name;
} co_layer_names;

/* Like co_model_load, but the layers `fresh` (NULL: none) keep their values, and the file's tensors
   for them are ignored. */
co_status co_model_load_except(co_model *model, const char *path, const co_layer_names *fresh);
/* The same from an open file; messages call it `name`. */
co_status co_model_load_from(co_model *model, const co_safetensors *file, const char *name,
                             const co_layer_names *fresh);

#endif
