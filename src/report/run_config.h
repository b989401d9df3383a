/* run_config.h - the configs of runs, compared; for run_list.c. */
#ifndef CO_REPORT_RUN_CONFIG_H
#define CO_REPORT_RUN_CONFIG_H

#include "report/run_list.h"

/* Read config.yaml into text and lines. A file that cannot be read leaves none. */
co_status co_run_config_read(co_run_entry *run);

#endif
