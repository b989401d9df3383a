/*
 * model.h - a network with its weights, for the rest of src/train.
 */
#ifndef CO_MODEL_MODEL_H
#define CO_MODEL_MODEL_H

#include <cohort/ext/kernel.h>
#include <cohort/safetensors.h>
#include <cohort/train.h>

#include "core/config.h"
#include "graph/plan.h"
#include "metrics/metrics.h"
#include "model/precision.h"
#include "optim/optim.h"

#define CO_MODEL_MAX_LATE 64 /* micro-batches of a step on a device */

/* A compiled batch size; a model keeps one plan for each it has met. */
typedef struct model_plan {
    co_plan *plan; /* owned */
    struct model_plan *next;
} model_plan;

/* Logits and losses of a micro-batch, on their way from a device. */
typedef struct model_late {
    void *memory; /* owned, pinned */
    size_t bytes;
} model_late;

struct co_model {
    co_config *config; /* owned if `owns_config`: holds the attributes of the layers */
    bool owns_config;
    co_graph *graph; /* owned */
    co_store *store; /* owned */
    const co_backend *const *backends;
    int threads; /* cores for its layers; 0: not said yet */
    bool direct_convolution;
    co_precision precision;
    uint64_t seed;
    co_comm *norm_comm; /* borrowed; batch statistics are of its ranks; NULL: of this one */
    uint64_t freezes;   /* changes of what is frozen */
    bool given;         /* its initial weights come from a file, not from the seed */
    int64_t classes;    /* logits per sample */
    int64_t *confusion; /* borrowed: evaluation counts into it (co_metrics_confuse); NULL: no */
    const co_metric_set *metrics;       /* borrowed; of each forward; NULL: none */
    co_sum *metric_sums;                /* owned, (n_sum): of the last forward */
    model_plan *plans[2];               /* lists: evaluation, training */
    model_late late[CO_MODEL_MAX_LATE]; /* unused on the host */
    co_plan_block block;                /* where all of them lie */
    struct co_profiler *profiler;       /* borrowed; watches the plans; NULL: nobody does */
    co_plan *last; /* of a training forward that nothing has overwritten since; NULL:
                      there is none, or it had no samples */
};

/* The same as co_model_options with values of a config, which is borrowed. */
typedef struct co_model_values {
    const co_value *model, *layers, *loss, *precision;
    co_config *config;
} co_model_values;

/* Without co_model_setup, so that a launcher can make the model before it knows its ranks. */
co_status co_model_create_from(co_model **out, const co_model_values *values,
                               const co_model_options *options);
/* Let its layers use `threads` cores, at least one. */
void co_model_setup(co_model *model, int threads);

/* Weights and running statistics to `device`, in a rank, before anyone else uses them; `backends`,
   which work there and are ended by NULL, run the network from now on. Both are borrowed. */
co_status co_model_move(co_model *model, co_device *device, const co_backend *const *backends);

/* The plan of training micro-batches of `batch` samples, made if there is none yet. Borrowed until
   the next one is made. */
co_status co_model_training_plan(const co_plan **out, co_model *model, uint64_t batch);

/* Where the host does not look at once, bad_loss of the step's values: whether all `count` losses
   of the plan's last forward are finite. */
void co_model_check_loss(const co_model *model, const co_plan *plan, uint64_t count);

/* Training forward whose results are taken later: of as many micro-batches as a step has, each in a
   `slot` from 0 on. */
co_status co_model_forward_late(co_model *model, const co_batch *batch, int slot);
/* Until all is done that the device has been given, while `comm` advances (co_comm_wait_fence). */
co_status co_model_wait(const co_model *model, co_comm *comm);
/* What co_model_forward would have given, on the same batch, once that has returned. */
void co_model_take_late(co_result *out, co_model *model, const co_batch *batch, int slot);
/* Frees what the two have kept; nothing is on its way. */
void co_model_drop_late(co_model *model);
/* Parts of the above. `out` NULL: nothing is waited for nor counted. */
co_status co_model_run_forward(co_result *out, co_model *model, const co_batch *batch,
                               bool training);
void co_model_count(co_result *out, co_model *model, const float *score, const float *loss,
                    const co_batch *batch, bool training);

/* Whether samples of the data set have the fields that the network takes; CO_E_USAGE says which it
   lacks. */
co_status co_model_check_data(const co_model *model, const co_dataset *dataset);
/* The same for one input of the graph; `owner` begins the message. */
co_status co_model_check_form(const co_model *model, const co_field *field,
                              const co_graph_input *input, const char *owner);
/* The shape of one sample of an input. */
co_shape co_model_input_shape(const co_model *model, int var);
/* From here on every forward leaves the sums of these metrics in model->metric_sums; the set fits
   the network, is borrowed, and may be empty. */
co_status co_model_measure(co_model *model, const co_metric_set *set);
/* What the loss compares with: it decides what an accuracy is, of values none. */
co_target co_model_target(const co_model *model);
/* The shape of one sample's input, and its elements. */
co_shape co_model_sample(const co_model *model);
size_t co_model_sample_size(const co_model *model);
/* Backward of the last forward; `accumulate`: add to the gradients of earlier micro-batches. */
co_status co_model_backward(co_model *model, const co_batch *batch, bool accumulate,
                            co_ready_fn ready, void *arg);

/* Plans hold pointers into the store: when its arrays have moved, they are made anew. */
void co_model_drop_plans(co_model *model);

/* Weights and running statistics as named tensors in one allocation, in order of building; of a
   store that the host may not touch, as they are now. */
co_status co_model_tensors(co_named_tensor **out, size_t *n, const co_model *model);
/* What a config's `freeze` names: a pattern, or a list of them; NULL: nothing. */
co_status co_model_freeze_value(co_model *model, const co_value *value);
/* Where the trained tensors are in the store, in one allocation, in order of the store. */
co_status co_model_segments(co_segment **out, size_t *n, const co_model *model);

/* Metadata of a weights file: one sample's channels, height and width ("3,32,32"), and the logits
   that the network gives. */
#define CO_MODEL_SAMPLE_KEY  "cohort.sample"
#define CO_MODEL_CLASSES_KEY "cohort.classes"

/* The tensor PREFIX + the parameter's name, or its former name where the file lacks that; NULL:
   neither is there. */
const co_named_tensor *co_param_find(const co_safetensors *file, const char *prefix,
                                     const co_param *param);

/* Layers by name; one means those below it too: "layer4" for "layer4.0.conv1". */
typedef struct co_layer_names {
    size_t n;
    const char *const *name;
} co_layer_names;

/* As co_model_load, but for the layers `fresh` (NULL: none): they keep their values, and what the
   file has of them does not matter. */
co_status co_model_load_except(co_model *model, const char *path, const co_layer_names *fresh);
/* The same from a file that is open; messages call it `name`. */
co_status co_model_load_from(co_model *model, const co_safetensors *file, const char *name,
                             const co_layer_names *fresh);

#endif
