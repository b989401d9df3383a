/* evidence.h - all that detectors may look at: figures of a run, of its data and of its weights. */
#ifndef CO_EXPLAIN_EVIDENCE_H
#define CO_EXPLAIN_EVIDENCE_H

#include "telemetry/telemetry.h"
#include "train/spec.h"

#define CO_EVIDENCE_TEXT  512
#define CO_EVIDENCE_RANKS 1024

/* A step or epoch event; NaN where there is no figure. */
typedef struct co_evidence_point {
    double step, train_loss, train_accuracy, test_loss, test_accuracy, gradient_norm, lr;
} co_evidence_point;

typedef struct co_evidence_curve {
    size_t n, room;
    co_evidence_point *at; /* owned */
} co_evidence_curve;

/* Of metrics.jsonl and summary.json. */
typedef struct co_evidence_run {
    int ranks, cores, threads, starts; /* cores 0: not recorded; starts: of ranks, with restarts */
    uint64_t batch, total_steps, steps_per_epoch, train_samples, test_samples;
    uint64_t steps;                 /* made */
    bool finished;                  /* summary.json is there */
    double wall_seconds;            /* of the run, but for what came before: */
    double earlier_seconds;         /* on another number of ranks, with times that are left out */
    double checkpoints;             /* made; NaN: not known */
    char failure[CO_EVIDENCE_TEXT]; /* why it failed; "": it did not */
    bool has_times;
    co_rank_times *times; /* owned, (ranks): sums over all starts with that many ranks */
    int evaluations;
    co_evidence_curve step, epoch;
} co_evidence_run;

#define CO_EVIDENCE_CHANNELS 4

/* Of the data as the network gets it, without augmentation. */
typedef struct co_evidence_data {
    bool known;
    char why_not[CO_EVIDENCE_TEXT]; /* if not known */
    bool images, labels;
    int64_t classes;
    uint64_t train_count, test_count;
    /* Of normalised values, over samples all over the training split; channels beyond are left out.
     */
    int channels;
    double mean[CO_EVIDENCE_CHANNELS], std[CO_EVIDENCE_CHANNELS];
    /* Training samples of the rarest class that occurs, and of the most frequent. */
    uint64_t rarest, commonest;
    int64_t absent; /* classes without a training sample */
    /* By hash of decoded pixels: test samples looked at, those that are a training sample looked
       at, too, and those that are an earlier test sample. */
    uint64_t test_hashed, train_hashed, in_train, repeated;
    char example[CO_EVIDENCE_TEXT]; /* one of them; "": none */
    /* How often the nearest class mean of pixels, over one half of the samples looked at, is the
       label in the other half; `guess`: of the commonest label there. 0 samples: not looked at. */
    uint64_t judged;
    double nearest, guess;
} co_evidence_data;

/* A weight after the run, against what it began from. */
typedef struct co_evidence_weight {
    char *name;    /* owned */
    double change; /* |now - then| / |then| */
    bool same;     /* to the bit */
    bool frozen;   /* by the config */
} co_evidence_weight;

typedef struct co_evidence_weights {
    bool known;
    char why_not[CO_EVIDENCE_TEXT];
    bool drawn; /* training began from drawn weights, not from a file */
    size_t n;
    co_evidence_weight *at; /* owned; weights of two or more dimensions */
    double change;          /* of all weights together */
    /* Output units of layers before a ReLU, and those without any gradient over all samples looked
       at. */
    uint64_t units, dead;
    char most_dead[64]; /* layer with the largest part of them */
    /* Forward and backward on this machine, with a rank's threads: seconds for a sample in a batch
       of so many. */
    double sample_seconds;
    uint64_t sample_batch;
} co_evidence_weights;

#define CO_EVIDENCE_PERIOD 16 /* steps between two waits of ranks that `late_local` has */

/* What computes in a step, of rank 0: a layer, forward and backward, or what is in no kernel. */
typedef struct co_evidence_layer {
    char name[48], op[24]; /* op "": in no kernel */
    double seconds, limit; /* of a step; what the machine could do them in, 0: not known */
} co_evidence_layer;

/* Of profile.json. */
typedef struct co_evidence_profile {
    bool known; /* the run was profiled */
    uint64_t steps;
    double step; /* seconds: the sum of all layers */
    size_t n;
    co_evidence_layer *at; /* owned; longest first */
    /* The part of a step's computing that waiting for the slowest rank costs, if each step waits,
       and if every CO_EVIDENCE_PERIOD-th does; NaN: steps were not logged one by one. */
    double late, late_local;
} co_evidence_profile;

typedef struct co_evidence {
    co_evidence_run run;
    co_spec spec;
    bool has_spec; /* to be unloaded */
    co_evidence_data data;
    co_evidence_weights weights;
    co_evidence_profile profile;
} co_evidence;

/* Read the evidence of a run directory. With `look`, data and weights too, which take a few
   seconds; where they cannot be read, `why_not` says why. `set`: changes of its config, ended by
   NULL, or NULL. CO_E_USAGE: it is no run directory. CO_E_DATA: its files are damaged. The caller
   frees `out`, also after a failure. */
co_status co_evidence_read(co_evidence *out, const char *run_dir, const char *const *set,
                           bool look);
void co_evidence_free(co_evidence *e);

/* --- evidence_run.c, evidence_profile.c, evidence_data.c, evidence_weights.c --- */
co_status co_evidence_read_run(co_evidence_run *out, const char *run_dir);
/* No profile is CO_OK. */
co_status co_evidence_read_profile(co_evidence_profile *out, const char *run_dir, int ranks);
co_status co_evidence_read_data(co_evidence_data *out, const co_spec *spec);
/* `threads`: of a rank. */
co_status co_evidence_read_weights(co_evidence_weights *out, const co_spec *spec,
                                   const char *run_dir, int threads);

/* --- figures that several detectors use --- */
/* Seconds of a rank in steps: data, compute, exchange and wait. */
double co_evidence_steps(const co_rank_times *t);
/* Means over ranks. */
co_rank_times co_evidence_mean(const co_evidence_run *run);
/* The last training loss of steps, or of epochs; NaN: none. */
double co_evidence_last_loss(const co_evidence_run *run);
double co_evidence_last_accuracy(const co_evidence_run *run, bool test);
/* Whether the data has classes and the network learns them: values, for which data may have a field
   besides, have no accuracy. Where nothing was logged, the data decides. */
bool co_evidence_learns_classes(const co_evidence *e);

#endif
