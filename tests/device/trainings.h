/*
 * trainings.h - whole trainings, each on the host or with every rank's network on a mock device,
 * and what they leave in their run directories compared.
 */
#ifndef TESTS_DEVICE_TRAININGS_H
#define TESTS_DEVICE_TRAININGS_H

#include "device/mock.h"
#include "train/trainer.h"

typedef struct training {
    const char *config;
    const char *name;  /* of its run directory, in the test's folder */
    const char *limit; /* "max_steps=4", or NULL */
    int ranks;         /* threads; 0: 1 */
    bool resume;
    bool mock;          /* on a device for each rank; else on the host */
    bool host_counts;   /* devices that count nothing */
    bool fails;         /* it is to fail; else that fails the test */
    co_step_fn on_step; /* of rank 0's program; NULL: none */
    void *on_step_arg;
    mock_entry *log; /* (max_log) of rank 0; NULL: none */
    size_t max_log;
    /* Afterwards: */
    size_t n_log;
    const void *values, *param; /* of rank 0's store, as the log has them */
    co_job_result result;
    char message[512]; /* of a failure */
} training;

/* Setup and teardown of a test: a folder for the run directories, and its name. */
int training_make_folder(void **state);
int training_remove_folder(void **state);
const char *training_folder(void);
/* As the launcher makes it ready and ranks make it. */
void training_run(training *t);
/* Weights, results, metrics.jsonl but for times, and the weights in every checkpoint. */
void training_check_same(const training *got, const training *want);
/* Whether the run directory has checkpoints, and their number. */
int training_count_checkpoints(const training *t);
/* On the host, on devices, and on devices with a checkpoint and a second process's start after
   `half`: all leave the same. */
void training_check(const char *config, const char *half, int ranks);

#endif
