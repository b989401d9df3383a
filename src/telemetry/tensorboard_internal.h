/* tensorboard_internal.h - the sink of TensorBoard's files, shared by its parts. */
#ifndef CO_TELEMETRY_TENSORBOARD_INTERNAL_H
#define CO_TELEMETRY_TENSORBOARD_INTERNAL_H

#include "telemetry/telemetry.h"
#include "telemetry/tensorboard_message.h"

typedef struct tensorboard {
    co_sink sink; /* first */
    co_append file;
    co_board_names names;
    const co_metric_set *metrics;                             /* NULL: none */
    board_message record, event, summary, value, part, inner; /* reused */
} tensorboard;

/* self->summary as an event. */
co_status tensorboard_put_summary(tensorboard *self, uint64_t step);
/* --- tensorboard_display.c --- */
co_status tensorboard_show(co_sink *sink, const co_display *display);

#endif
