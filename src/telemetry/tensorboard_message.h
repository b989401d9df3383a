/*
 * tensorboard_message.h - records of TensorBoard's event files, encoded by hand: a few kinds of
 * protocol buffers (protobuf.dev/programming-guides/encoding) of tensorflow/core/util/event.proto
 * and what it includes.
 */
#ifndef CO_TELEMETRY_TENSORBOARD_MESSAGE_H
#define CO_TELEMETRY_TENSORBOARD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "telemetry/append.h"

/* A message being encoded. Zero is empty; it grows, and keeps its memory for the next. */
typedef struct board_message {
    uint8_t *byte; /* owned */
    size_t size, room;
    bool failed; /* there was no memory: board_record says so */
} board_message;

void board_free(board_message *m);
/* Without fields, and without a failure. */
void board_clear(board_message *m);

/* Append a field: a whole number, a number of 4 or 8 bytes, a text, bytes. */
void board_int(board_message *m, unsigned field, uint64_t value);
void board_float(board_message *m, unsigned field, float value);
void board_double(board_message *m, unsigned field, double value);
void board_text(board_message *m, unsigned field, const char *text);
void board_bytes(board_message *m, unsigned field, const void *byte, size_t size);
/* A message; the failure of the inner is the outer's, too. */
void board_nest(board_message *m, unsigned field, const board_message *inner);

/* Begin Event {wall_time = 1, step = 2} in place of what `m` had; the caller appends the rest. */
void board_begin(board_message *m, uint64_t step);
/* Append an event as a record; `scratch` is overwritten. CO_E_NOMEM if either has failed. */
co_status board_record(const co_append *file, const board_message *event, board_message *scratch);

#endif
