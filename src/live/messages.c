/* messages.c - a ring of messages. */
#include "live/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

static int messages_put(const char *text, size_t n, void *arg)
{
    return fwrite(text, 1, n, arg) == n ? 0 : -1;
}

/* The lines of an event: JSON has no line end in it. */
static co_status messages_make(co_message **out, uint64_t number, const json_t *json)
{
    co_message *message = co_calloc(1, sizeof(*message));
    FILE *stream = message ? open_memstream(&message->text, &message->size) : NULL;
    int bad = !stream;

    if (stream) {
        fprintf(stream, json ? "id: %llu\ndata: " : "event: reset\nid: %llu\ndata: all",
                (unsigned long long)number);
        if (json)
            bad = json_dump_callback(json, messages_put, stream,
                                     JSON_COMPACT | JSON_REAL_PRECISION(7));
        fputs("\n\n", stream);
        bad |= ferror(stream);
        bad |= fclose(stream);
    }
    if (bad) {
        if (message)
            free(message->text);
        co_free(message);
        return co_fail(CO_E_NOMEM, "out of memory");
    }
    message->holders = 1;
    message->number = number;
    *out = message;
    return CO_OK;
}

co_status co_messages_add(co_messages *messages, const json_t *json)
{
    co_message **slot = &messages->kept[(messages->last + 1) % CO_MESSAGES_KEPT], *message;

    CO_TRY(messages_make(&message, messages->last + 1, json));
    if (message->size > CO_MESSAGES_MAX) {
        co_message_drop(message);
        CO_TRY(messages_make(&message, messages->last + 1, NULL));
    }
    co_message_drop(*slot);
    *slot = message;
    messages->last++;
    return CO_OK;
}

co_status co_messages_next(co_message **out, co_messages *messages, uint64_t after)
{
    *out = NULL;
    if (after == messages->last)
        return CO_OK;
    if (after > messages->last || messages->last - after > CO_MESSAGES_KEPT)
        return messages_make(out, messages->last, NULL);
    *out = messages->kept[(after + 1) % CO_MESSAGES_KEPT];
    (*out)->holders++;
    return CO_OK;
}

void co_message_drop(co_message *message)
{
    if (!message || --message->holders)
        return;
    free(message->text);
    co_free(message);
}

void co_messages_free(co_messages *messages)
{
    for (size_t i = 0; i < CO_MESSAGES_KEPT; i++)
        co_message_drop(messages->kept[i]);
    *messages = (co_messages){0};
}
