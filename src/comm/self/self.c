/*
 * self.c - the communicator of a single rank: every collective is a copy.
 *
 * A message to itself is copied when sent, so sends never wait; a receive waits for its message.
 */
#include <stdio.h>

#include "comm/comm_internal.h"
#include "comm/transports.h"
#include "core/mem.h"
#include "device/device.h"

typedef struct self_message {
    struct self_message *next;
    co_coll_descriptor descriptor;
    unsigned char data[];
} self_message;

typedef struct self_comm {
    co_comm base;
    co_comm_cause cause;
    self_message *first, **last; /* sent, not yet received */
    co_comm_queue receives;
} self_comm;

static bool self_probe(const char **why)
{
    (void)why;
    return true;
}

static co_status self_send(self_comm *self, const co_coll_args *args)
{
    const size_t bytes = args->count * co_dtype_size(args->dtype);
    self_message *message = co_calloc(1, sizeof(*message) + bytes);
    co_status st;

    if (!message)
        return CO_E_NOMEM;
    message->descriptor = co_comm_descriptor(args, 0);
    st = co_queue_copy_now(args->queue, message->data, args->in, bytes);
    if (st != CO_OK) {
        co_free(message);
        return st;
    }
    *self->last = message;
    self->last = &message->next;
    return CO_OK;
}

static co_status self_receive(self_comm *self)
{
    const self_message *message = self->first;
    co_request *request = &self->receives.head->base;
    const co_coll_args *args = &request->args;
    const co_coll_descriptor *sent = &message->descriptor;
    const size_t bytes = args->count * co_dtype_size(args->dtype);

    if (sent->count != args->count || sent->dtype_op != args->dtype) {
        const co_coll_descriptor here = co_comm_descriptor(args, 0);
        char a[CO_COMM_DESCRIBE_MAX], b[CO_COMM_DESCRIBE_MAX];

        return co_fail(CO_E_MISMATCH, "rank 0 calls %s where rank 0 calls %s",
                       co_comm_describe(a, sizeof(a), sent), co_comm_describe(b, sizeof(b), &here));
    }
    CO_TRY(co_queue_copy_now(args->queue, args->out, message->data, bytes));
    request->done = true;
    co_comm_queue_pop(&self->receives);
    self->first = message->next;
    if (!self->first)
        self->last = &self->first;
    co_free((void *)message);
    return CO_OK;
}

static co_status self_progress(co_comm *comm)
{
    self_comm *self = (self_comm *)comm;

    if (self->cause.status != CO_OK)
        return co_comm_cause_fail(&self->cause, 0);
    while (self->first && self->receives.head)
        CO_TRY(self_receive(self));
    return CO_OK;
}

/* The only part of the only rank is the sum. */
static co_status self_copy_root(const co_coll_args *args, size_t bytes)
{
    if (bytes == 0 || *(const void *const *)args->in == args->out)
        return CO_OK;
    return co_queue_copy(args->queue, args->out, *(const void *const *)args->in, bytes);
}

static co_status self_post(co_request **request, co_comm *comm, const co_coll_args *args)
{
    self_comm *self = (self_comm *)comm;
    const size_t bytes = args->count * co_dtype_size(args->dtype);
    co_comm_link *link;
    co_status st = CO_OK;

    CO_TRY(self_progress(comm));
    link = co_comm_take_request(comm, sizeof(*link), args);
    if (!link)
        return CO_E_NOMEM;
    link->base.done = args->coll != CO_COLL_RECV;
    if (args->coll == CO_COLL_SEND)
        st = self_send(self, args);
    else if (args->coll == CO_COLL_RECV)
        co_comm_queue_push(&self->receives, link);
    else if (co_comm_is_tree(args))
        st = self_copy_root(args, bytes);
    else if (bytes && args->in != args->out)
        /* with one rank, sum, product and average are the input */
        st = co_queue_copy(args->queue, args->out, args->in, bytes);
    if (st != CO_OK)
        co_comm_give_request(&link->base);
    else
        *request = &link->base;
    return st;
}

static void self_describe_wait(const co_request *request, char *out, size_t size)
{
    snprintf(out, size, "waiting in %s for a message that rank 0 has not sent to itself",
             co_comm_coll_name(request->args.coll));
}

static co_status self_split(co_comm **out, co_comm *comm, int color, int key)
{
    (void)key;
    CO_TRY(self_progress(comm));
    return color < 0 ? CO_OK : co_comm_create_self(out);
}

static co_status self_window(void **base, co_comm *comm, size_t bytes)
{
    (void)comm;
    *base = co_calloc_aligned(bytes, 1);
    return *base ? CO_OK : CO_E_NOMEM;
}

static void self_free_window(co_comm *comm, void *base, size_t bytes)
{
    (void)comm;
    (void)bytes;
    co_free(base);
}

static void self_abort(co_comm *comm, co_status status, const char *cause)
{
    self_comm *self = (self_comm *)comm;

    if (self->cause.status == CO_OK)
        co_comm_cause_set(&self->cause, 0, status, cause);
}

static void self_fail(co_comm *comm, int rank, co_status status, const char *cause)
{
    (void)rank;
    self_abort(comm, status, cause);
}

static void self_destroy(co_comm *comm)
{
    self_comm *self = (self_comm *)comm;

    while (self->first) {
        self_message *message = self->first;

        self->first = message->next;
        co_free(message);
    }
    co_free(self);
}

const co_comm_ops co_transport_self = {
    .name = "self",
    .summary = "one rank; nothing travels",
    .memory = 1U << CO_MEMORY_DEVICE,
    .probe = self_probe,
    .post = self_post,
    .progress = self_progress,
    .describe_wait = self_describe_wait,
    .destroy_request = co_comm_give_request,
    .split = self_split,
    .window = self_window,
    .free_window = self_free_window,
    .fail = self_fail,
    .abort = self_abort,
    .destroy = self_destroy,
};

co_status co_comm_create_self(co_comm **out)
{
    self_comm *self = co_calloc(1, sizeof(*self));

    if (!self)
        return CO_E_NOMEM;
    self->base = (co_comm){.ops = &co_transport_self, .size = 1, .timeout_ms = CO_COMM_TIMEOUT_MS};
    self->last = &self->first;
    *out = &self->base;
    return CO_OK;
}
