/*
 * state.c - copies the state of a run from ranks into one block of memory, and back.
 *
 * A common array is copied once, one slice per rank; an array that each rank has its own of is
 * copied by its rank. The meaning of arrays is unknown here, except for the means that replace own
 * arrays on another number of ranks.
 */
#include "state/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "comm/queued.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "device/device.h"
#include "model/metrics.h"
#include "model/model.h"
#include "state/parts.h"

#define STATE_ALIGN ((size_t)64)

static co_status state_add(co_state_shape *shape, const char *name, size_t n, bool buffer, bool own)
{
    co_state_array *array = &shape->array[shape->n_array];

    if (shape->n_array == CO_STATE_MAX_ARRAYS)
        return co_fail(CO_E_UNSUPPORTED, "this run has more than %d arrays of state",
                       CO_STATE_MAX_ARRAYS);
    for (int i = 0; i < shape->n_array; i++)
        if (strcmp(shape->array[i].name, name) == 0)
            return co_fail(CO_E_USAGE,
                           "two arrays of this run's state are called '%s': one of a plugin needs "
                           "another name",
                           name);
    shape->n_array++;
    *array = (co_state_array){.n = n, .buffer = buffer, .own = own};
    snprintf(array->name, sizeof(array->name), "%.*s", CO_DISTRIBUTED_MAX_NAME - 1, name);
    return CO_OK;
}

co_status co_state_shape_of(co_state_shape *out, const co_distributed_values *update,
                            const co_model *model, bool ema, int capacity)
{
    const co_store *store = model->store;
    co_distributed_array list[CO_STATE_MAX_ARRAYS];
    bool own_weights = false;
    int n = 0;

    *out = (co_state_shape){.capacity = capacity, .ema = ema, .n_param = model->graph->n_param};
    CO_TRY(co_distributed_list(list, &n, &own_weights, CO_STATE_MAX_ARRAYS, update));
    CO_TRY(state_add(out, "param", store->n, false, own_weights));
    CO_TRY(state_add(out, "buffer", store->n_buffer, true, true));
    if (ema) {
        CO_TRY(state_add(out, CO_STATE_EMA, store->n, false, false));
        CO_TRY(state_add(out, "ema.buffer", store->n_buffer, true, true));
    }
    for (int i = 0; i < n; i++) {
        CO_TRY(state_add(out, list[i].name, store->n, false, list[i].own));
        out->array[out->n_array - 1].share = list[i].share;
        out->array[out->n_array - 1].carry = list[i].carry;
    }
    return CO_OK;
}

/* Set *offset to the aligned *end and advance *end by `count` elements of `size`. -1: overflow. */
static int state_place(size_t *offset, size_t *end, size_t count, size_t size)
{
    size_t bytes;

    *offset = *end;
    if (co_mul_size(&bytes, count, size) != 0 || bytes > SIZE_MAX / 4 || *end > SIZE_MAX / 4)
        return -1;
    *end += (bytes + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
    return 0;
}

/* Compute the offsets of what follows the struct, and the size of the block. */
static co_status state_lay_out(size_t *end, size_t *rank, size_t *missed, size_t *offset,
                               const co_state_shape *shape)
{
    const size_t capacity = (size_t)shape->capacity;
    size_t head;
    int bad;

    *end = 0;
    bad = state_place(&head, end, 1, sizeof(co_state));
    bad |= state_place(rank, end, capacity, sizeof(co_rank_point));
    bad |= state_place(missed, end, (size_t)shape->n_param, sizeof(uint64_t));
    for (int i = 0; i < shape->n_array && bad == 0; i++) {
        size_t count = shape->array[i].n;

        if (shape->array[i].own)
            bad = co_mul_size(&count, count, capacity);
        bad |= state_place(&offset[i], end, count, sizeof(float));
    }
    return bad ? co_fail(CO_E_NOMEM, "out of memory for the state of %d ranks", shape->capacity)
               : CO_OK;
}

static void *state_take_memory(size_t bytes, bool shared)
{
    void *block;

    if (!shared)
        return co_calloc_aligned(bytes, 1);
    block = co_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (block)
        return block;
    co_fail(CO_E_NOMEM, "out of memory (asked for %zu bytes that ranks share)", bytes);
    return NULL;
}

co_status co_state_create(co_state **out, const co_state_shape *shape, bool shared)
{
    size_t end, rank, missed, offset[CO_STATE_MAX_ARRAYS];
    co_state *state;
    char *block;

    CO_TRY(state_lay_out(&end, &rank, &missed, offset, shape));
    block = state_take_memory(end, shared);
    if (!block)
        return CO_E_NOMEM;
    state = (co_state *)(void *)block;
    *state = (co_state){.shape = *shape, .shared = shared, .bytes = end};
    state->rank = (co_rank_point *)(void *)(block + rank);
    state->missed = (uint64_t *)(void *)(block + missed);
    for (int i = 0; i < shape->n_array; i++)
        state->shape.array[i].data = (float *)(void *)(block + offset[i]);
    *out = state;
    return CO_OK;
}

void co_state_destroy(co_state *state)
{
    if (!state)
        return;
    if (state->shared)
        munmap(state, state->bytes);
    else
        co_free(state);
}

int co_state_copies(const co_state *state, int array)
{
    return state->shape.array[array].own ? state->ranks : 1;
}

/* The rank's live array i, in the order of co_state_shape_of; NULL after the last. *n: elements. */
static float *state_live(size_t *n, bool *own, const co_state_source *from, int i)
{
    const co_store *store = from->store;
    const int ema = CO_STATE_MORE, first = ema + (from->ema ? 2 : 0);
    const bool buffer = i == CO_STATE_BUFFER || (from->ema && i == ema + 1);
    co_distributed_array array;

    *n = buffer ? store->n_buffer : store->n;
    *own = i == CO_STATE_PARAM ? co_distributed_owns_weights(from->distributed) : buffer;
    if (i == CO_STATE_PARAM)
        return store->param;
    if (i == CO_STATE_BUFFER)
        return store->buffer;
    if (i < first)
        return i == ema ? from->ema->param : from->ema->buffer;
    if (!co_distributed_array_at(&array, from->distributed, i - first))
        return NULL;
    *own = array.own;
    return array.data;
}

/* Whether a rank has its parts of live array i alone. */
static bool state_is_divided(const co_state_source *from, int i)
{
    return co_distributed_is_divided(from->distributed, i - CO_STATE_MORE - (from->ema ? 2 : 0));
}

/* The rank's point; `run` (may be NULL) gets the run's. */
static co_rank_point state_where(co_run_point *run, const co_state_source *source)
{
    const co_distributed *d = source->distributed;
    const uint64_t *counters;
    co_run_point point = {0};
    co_rank_point own = {0};
    size_t n = 0;

    source->tell(&point, &own, source->arg);
    point.last.rank = NULL;
    own.updates = co_distributed_updates(d);
    own.scaler = co_distributed_scaler(source->distributed)->state;
    own.merge = co_distributed_merge(d);
    counters = co_distributed_counters(d, &n);
    for (size_t i = 0; counters && i < n && i < CO_STRATEGY_MAX_COUNTERS; i++)
        own.count[i] = counters[i];
    if (run)
        *run = point;
    return own;
}

static co_status state_check(const co_state_array *array, const float *live, size_t n)
{
    if (live && n == array->n)
        return CO_OK;
    return co_fail(CO_E_FAILED, "the state has an array %s of %zu elements, and the run has not",
                   array->name, array->n);
}

/* Copy slice `part` of `parts` of common arrays, and this rank's own arrays as copy `rank`. */
static co_status state_copy(co_state *state, const co_state_source *source, int rank, int part,
                            int parts)
{
    co_queue *queue = source->store->queue;

    for (int i = 0; i < state->shape.n_array; i++) {
        const co_state_array *array = &state->shape.array[i];
        size_t begin = 0, end = array->n, n;
        float *to = array->data;
        bool own;
        const float *live = state_live(&n, &own, source, i);

        CO_TRY(state_check(array, live, n));
        if (!array->own && state_is_divided(source, i)) {
            CO_TRY(co_state_copy_parts(to, live, source));
            continue;
        }
        if (array->own) {
            to += (size_t)rank * array->n;
        } else {
            begin = co_store_slice(array->n, part, parts);
            end = co_store_slice(array->n, part + 1, parts);
        }
        CO_TRY(co_queue_copy(queue, to + begin, live + begin, (end - begin) * sizeof(float)));
    }
    if (rank == 0) {
        state->ranks = co_comm_size(source->comm);
        co_distributed_missed(state->missed, source->distributed);
    }
    state->rank[rank] = state_where(rank == 0 ? &state->point : NULL, source);
    return co_queue_wait(queue, CO_DEVICE_WAIT_MS);
}

static co_status state_settle(const co_state_source *source)
{
    return source->settle ? source->settle(source->arg) : CO_OK;
}

co_status co_state_capture_part(co_state *state, const co_state_source *source)
{
    const int rank = co_comm_rank(source->comm);

    CO_TRY(state_settle(source));
    return state_copy(state, source, rank, rank, co_comm_size(source->comm));
}

/* Ranks that divide the update have optimizer state only for their slice. Send the slices to rank
   0, if it is one of them, which collects them in its state. Where the ranks of a host divide it,
   other hosts have the same values. */
static co_status state_gather_parts(co_state *state, const co_state_source *source)
{
    co_comm *near = co_distributed_dividers(source->distributed);
    const int ranks = near ? co_comm_size(near) : 1;
    int32_t first = co_comm_rank(source->comm);
    const float *live;
    size_t n;
    bool own;

    if (near)
        CO_TRY(co_comm_bcast(near, &first, 1, CO_I32, 0));
    for (int i = CO_STATE_MORE; first == 0 && (live = state_live(&n, &own, source, i)) != NULL; i++)
        for (int r = 1; r < ranks && !own && state_is_divided(source, i); r++)
            CO_TRY(
                co_state_gather_parts(state ? state->shape.array[i].data : NULL, live, source, r));
    return CO_OK;
}

/* Gather own arrays and points of all ranks on rank 0, which has the common arrays. */
static co_status state_gather(co_state *state, const co_state_source *source)
{
    const bool root = state && co_comm_rank(source->comm) == 0;
    const int ranks = co_comm_size(source->comm);
    const co_rank_point point = state_where(NULL, source);
    const float *live;
    size_t n;
    bool own;

    if (root)
        CO_TRY(state_copy(state, source, 0, 0, 1));
    CO_TRY(state_gather_parts(state, source));
    CO_TRY(
        co_comm_gather(source->comm, root ? state->rank : NULL, &point, sizeof(point), CO_U8, 0));
    for (int i = 0; ranks > 1 && (live = state_live(&n, &own, source, i)) != NULL; i++)
        if (own)
            CO_TRY(
                co_state_gather_copies(root ? state->shape.array[i].data : NULL, source, live, n));
    return co_queue_wait(source->store->queue, CO_DEVICE_WAIT_MS);
}

co_status co_state_capture(co_state *state, const co_state_source *source)
{
    CO_TRY(state_settle(source));
    CO_TRY(co_distributed_quiesce(source->distributed));
    if (!state || !state->shared)
        return state_gather(state, source);
    CO_TRY(co_state_capture_part(state, source));
    return co_comm_barrier(source->comm);
}

/* Whether the mean weights copies by the strategy's shares. */
static bool state_has_shares(const co_state *state, int array)
{
    double sum = 0;

    for (int c = 0; c < state->ranks; c++)
        sum += state->rank[c].merge.share;
    return (array == CO_STATE_PARAM || array == CO_STATE_BUFFER) && sum > 0 &&
           state->shape.array[CO_STATE_PARAM].own && co_state_copies(state, array) == state->ranks;
}

bool co_state_steps_on(const co_state *state)
{
    const co_strategy_merge *merge = &state->rank[0].merge;

    return state->ranks > 1 && state_has_shares(state, CO_STATE_PARAM) &&
           (merge->rate != 1 || merge->velocity != 0);
}

/* Apply the strategy's outer step to the mean of a round. */
static void state_step_on(float *mean, const co_state *state, size_t begin, size_t end)
{
    const co_strategy_merge *merge = &state->rank[0].merge;
    const float *from, *velocity;
    int i = CO_STATE_MORE;

    while (!state->shape.array[i].carry)
        i++;
    from = state->shape.array[i].data;
    velocity = state->shape.array[i + 1].data;
    for (size_t e = begin; e < end; e++) {
        const double x = (double)from[e];

        mean[e] = (float)(x - merge->rate * (x - (double)mean[e]) -
                          merge->velocity * (double)velocity[e]);
    }
}

void co_state_mean(float *out, const co_state *state, int array, size_t begin, size_t end)
{
    const co_state_array *from = &state->shape.array[array];
    const bool shares = state_has_shares(state, array);
    const int copies = co_state_copies(state, array);

    for (size_t e = begin; e < end; e++) {
        double sum = 0;

        for (int c = 0; c < copies; c++) {
            const double copy = (double)from->data[(size_t)c * from->n + e];

            sum += shares ? state->rank[c].merge.share * copy : copy;
        }
        out[e] = (float)(shares ? sum : sum / copies);
    }
    if (array == CO_STATE_PARAM && co_state_steps_on(state))
        state_step_on(out, state, begin, end);
}

/* Write elements [begin, end) of the mean over copies, times `factor`, to the rank's array. */
static co_status state_put_mean(float *live, const co_state *state, int array, size_t begin,
                                size_t end, float factor, co_queue *queue)
{
    float *mean = co_calloc(end + 1, sizeof(*mean));
    co_status st;

    if (!mean)
        return CO_E_NOMEM;
    co_state_mean(mean, state, array, begin, end);
    for (size_t e = begin; e < end; e++)
        mean[e] *= factor;
    st = co_queue_copy_now(queue, live + begin, mean + begin, (end - begin) * sizeof(*mean));
    co_free(mean);
    return st;
}

bool co_state_is_common(const co_state *state, int array)
{
    const co_state_array *a = &state->shape.array[array];

    for (int c = 1; c < co_state_copies(state, array); c++)
        if (memcmp(a->data, a->data + (size_t)c * a->n, a->n * sizeof(float)) != 0)
            return false;
    return true;
}

static co_status state_put_array(const co_state_source *to, const co_state *state, int i)
{
    co_queue *queue = to->store->queue;
    const co_state_array *array = &state->shape.array[i];
    const int rank = co_comm_rank(to->comm), ranks = co_comm_size(to->comm);
    const co_comm *near = i == CO_STATE_PARAM ? co_distributed_sharers(to->distributed) : NULL;
    const int copies = co_state_copies(state, i);
    /* Ranks that share weights each write a slice. */
    size_t begin = near ? co_store_slice(array->n, co_comm_rank(near), co_comm_size(near)) : 0;
    size_t end =
        near ? co_store_slice(array->n, co_comm_rank(near) + 1, co_comm_size(near)) : array->n;
    const float *from = array->data;
    size_t n;
    bool own;
    float *live = state_live(&n, &own, to, i);

    CO_TRY(state_check(array, live, n));
    if (copies == 1 && !array->share && state_is_divided(to, i)) {
        CO_TRY(co_state_copy_parts(live, array->data, to));
        return co_queue_wait(queue, CO_DEVICE_WAIT_MS);
    }
    /* Each rank held a part of a sum; distribute the sum equally. */
    if (array->share && state->ranks != ranks)
        return state_put_mean(live, state, i, 0, n, (float)state->ranks / (float)ranks, queue);
    if (copies == ranks && ranks > 1)
        from += (size_t)rank * array->n;
    else if (copies > 1 && !co_state_is_common(state, i)) {
        if (i == CO_STATE_PARAM)
            return co_fail(CO_E_USAGE,
                           "%d ranks had weights of their own at step %llu; continue with as many "
                           "(now: %d)",
                           copies, (unsigned long long)state->point.step, ranks);
        return state_put_mean(live, state, i, begin, end, 1, queue);
    }
    return co_queue_copy_now(queue, live + begin, from + begin, (end - begin) * sizeof(float));
}

/* This rank's point. On another number of ranks, rank 0 gets the sums of all. */
static co_rank_point state_pick_point(const co_state *state, int rank, int ranks)
{
    co_rank_point point = {.updates = state->rank[0].updates,
                           .scaler = state->rank[0].scaler,
                           .recent = co_recent_empty(&state->rank[0].recent)};

    if (state->ranks == ranks)
        return state->rank[rank];
    for (int r = 0; r < state->ranks; r++) {
        const co_rank_point *from = &state->rank[r];

        point.updates = from->updates > point.updates ? from->updates : point.updates;
        if (rank != 0)
            continue;
        co_metrics_add(&point.seen, &from->seen);
        point.bad_samples += from->bad_samples;
        co_recent_add(&point.recent, &from->recent);
        for (size_t i = 0; i < CO_METRICS_MAX_SUMS; i++)
            co_sum_join(&point.metrics[i], &from->metrics[i]);
    }
    return point;
}

co_status co_state_check(const co_state *state, uint64_t batch, uint64_t steps_per_epoch)
{
    const co_run_point *point = &state->point;

    if (point->batch == batch && point->steps_per_epoch == steps_per_epoch)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "the run so far had %llu samples a step and %llu steps an epoch, and with this "
                   "config and these ranks it would have %llu and %llu; continue it with the %d "
                   "rank%s that saved it",
                   (unsigned long long)point->batch, (unsigned long long)point->steps_per_epoch,
                   (unsigned long long)batch, (unsigned long long)steps_per_epoch, state->ranks,
                   co_plural((uint64_t)state->ranks));
}

co_status co_state_restore(co_rank_point *own, const co_state_source *to, const co_state *state)
{
    co_comm *near = co_distributed_sharers(to->distributed);
    uint64_t *counters;
    size_t n = 0;

    *own = state_pick_point(state, co_comm_rank(to->comm), co_comm_size(to->comm));
    for (int i = 0; i < state->shape.n_array; i++)
        CO_TRY(state_put_array(to, state, i));
    if (own->scaler.scale > 0)
        co_distributed_scaler(to->distributed)->state = own->scaler;
    if (to->ema)
        to->ema->updates = state->point.step / (uint64_t)to->ema->options.every;
    counters = co_distributed_counters(to->distributed, &n);
    for (size_t i = 0; counters && i < n && i < CO_STRATEGY_MAX_COUNTERS; i++)
        counters[i] = own->count[i];
    if (near)
        CO_TRY(co_comm_barrier(near));
    CO_TRY(co_distributed_forget_others(to->distributed));
    return co_distributed_resume(to->distributed, state->point.step, own->updates, state->missed);
}
