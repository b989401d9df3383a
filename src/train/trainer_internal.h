/* trainer_internal.h - state of the training loop, shared with the benchmark. */
#ifndef CO_TRAIN_TRAINER_INTERNAL_H
#define CO_TRAIN_TRAINER_INTERNAL_H

#include "comm/captured.h"
#include "control/rank_control.h"
#include "profile/profiler.h"
#include "state/rank_means.h"
#include "state/recent_steps.h"
#include "state/saver.h"
#include "step/overflow.h"
#include "step/shards.h"
#include "telemetry/telemetry.h"
#include "tensor/values.h"
#include "train/evaluate.h"
#include "train/loader_setup.h"
#include "train/measures.h"
#include "train/stragglers.h"
#include "train/trainer.h"

/* Most steps in a launch. A device has been given at most two launches that the host has not looked
   at; each has half of the places for batches and results. */
#define TRAINER_HALVES   2
#define TRAINER_TOGETHER (CO_MODEL_LATE_STEPS / TRAINER_HALVES)

/* A step, until its results are taken. */
typedef struct trainer_given {
    co_batch batch;      /* its numbers: what it points to may be another batch's by then */
    bool meet;           /* ranks synchronize in it */
    co_result seen, own; /* of this rank; `seen` with shards of all ranks */
    uint64_t read_ns;    /* when the wait for its batch began, */
    uint64_t start_ns;   /* and ended */
    int place;           /* of its batch and results on a device */
    int last;            /* that of the last step of its launch */
    int together;        /* with the first step of a launch: its steps; else 0 */
} trainer_given;

#define TRAINER_SIZES 4 /* of batches and launches, whose work is kept */

/* The work of a launch with batches of one size. */
typedef struct trainer_capture {
    bool given;                 /* once at least; else this is empty */
    uint64_t batch;             /* tells sizes and numbers of steps apart, on all ranks */
    uint64_t moves, freezes;    /* the model's, when it was given */
    co_comm_captured *captured; /* owned; NULL: given, and not kept yet */
} trainer_capture;

/* Of steps on a device; all zero on the host. */
typedef struct trainer_replay {
    co_queue *copies; /* owned; of batches */
    co_fence *copied; /* owned */
    trainer_capture kept[TRAINER_HALVES * TRAINER_SIZES];
    int half; /* of the next launch */
    co_values_late found[CO_MODEL_LATE_STEPS];
} trainer_replay;

typedef struct trainer {
    co_comm *comm; /* borrowed */
    co_job *job;   /* borrowed */
    co_distributed *distributed;
    co_ema *ema;     /* owned; NULL: none */
    co_saver *saver; /* owned; NULL: none */
    int lock;        /* owned; of the run directory, over MPI on rank 0; otherwise 0 */
    co_feed train, test;
    co_shards shards;
    co_overflow overflow;
    co_state_source source;
    co_checkpoint_run described; /* on rank 0, with checkpoints; its config text is owned */
    co_rank_control control;
    co_run_info info;
    int n_sink;
    co_sink *sink[CO_MAX_SINKS]; /* owned; only rank 0 has sinks */
    /* Steps whose results have been read; `given`: all that have been started. */
    uint64_t epoch, step, epoch_step, epoch_samples, samples, given;
    uint64_t until;    /* steps that will be made, as far as that is known; 0: it is not */
    uint64_t together; /* steps of a launch, where so many can be; else 1 */
    trainer_given in_flight[CO_MODEL_LATE_STEPS]; /* steps from `step` to `given` */
    trainer_given *now;                           /* the one whose work is done, or queued */
    trainer_replay replay;
    double each_seconds;   /* of the steps of the launch whose results were last read */
    uint64_t taken_ns;     /* when results were last read */
    co_profiler *profiler; /* owned; NULL: no profiling */
    co_roof roof;          /* of this rank; set with a profiler */
    uint64_t first_step;   /* first step that this process makes */
    uint64_t epoch_start_ns;
    uint64_t step_ns;        /* in steps: computing and synchronizing, without waiting for data */
    uint64_t waited_ns;      /* in steps, waiting for other ranks */
    co_stragglers straggler; /* on rank 0, set after the last step */
    uint64_t step_sync_ns;   /* part of step_ns that the strategy took */
    double train_seconds, start_seconds;
    double epoch_seconds;   /* of this epoch, before this process started */
    double earlier_seconds; /* of the run, likewise */
    co_spent earlier;       /* likewise */
    bool improved;          /* the last evaluation was the best so far */
    co_best best;
    int64_t bad_before; /* samples replaced in earlier epochs, on this rank, less those of this one
                           that were replaced before it resumed */
    co_result seen;     /* this epoch so far, on this rank */
    co_measures measures; /* likewise, for the metrics of the config */
    co_recent recent;
    co_event last; /* of the last epoch */
    co_step_figures last_step;
    co_stop_reason stop_reason;
    const char *stop_metric; /* the metric whose stop_at value was reached; NULL: none */
    double reached_seconds;  /* when stop_at was reached; 0: not yet */
    /* This rank's batches of this epoch, and its part of the last evaluation. */
    co_rank_means means;
    co_tested tested;
    bool test_explained;   /* why its loss is not a number */
    co_rank_figures *rank; /* owned; (ranks), on rank 0 with `log: ranks`; else NULL */
    co_rank_times *times;  /* owned; (ranks), on rank 0; else NULL */
    /* Of this process: when its first step began; since then evaluating, and in checkpoints. */
    uint64_t begun_ns, evaluate_ns, checkpoint_ns;
    double local_samples; /* that this rank has trained on */
} trainer;

/* --- trainer_open.c --- */
/* Open everything but the outputs. trainer_close frees what exists, also after a failure. */
co_status trainer_open(trainer *t);
/* Rank 0: open the run directory and its sinks. */
co_status trainer_open_outputs(trainer *t);
void trainer_close(trainer *t);
/* --- events.c --- */
/* An event with the fields that every event has. */
co_event trainer_event(const trainer *t, co_event_kind kind);
void trainer_set_spent(co_event *event, const trainer *t);
void trainer_set_train(co_event *event, const trainer *t, const co_result *seen);
void trainer_set_test(co_event *event, const trainer *t, const co_tested *tested);
/* Speed of the epoch, which took `seconds`; and of its evaluation of `count` samples since
   `start_ns`. */
void trainer_set_speed(co_event *event, const trainer *t, double seconds);
void trainer_set_test_speed(co_event *event, const trainer *t, uint64_t count, uint64_t start_ns);
/* Record the figures of the step whose results have been read. */
void trainer_set_last(trainer *t, const trainer_given *given);
/* To all sinks: an event; a line of text; the step just made. */
co_status trainer_emit(trainer *t, const co_event *event);
void trainer_say(trainer *t, const char *line);
co_status trainer_emit_step(trainer *t);
/* Warn if the config wants half precision that no kernel on this CPU computes in. */
void trainer_say_precision(trainer *t);
/* Samples per second; NaN if no time has passed. */
double trainer_rate(uint64_t samples, double seconds);
/* Since the start of the run, including its earlier parts. */
co_spent trainer_spent(const trainer *t);
double trainer_wall_seconds(const trainer *t);
/* Of this epoch so far, including the part before this process. */
double trainer_epoch_seconds(const trainer *t);

/* --- trainer_times.c --- */
/* Where this rank's time went so far. */
void trainer_set_times(co_rank_times *out, const trainer *t);
/* Those of all ranks, to t->times. Collective. */
co_status trainer_gather_times(trainer *t);
/* Rank 0: record that the run has failed, for the reason in co_error_message. */
void trainer_note_failure(trainer *t, co_status st);

/* --- trainer_kernels.c --- */
/* With `choice: measured`: rank 0 times kernels, unless ranks before these have, all ranks use what
   it found, and rank 0 has it in its config. Collective. */
co_status trainer_choose_kernels(trainer *t);
/* Where reference kernels, which the config does not ask for, make training slow. */
co_status trainer_say_kernels(trainer *t);

/* --- trainer_display.c --- */
/* Show sinks what the config's `tensorboard` asks for: before the first step of the run; after an
   epoch. */
co_status trainer_show_start(trainer *t);
co_status trainer_show_epoch(trainer *t);

/* --- trainer_replay.c --- */
/* With a device alone; before its loader. */
co_status trainer_open_replay(trainer *t);
/* Once the device has done all steps: the captures, before the communicator is closed; the rest. */
void trainer_drop_captures(trainer *t);
void trainer_close_replay(trainer *t);
/* Copy a batch to its place on the device; what is queued afterwards waits for it. */
co_status trainer_stage(trainer *t, const trainer_given *given);
/* Whether the work of all steps with batches of one size is the same, and the device can keep it;
   on all ranks, or on none. */
bool trainer_can_replay(const trainer *t);
/* A number for the work of `n` steps from this one of an epoch on. */
uint64_t trainer_work_number(const trainer *t, uint64_t epoch_step, uint64_t n);
/* How the next `n` steps are given, which have one number for their batches. Collective. */
co_status trainer_agree(co_comm_give *give, trainer_capture **kept, trainer *t, uint64_t n);
/* Capture their work, unless it is, and replay it. */
co_status trainer_replay_work(trainer *t, trainer_capture *kept, co_comm_give give, uint64_t n,
                              co_status (*work)(void *trainer));
/* Their work has been given as it is: it can be captured the next time. */
void trainer_note_given(const trainer *t, trainer_capture *kept);
/* Micro-batches of this rank in a step, of all of its shards. */
uint64_t trainer_parts(const trainer *t);
/* One of them. */
co_batch trainer_part(const trainer *t, const co_batch *batch, uint64_t part);

/* --- trainer_profile.c: no-ops unless the job wants a profile --- */
/* Call once the loader exists. Collective, so that all ranks measure the machine at once. */
co_status trainer_profile_open(trainer *t);
/* Write the profile into the run directory. Collective. */
co_status trainer_profile_write(trainer *t);
/* Call once no loader reads and no plan runs. */
void trainer_profile_close(trainer *t);

/* --- trainer_together.c --- */
/* Set t->together; once training can begin. Collective. */
co_status trainer_choose_together(trainer *t);
/* Steps of the next launch, the same on all ranks. */
uint64_t trainer_next_together(const trainer *t);
/* Queue several steps, whose batches have been staged; but for what follows the last one's work. */
co_status trainer_give_together(trainer *t, uint64_t n);

/* --- trainer_state.c --- */
/* Position of the run, for requests from outside. */
co_where trainer_where(const trainer *t);
/* Set t->source: what checkpoints take from this rank. */
void trainer_set_source(trainer *t);
/* Restore the job's state. Collective. */
co_status trainer_restore(trainer *t);
/* Call once the run directory is known: opens checkpoints, and the answers to the owner's
   requests. */
co_status trainer_open_saver(trainer *t);
co_status trainer_open_requests(trainer *t);

/* --- trainer_step.c --- */
/* Buffers for the results of steps on a device. Close waits for the device. */
co_status trainer_open_late(trainer *t);
void trainer_close_late(trainer *t);
/* Give the next steps, of a launch, and take the results of all before them. */
co_status trainer_step(trainer *t);
/* Begin step `step`, and do or queue its work as it is. */
co_status trainer_give_plainly(trainer *t, trainer_given *given, uint64_t step);
/* The work alone, of t->now; `arg` is the trainer. */
co_status trainer_work(void *arg);
/* Takes the results of all steps, and reports them. Before anything is saved, exported, called best
   or final, or seen by others. Collective. */
co_status trainer_settle(trainer *t);

/* --- trainer_diverged.c --- */
/* Training has failed: `what`, "a weight is", not a number. CO_E_DATA if a sample of this epoch has
   a value that is none; takes a while. */
co_status trainer_diverged(const trainer *t, const char *what);

/* --- trainer.c --- */
co_status trainer_average_buffers(trainer *t);
/* Samples replaced in this epoch so far, on this rank. */
int64_t trainer_bad_samples(const trainer *t);
/* Swap the averaged and the trained weights of the model; a second call swaps back. */
co_status trainer_swap_ema(trainer *t);
/* After the last step. What is saved is what the last evaluation measured. Collective. */
co_status trainer_finish(trainer *t);
/* Rank 0: write the final weights and the summary, emit the last event. */
co_status trainer_save(trainer *t);
/* Advance to the start of the next epoch. */
void trainer_next_epoch(trainer *t);
/* --- bench.c --- */
/* Add the operations of a sample in a plan; and the least time for them, if `roof` knows it, else
   `seconds` may be NULL. */
void trainer_add_work(double *flops, double *seconds, const co_plan *plan, const co_roof *roof);

/* --- trainer_end.c --- */
/* Set and report t->stop_reason if the run should stop; `last`: the end of an epoch. */
void trainer_check_stop(trainer *t, const co_event *last);
/* After the last step: set t->straggler and report it. Collective. */
co_status trainer_find_stragglers(trainer *t);

#endif
