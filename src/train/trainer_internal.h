/* trainer_internal.h - the loop's state, shared by training and timing. */
#ifndef CO_TRAIN_TRAINER_INTERNAL_H
#define CO_TRAIN_TRAINER_INTERNAL_H

#include "control/rank_control.h"
#include "profile/profiler.h"
#include "state/rank_means.h"
#include "state/recent_steps.h"
#include "state/saver.h"
#include "step/overflow.h"
#include "step/shards.h"
#include "telemetry/telemetry.h"
#include "train/evaluate.h"
#include "train/loader_setup.h"
#include "train/measures.h"
#include "train/stragglers.h"
#include "train/trainer.h"

typedef struct trainer {
    co_comm *comm; /* borrowed */
    co_job *job;   /* borrowed */
    co_distributed *distributed;
    co_ema *ema;     /* owned; NULL: none */
    co_saver *saver; /* owned; NULL: none */
    int lock;        /* owned; of the run directory, over MPI on rank 0; else 0 */
    co_feed train, test;
    co_shards shards;
    co_overflow overflow;
    co_state_source source;
    co_checkpoint_run described; /* on rank 0, with checkpoints; its text is owned */
    co_rank_control control;
    co_run_info info;
    int n_sink;
    co_sink *sink[CO_MAX_SINKS]; /* owned; rank 0 alone has any */
    uint64_t epoch, step, epoch_step, epoch_samples, samples;
    co_profiler *profiler; /* owned; NULL: nobody profiles */
    co_roof roof;          /* of this rank, with a profiler */
    uint64_t first_step;   /* of this process: the run's earlier ones were made by others */
    uint64_t epoch_start_ns;
    uint64_t step_ns;        /* in steps, without the wait for data: computing and the strategy */
    uint64_t waited_ns;      /* in steps, for other ranks */
    co_stragglers straggler; /* on rank 0, when the last step is made */
    uint64_t step_sync_ns;   /* the strategy's part of it */
    double train_seconds, start_seconds;
    double epoch_seconds;   /* of this epoch, before this process */
    double earlier_seconds; /* of the run, likewise */
    co_spent earlier;       /* likewise */
    bool improved;          /* the last evaluation was the best so far */
    co_best best;
    uint64_t bad_before;  /* replaced samples of earlier epochs, on this rank */
    co_result seen;       /* of this epoch so far, on this rank */
    co_measures measures; /* likewise, of the metrics that the config asks for */
    co_recent recent;
    co_event last; /* of the last epoch */
    co_step_figures last_step;
    co_stop_reason stop_reason;
    const char *stop_metric; /* whose value of stop_at is reached; NULL: none */
    double reached_seconds;  /* until the accuracy of stop_at was there; 0: it is not yet */
    /* Of this rank: its batches of this epoch, its part of the last evaluation. */
    co_rank_means means;
    co_tested tested;
    co_rank_figures *rank; /* owned; (ranks), on rank 0 and with log: ranks alone */
} trainer;

/* --- trainer_open.c --- */
/* Everything but outputs. After a failure too, trainer_close frees what there is. */
co_status trainer_open(trainer *t);
/* Rank 0: the run directory, and the sinks there. */
co_status trainer_open_outputs(trainer *t);
void trainer_close(trainer *t);
/* --- events.c --- */
/* What every event says. */
co_event trainer_event(const trainer *t, co_event_kind kind);
void trainer_set_spent(co_event *event, const trainer *t);
void trainer_set_train(co_event *event, const trainer *t, const co_result *seen);
void trainer_set_test(co_event *event, const trainer *t, const co_tested *tested);
/* How fast an epoch was that took `seconds`; its evaluation of `count` samples, since `start_ns`.
 */
void trainer_set_speed(co_event *event, const trainer *t, double seconds);
void trainer_set_test_speed(co_event *event, const trainer *t, uint64_t count, uint64_t start_ns);
/* The figures of the step that has just been made, of `samples` samples over all ranks; it began to
   wait for its batch at `start_ns` and had it at `read_ns`. */
void trainer_set_last(trainer *t, const co_result *seen, uint64_t samples, uint64_t start_ns,
                      uint64_t read_ns);
/* To all sinks: an event; a line for people; the step that has just been made. */
co_status trainer_emit(trainer *t, const co_event *event);
void trainer_say(trainer *t, const char *line);
co_status trainer_emit_step(trainer *t);
/* Where half precision is wanted and the CPU cannot compute with them. */
void trainer_say_precision(trainer *t);
/* Samples in a second; NaN in no time. */
double trainer_rate(uint64_t samples, double seconds);
/* Since the start of the run, with its earlier parts. */
co_spent trainer_spent(const trainer *t);
double trainer_wall_seconds(const trainer *t);
/* Of this epoch so far, with what was before this process. */
double trainer_epoch_seconds(const trainer *t);

/* --- trainer_kernels.c --- */
/* Where reference kernels, which the config does not ask for, make training slow. */
co_status trainer_say_kernels(trainer *t);

/* --- trainer_profile.c: nothing unless the job wants a profile --- */
/* Once the loader is there. Collective in that all ranks measure the machine at once. */
co_status trainer_profile_open(trainer *t);
/* What was seen, to the run directory. Collective. */
co_status trainer_profile_write(trainer *t);
/* When no loader reads and no plan runs any more. */
void trainer_profile_close(trainer *t);

/* --- trainer_state.c --- */
/* Where the run is, for whoever asks from outside. */
co_where trainer_where(const trainer *t);
/* What of this rank a state is of. */
void trainer_set_source(trainer *t);
/* To where the job's state is of. Collective. */
co_status trainer_restore(trainer *t);
/* The run directory is known by now: checkpoints, and answers to the owner. */
co_status trainer_open_saver(trainer *t);
co_status trainer_open_requests(trainer *t);

/* --- trainer.c --- */
/* One update of the weights. */
co_status trainer_step(trainer *t);
co_status trainer_average_buffers(trainer *t);
/* The averaged weights into the model and the trained ones out of it, or back. */
co_status trainer_swap_ema(trainer *t);
/* After the last step: what is saved is what the last evaluation has seen. Collective. */
co_status trainer_finish(trainer *t);
/* Rank 0: final weights, summary, the last event. */
co_status trainer_save(trainer *t);
/* To the beginning of the next epoch. */
void trainer_next_epoch(trainer *t);
/* --- trainer_end.c --- */
/* Ends the run where it is to stop, and says why; `last`: the end of an epoch. */
void trainer_check_stop(trainer *t, const co_event *last);
/* After the last step: t->straggler, and says who it is. Collective. */
co_status trainer_find_stragglers(trainer *t);

#endif
