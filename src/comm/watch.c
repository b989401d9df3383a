/*
 * watch.c - a rank's record of its own state, and its description in words.
 *
 * Recording costs a few plain stores and one clock reading at each end of an operation. It is read
 * when something has gone wrong; a reader may see an operation half written, which then looks like
 * the previous one.
 */
#include "comm/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm/comm_internal.h"
#include "comm/tree.h"
#include "core/clock.h"
#include "core/open.h"
#include "core/process.h"

static void watch_set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t watch_get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit((_Atomic uint64_t *)word, memory_order_relaxed);
}

/* A word that says that others are there, which were written before it. */
static void watch_publish(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

void co_watch_attach(co_comm *comm, co_watch *watch, int rank)
{
    const uint64_t now = co_clock_ns();

    comm->watch = watch;
    atomic_store(&watch->rank, rank);
    atomic_store(&watch->tid, (int)syscall(SYS_gettid));
    watch_set(&watch->phase_ns, now);
    watch_set(&watch->beat_ns, now);
    atomic_store(&watch->pid, (int)getpid());
    co_log_set_tail(&watch->tail);
}

void co_watch_phase(co_comm *comm, co_phase phase)
{
    const uint64_t now = co_clock_ns();
    co_watch *w = comm->watch;

    if (w) {
        atomic_store_explicit(&w->phase, (unsigned)phase, memory_order_relaxed);
        watch_set(&w->phase_ns, now);
        watch_set(&w->beat_ns, now);
    }
    if (phase == CO_PHASE_SAVING && comm->ops->tell_saving)
        comm->ops->tell_saving(comm); /* after: it may go by the phase */
}

void co_watch_beat(co_comm *comm)
{
    if (comm->watch)
        watch_set(&comm->watch->beat_ns, co_clock_ns());
}

void co_watch_step(co_comm *comm, uint64_t steps)
{
    if (comm->watch)
        atomic_store(&comm->watch->step, steps);
}

uint64_t co_watch_waited_ns(const co_comm *comm)
{
    return comm->watch ? watch_get(&comm->watch->waited_ns) : 0;
}

void co_watch_observe(co_comm *comm, co_comm_observer *observer)
{
    comm->observer = observer;
}

void co_watch_progressed(co_comm_observer *observer)
{
    co_request **at = &observer->pending;
    uint64_t now = 0;

    while (*at) {
        co_request *request = *at;

        if (!request->done) {
            at = &request->next_watched;
            continue;
        }
        now = now ? now : co_clock_ns();
        *at = request->next_watched;
        request->observer = NULL;
        observer->done(observer->arg, &request->args, request->posted_ns, now);
    }
}

/* An incomplete request is destroyed only after a failure. */
void co_watch_forget(co_request *request)
{
    co_request **at = &request->observer->pending;

    co_watch_progressed(request->observer);
    while (*at && *at != request)
        at = &(*at)->next_watched;
    if (*at)
        *at = request->next_watched;
}

/* The transport may have delegated to another communicator, which then owns the request. */
static void watch_note(co_comm_observer *observer, co_request *request)
{
    request->observer = observer;
    request->posted_ns = co_clock_ns();
    request->next_watched = observer->pending;
    observer->pending = request;
}

void co_watch_queue(co_comm *comm, const co_coll_args *args, co_queue *queue, bool begins)
{
    if (comm->observer && comm->observer->queued)
        comm->observer->queued(comm->observer->arg, args, queue, begins);
}

void co_watch_post(co_comm *comm, co_request *request, const co_coll_args *args)
{
    const int peer = co_comm_is_tree(args) ? args->tree->leaves : args->peer;
    co_watch *w = comm->watch;
    co_watch_op *op;

    if (comm->observer && !(request->whole && comm->observer->queued))
        watch_note(comm->observer, request);
    if (!w)
        return;
    request->number = watch_get(&w->posted);
    op = &w->op[request->number % CO_WATCH_OPS];
    watch_set(&op->done_ns, 0);
    watch_set(&op->what, (uint64_t)args->coll | (uint64_t)args->dtype << 8 |
                             (uint64_t)args->op << 16 | (uint64_t)(uint32_t)peer << 32);
    watch_set(&op->count, args->count);
    watch_set(&op->posted_ns, co_clock_coarse_ns());
    watch_publish(&w->posted, request->number + 1);
}

void co_watch_ran(co_request *request)
{
    co_watch *w = request->comm->watch;
    co_watch_op *op;

    if (!w)
        return;
    op = &w->op[request->number % CO_WATCH_OPS];
    watch_set(&op->done_ns, watch_get(&op->posted_ns));
}

void co_watch_done(co_request *request)
{
    co_watch *w = request->comm->watch;

    if (request->observer)
        co_watch_progressed(request->observer);
    /* An older entry of the ring has been overwritten. */
    if (w && watch_get(&w->posted) - request->number <= CO_WATCH_OPS)
        watch_set(&w->op[request->number % CO_WATCH_OPS].done_ns, co_clock_coarse_ns());
}

void co_watch_wait(co_request *request, uint64_t since_ns)
{
    co_watch *w = request->comm->watch;

    if (!w)
        return;
    watch_set(&w->waiting_ns, since_ns);
    watch_publish(&w->waiting, request->number + 1);
}

void co_watch_wait_over(co_request *request, uint64_t now_ns)
{
    co_watch *w = request->comm->watch;

    if (!w)
        return;
    watch_set(&w->waited_ns, watch_get(&w->waited_ns) + now_ns - watch_get(&w->waiting_ns));
    watch_set(&w->waiting, 0);
}

uint64_t co_watch_stalled_ns(const co_watch *watch, uint64_t now_ns)
{
    const bool waits = watch_get(&watch->waiting) != 0;
    const uint64_t since = watch_get(waits ? &watch->waiting_ns : &watch->beat_ns);

    return now_ns > since ? now_ns - since : 0;
}

/* ---- the end of a rank ---- */

void co_watch_go(co_watch *watch, int how)
{
    int here = 0;

    atomic_compare_exchange_strong_explicit(&watch->gone, &here, how, memory_order_release,
                                            memory_order_relaxed);
}

int co_watch_gone(const co_watch *watch)
{
    return atomic_load_explicit(&((co_watch *)watch)->gone, memory_order_acquire);
}

/* ---- in words ---- */

const char *co_phase_name(co_phase phase)
{
    static const char *const names[CO_PHASE_COUNT] = {"starting",   "reading data", "computing",
                                                      "evaluating", "saving",       "ending"};

    return (unsigned)phase < CO_PHASE_COUNT ? names[phase] : "unknown";
}

static void watch_add(char *out, size_t size, const char *fmt, ...) CO_PRINTF(3, 4);
static void watch_add(char *out, size_t size, const char *fmt, ...)
{
    const size_t used = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + used, size - used, fmt, args);
    va_end(args);
}

/* The process state in /proc/PID/task/TID/stat: the letter after the last ')'; 0: gone. */
static char watch_process_state(const co_watch *w)
{
    char path[96], text[512];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", atomic_load(&((co_watch *)w)->pid),
             atomic_load(&((co_watch *)w)->tid));
    at = co_process_stat(text, sizeof(text), path);
    return at && at[0] && at[1] ? at[1] : 0;
}

bool co_watch_is_stopped(const co_watch *watch)
{
    const char state = watch_process_state(watch);

    return state == 'T' || state == 't';
}

static uint64_t watch_swapped_kib(const co_watch *w)
{
    char path[64], line[256];
    uint64_t kib = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", atomic_load(&((co_watch *)w)->pid));
    file = co_open_system(path);
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmSwap:", 7) == 0)
            kib = strtoull(line + 7, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static void watch_add_state(char *out, size_t size, const co_watch *w)
{
    const uint64_t swapped = watch_swapped_kib(w);

    switch (watch_process_state(w)) {
    case 'T':
        watch_add(out, size, " is stopped by a signal,");
        break;
    case 't':
        watch_add(out, size, " is held by a debugger,");
        break;
    case 'D':
        watch_add(out, size, " waits for a disk,");
        break;
    case 'Z':
    case 'X':
    case 0:
        watch_add(out, size, " is dead,");
        break;
    default:
        break;
    }
    if (swapped)
        watch_add(out, size, " has %llu MiB swapped out,", (unsigned long long)(swapped >> 10));
}

void co_watch_add_step(char *out, size_t size, const co_watch *w)
{
    const uint64_t step = w ? watch_get(&w->step) : 0;

    if (step)
        watch_add(out, size, ", %s in step %llu",
                  co_phase_name((co_phase)atomic_load(&((co_watch *)w)->phase)),
                  (unsigned long long)step);
}

void co_watch_describe_killed(char *out, size_t size, const co_watch *w, int signal)
{
    snprintf(out, size, "killed by signal %d (%s)", signal, strsignal(signal));
    co_watch_add_step(out, size, w);
}

static void watch_add_op(char *out, size_t size, const co_watch_op *op)
{
    const uint64_t what = watch_get(&op->what);
    const co_coll coll = (co_coll)(what & 255);
    const co_coll_descriptor descriptor = {.coll = (uint8_t)coll,
                                           .dtype_op =
                                               (uint8_t)((what >> 8 & 15) | (what >> 16 & 15) << 4),
                                           .root = (uint16_t)(what >> 32),
                                           .count = watch_get(&op->count)};
    char text[CO_COMM_DESCRIBE_MAX];

    watch_add(out, size, "%s", co_comm_describe(text, sizeof(text), &descriptor));
    if (coll == CO_COLL_SEND || coll == CO_COLL_RECV)
        watch_add(out, size, " %s rank %d", coll == CO_COLL_SEND ? "to" : "from", descriptor.root);
}

/* "; it waits for 2.0 s in ...", "; its last operation ..., was finished 1.2 s ago". */
static void watch_add_last(char *out, size_t size, const co_watch *w, uint64_t now)
{
    const uint64_t posted = atomic_load(&((co_watch *)w)->posted);
    const uint64_t waiting = atomic_load(&((co_watch *)w)->waiting);
    const uint64_t number = waiting ? waiting - 1 : posted - 1;
    const co_watch_op *op = &w->op[number % CO_WATCH_OPS];
    uint64_t done;

    if (!posted) {
        watch_add(out, size, "; it has called no operation yet");
        return;
    }
    done = watch_get(&op->done_ns);
    if (waiting)
        watch_add(out, size, "; it waits for %.1f s in operation %llu, ",
                  co_clock_seconds(watch_get(&w->waiting_ns), now), (unsigned long long)number);
    else
        watch_add(out, size, "; its last operation %llu, ", (unsigned long long)number);
    watch_add_op(out, size, op);
    if (!waiting)
        watch_add(out, size, ", was %s %.1f s ago", done ? "finished" : "started",
                  co_clock_seconds(done ? done : watch_get(&op->posted_ns), now));
}

char *co_watch_describe(char *out, size_t size, const co_watch *w)
{
    const uint64_t now = co_clock_ns(), step = watch_get(&w->step);
    char host[65] = "", line[CO_LOG_TAIL_LINE];

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0';
    snprintf(out, size, "rank %d (process %d on %s)", atomic_load(&((co_watch *)w)->rank),
             atomic_load(&((co_watch *)w)->pid), host);
    watch_add_state(out, size, w);
    watch_add(out, size, " %s for %.1f s",
              co_phase_name((co_phase)atomic_load(&((co_watch *)w)->phase)),
              co_clock_seconds(watch_get(&w->phase_ns), now));
    if (step)
        watch_add(out, size, " in step %llu", (unsigned long long)step);
    watch_add_last(out, size, w, now);
    for (int back = CO_LOG_TAIL_LINES; back > 0; back--)
        if (co_log_tail_line(line, &w->tail, back))
            watch_add(out, size, "; it said: %s", line);
    return out;
}
