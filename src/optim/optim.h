/* optim.h - optimizers over the flat store, schedules, clipping. */
#ifndef CO_OPTIM_OPTIM_H
#define CO_OPTIM_OPTIM_H

#include <cohort/ext/optim.h>

#include "core/plugin.h"
#include "tensor/store.h"

#define CO_OPTIM_DEFAULT "sgd" /* of a config that names none */

extern const co_optimizer_ops *const co_optimizers[]; /* NULL-ended */
extern const co_schedule_ops *const co_schedules[];   /* NULL-ended */
extern const co_optimizer_ops co_optimizer_sgd, co_optimizer_adam, co_optimizer_adamw,
    co_optimizer_adadelta, co_optimizer_lars, co_optimizer_lamb;
extern const co_schedule_ops co_schedule_constant, co_schedule_step, co_schedule_multi_step,
    co_schedule_cosine, co_schedule_polynomial, co_schedule_one_cycle;
extern const co_plugins co_optimizer_plugins, co_schedule_plugins;
/* lr, weight_decay, ...: common to every optimizer. unit, warmup, warmup_start: common to every
 * schedule. */
extern const co_key co_optimizer_common_keys[];
extern const co_key co_schedule_common_keys[];

typedef struct co_optim co_optim;
/* From the config value (a name or {name, keys}); NULL value: sgd. `config` owns the value and
   outlives the result. Adds its state arrays to `store`, where they stay. */
co_status co_optim_create(co_optim **out, const co_value *value, co_config *config,
                          co_store *store);
void co_optim_destroy(co_optim *optim);
const co_optimizer_ops *co_optim_ops(const co_optim *optim);
double co_optim_base_lr(const co_optim *optim);
/* Its state arrays in the store, for checkpoints: each is of store->n floats. */
int co_optim_state_count(const co_optim *optim);
const char *co_optim_state_name(const co_optim *optim, int i); /* "exp_avg" */
float *co_optim_state(const co_optim *optim, const co_store *store, int i);
/* One tensor of the store. */
typedef struct co_segment {
    size_t begin, n; /* elements */
    co_param_kind kind;
    bool frozen;     /* no update touches it */
    bool spared;     /* unless the config says by how much those of its kind decay */
    int param;       /* of the model's graph */
    uint64_t missed; /* updates while it was frozen */
} co_segment;

/* The tensors of the store, by rising `begin`; copied. Until then all of it is one weight. */
co_status co_optim_set_segments(co_optim *optim, const co_segment *segment, size_t n);
/* Samples of a step, 0: not known. With `lr_batch` the base rate is scaled by their ratio. */
co_status co_optim_set_batch(co_optim *optim, uint64_t batch);
/* Cores that share an update on the host; 1 until then. */
void co_optim_set_threads(co_optim *optim, int threads);
/* CO_E_USAGE when the optimizer needs whole tensors, which parts of the store cut. */
co_status co_optim_check_parts(const co_optim *optim);
/* CO_E_USAGE when [begin, end) cuts a tensor and the optimizer needs whole ones. */
co_status co_optim_check_range(const co_optim *optim, size_t begin, size_t end);
/* Update [begin, end) of the store in one pass, by the store's values (tensor/values.h): the rule,
   weight decay, state and weights. On a device it is put on the store's queue. */
co_status co_optim_update(const co_optim *optim, co_store *store, size_t begin, size_t end);

typedef struct co_schedule co_schedule;
/* NULL value: constant. */
co_status co_schedule_create(co_schedule **out, const co_value *value, co_config *config);
void co_schedule_destroy(co_schedule *schedule);
/* CO_E_USAGE when the schedule needs a length that `progress` leaves at 0. */
co_status co_schedule_check(const co_schedule *schedule, const co_progress *progress);
/* Updates of the warm-up. */
uint64_t co_schedule_warmup(const co_schedule *schedule, const co_progress *progress);
/* Factor on the base rate for the next update: the schedule's own, times the warm-up's

     start + (1 - start) (t + 1) / W   for updates t = 0 .. W - 1, and 1 from then on.

   The schedule itself counts from the first update, warm-up or not (Goyal et al.,
   arXiv:1706.02677), so that milestones are epochs of the run. */
double co_schedule_factor(const co_schedule *schedule, const co_progress *progress);

/* Clipping, PyTorch's rules, as a part of the rule by which the update takes the gradient; the
   limits are in the store's values, as is the norm afterwards, and on a device all is put on its
   queue. Each element is kept within given.clip_value from the start of the step on. Here all are
   scaled by limit / (norm + 1e-6) if that is below 1, after what the rule said so far. The norm is
   summed in double in an order that depends on the store's length alone. `check`: max_abs of the
   values is found in the same pass, of the gradient as it is. */
void co_clip_norm(const co_store *store, bool check);

#endif
