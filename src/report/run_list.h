/* run_list.h - the runs in a folder, side by side: their states and figures, and the keys in which
   their configs differ. */
#ifndef CO_REPORT_RUN_LIST_H
#define CO_REPORT_RUN_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

typedef enum co_run_state {
    CO_RUN_FINISHED, /* it has a summary */
    CO_RUN_RUNNING,  /* a job holds its lock */
    CO_RUN_STOPPED   /* neither; --resume continues it */
} co_run_state;

/* A line of its config.yaml. */
typedef struct co_run_line {
    char *key, *value; /* owned by the entry's text */
} co_run_line;

/* Unknown numbers are NaN. Those of the test split are of the best epoch of a finished run, of the
   last one of others. */
typedef struct co_run_entry {
    char *dir; /* owned */
    co_run_state state;
    char model[48], dataset[48], strategy[48];
    double ranks, epoch, steps, test_accuracy, test_loss, train_loss, samples_per_second;
    double wall_seconds, ended; /* of the run; time of its last event, since 1970 */
    char *text;                 /* owned: its config */
    co_run_line *line;          /* owned: (n_line), sorted by key */
    size_t n_line;
} co_run_entry;

typedef struct co_run_list {
    co_run_entry *run; /* owned: (n), sorted by the names of their folders */
    size_t n, room;
    /* By co_run_list_compare: the keys that differ, as co_value_walk names them, and value[run *
       n_key + key]; NULL: that run's config has no such key. */
    char **key, **value; /* owned, and each */
    size_t n_key;
    bool names_only; /* by co_run_list_find */
} co_run_list;

/* Add `dir` if it is a run directory, else those in it and in the folders of it: `cohort compare`
   makes such. A run whose files are damaged is there with what could be read. */
co_status co_run_list_add(co_run_list *list, const char *dir);
/* Add the same folders, with their names and the times of their last events alone. */
co_status co_run_list_find(co_run_list *list, const char *dir);
/* Of a run directory. The lock of a run is tried for a moment, and not waited for. */
co_run_state co_run_state_of(const char *dir);
co_status co_run_list_compare(co_run_list *list);
void co_run_list_free(co_run_list *list);
const char *co_run_state_name(co_run_state state);

#endif
