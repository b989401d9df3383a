/* registry.c - the sinks of this build. */
#include <stddef.h>

#include "telemetry/telemetry.h"

const co_sink_ops *const co_sinks[] = {&co_sink_jsonl, &co_sink_tensorboard, &co_sink_console,
                                       &co_sink_lines, NULL};
