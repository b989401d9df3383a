/* report_eval.h - what the page of `cohort report` shows of a run's weights. */
#ifndef CO_CLI_REPORT_EVAL_H
#define CO_CLI_REPORT_EVAL_H

#include <jansson.h>

#include "cli/cli.h"

/* Add to `run` (co_page_run): its tensors and layers, and, measured on the test split, the
   confusion matrix and the `samples` samples with the highest loss. What cannot be measured, since
   the data are elsewhere for instance, is said in the page; errors are those of memory, and
   interrupts. */
co_status cli_report_measure(json_t *run, const char *dir, size_t samples, const cli_list *set);

#endif
