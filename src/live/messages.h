/* messages.h - the last messages to browsers, as server-sent events. A browser that is further
   behind gets the message that it is to ask for everything. */
#ifndef CO_LIVE_MESSAGES_H
#define CO_LIVE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <cohort/status.h>

#define CO_MESSAGES_KEPT 32
#define CO_MESSAGES_MAX  ((size_t)1 << 20) /* bytes of one; a larger one becomes "everything" */

/* Shared by those who are sending it. */
typedef struct co_message {
    unsigned holders;
    uint64_t number;
    size_t size;
    char *text; /* owned */
} co_message;

/* Zeroed: none yet. */
typedef struct co_messages {
    uint64_t last; /* number of the last one; they begin with 1 */
    co_message *kept[CO_MESSAGES_KEPT];
} co_messages;

/* A message of this JSON; NULL: that everything is to be asked for. */
co_status co_messages_add(co_messages *messages, const json_t *json);
/* The message after number `after`, to be dropped by the caller; NULL: there is none yet. If it is
   not kept any more, or `after` is none of these, the last one that says that everything is to be
   asked for. CO_E_NOMEM. */
co_status co_messages_next(co_message **out, co_messages *messages, uint64_t after);
void co_message_drop(co_message *message);
void co_messages_free(co_messages *messages);

#endif
