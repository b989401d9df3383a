/*
 * state.c - the state of a run: from ranks into one block of memory, and back.
 *
 * A common array is copied once, by slices of it, one per rank; an array that each rank has of its
 * own is copied by its rank. Nothing here knows what an array means, but for the mean that takes
 * the place of own arrays on another number of ranks.
 */
#include "state/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/mem.h"
#include "device/device.h"
#include "model/metrics.h"
#include "train/trainer_internal.h"

#define STATE_ALIGN ((size_t)64)

static co_status state_add(co_state_shape *shape, const char *name, size_t n, bool buffer, bool own)
{
    co_state_array *array = &shape->array[shape->n_array];

    if (shape->n_array == CO_STATE_MAX_ARRAYS)
        return co_fail(CO_E_UNSUPPORTED, "this run has more than %d arrays of state",
                       CO_STATE_MAX_ARRAYS);
    shape->n_array++;
    *array = (co_state_array){.n = n, .buffer = buffer, .own = own};
    snprintf(array->name, sizeof(array->name), "%.*s", CO_DISTRIBUTED_MAX_NAME - 1, name);
    return CO_OK;
}

co_status co_state_shape_of(co_state_shape *out, const co_job *job, int capacity)
{
    const co_spec *spec = &job->spec;
    const co_store *store = job->model->store;
    const co_distributed_values values = {.optimizer = spec->optimizer,
                                          .schedule = spec->schedule,
                                          .strategy = spec->strategy,
                                          .config = spec->config};
    co_distributed_array list[CO_STATE_MAX_ARRAYS];
    bool own_weights = false;
    int n = 0;

    *out = (co_state_shape){.capacity = capacity};
    CO_TRY(co_distributed_list(list, &n, &own_weights, CO_STATE_MAX_ARRAYS, &values));
    CO_TRY(state_add(out, "param", store->n, false, own_weights));
    CO_TRY(state_add(out, "buffer", store->n_buffer, true, true));
    if (spec->ema) {
        CO_TRY(state_add(out, "ema", store->n, false, false));
        CO_TRY(state_add(out, "ema.buffer", store->n_buffer, true, true));
    }
    for (int i = 0; i < n; i++) {
        CO_TRY(state_add(out, list[i].name, store->n, false, list[i].own));
        out->array[out->n_array - 1].share = list[i].share;
        out->array[out->n_array - 1].carry = list[i].carry;
    }
    return CO_OK;
}

/* *offset to where `count` elements of `size` begin; *end after them. */
static int state_place(size_t *offset, size_t *end, size_t count, size_t size)
{
    size_t bytes;

    *offset = *end;
    if (co_mul_size(&bytes, count, size) != 0 || bytes > SIZE_MAX / 4 || *end > SIZE_MAX / 4)
        return -1;
    *end += (bytes + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
    return 0;
}

/* Offsets of the ranks' points and of every array in the block, and its size. */
static co_status state_lay_out(size_t *end, size_t *rank, size_t *offset,
                               const co_state_shape *shape)
{
    const size_t capacity = (size_t)shape->capacity;
    size_t head;
    int bad;

    *end = 0;
    bad = state_place(&head, end, 1, sizeof(co_state));
    bad |= state_place(rank, end, capacity, sizeof(co_rank_point));
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
    size_t end, rank, offset[CO_STATE_MAX_ARRAYS];
    co_state *state;
    char *block;

    CO_TRY(state_lay_out(&end, &rank, offset, shape));
    block = state_take_memory(end, shared);
    if (!block)
        return CO_E_NOMEM;
    state = (co_state *)(void *)block;
    *state = (co_state){.shape = *shape, .shared = shared, .bytes = end};
    state->rank = (co_rank_point *)(void *)(block + rank);
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

/* The trainer's array i, in the order of co_state_shape_of; NULL after the last. *n: elements. */
static float *state_live(size_t *n, bool *own, const trainer *t, int i)
{
    const co_store *store = t->job->model->store;
    const int ema = CO_STATE_MORE, first = ema + (t->ema ? 2 : 0);
    co_distributed_array array;
    const bool buffer = i == CO_STATE_BUFFER || (t->ema && i == ema + 1);

    *n = buffer ? store->n_buffer : store->n;
    *own = i == CO_STATE_PARAM ? co_distributed_owns_weights(t->distributed) : buffer;
    if (i == CO_STATE_PARAM)
        return store->param;
    if (i == CO_STATE_BUFFER)
        return store->buffer;
    if (i < first)
        return i == ema ? t->ema->param : t->ema->buffer;
    if (!co_distributed_array_at(&array, t->distributed, i - first))
        return NULL;
    *own = array.own;
    return array.data;
}

static void state_set_point(co_state *state, const trainer *t)
{
    double seconds = t->epoch_step ? trainer_epoch_seconds(t) : 0;

    state->ranks = co_comm_size(t->comm);
    state->point = (co_run_point){
        .epoch = t->epoch,
        .epoch_step = t->epoch_step,
        .step = t->step,
        .samples = t->samples,
        .epoch_samples = t->epoch_samples,
        .batch = t->info.batch,
        .steps_per_epoch = t->info.steps_per_epoch,
        .train_seconds = t->train_seconds,
        .epoch_seconds = seconds,
        .wall_seconds = trainer_wall_seconds(t),
        .spent = trainer_spent(t),
        .best = t->best,
        .last = t->last,
    };
    state->point.last.rank = NULL;
}

static co_rank_point state_rank_point(const trainer *t)
{
    co_rank_point point = {.seen = t->seen,
                           .means = t->means,
                           .recent = t->recent.spans,
                           .updates = co_distributed_updates(t->distributed),
                           .scaler = co_distributed_scaler(t->distributed)->state,
                           .merge = co_distributed_merge(t->distributed)};
    size_t n = 0;
    const uint64_t *counters = co_distributed_counters(t->distributed, &n);

    for (size_t i = 0; counters && i < n && i < CO_STRATEGY_MAX_COUNTERS; i++)
        point.count[i] = counters[i];
    return point;
}

static co_status state_check(const co_state_array *array, const float *live, size_t n)
{
    if (live && n == array->n)
        return CO_OK;
    return co_fail(CO_E_FAILED, "the state has an array %s of %zu elements, and the run has not",
                   array->name, array->n);
}

/* Part `part` of `parts` of what is common, and all of this rank's own as copy `rank`. */
static co_status state_copy(co_state *state, const trainer *t, int rank, int part, int parts)
{
    co_queue *queue = t->job->model->store->queue;

    for (int i = 0; i < state->shape.n_array; i++) {
        const co_state_array *array = &state->shape.array[i];
        size_t begin = 0, end = array->n, n;
        float *to = array->data;
        bool own;
        const float *live = state_live(&n, &own, t, i);

        CO_TRY(state_check(array, live, n));
        if (array->own) {
            to += (size_t)rank * array->n;
        } else {
            begin = co_store_slice(array->n, part, parts);
            end = co_store_slice(array->n, part + 1, parts);
        }
        CO_TRY(co_queue_copy(queue, to + begin, live + begin, (end - begin) * sizeof(float)));
    }
    state->rank[rank] = state_rank_point(t);
    return co_queue_wait(queue, CO_DEVICE_WAIT_MS);
}

co_status co_state_capture_part(co_state *state, const struct trainer *t)
{
    const int rank = co_comm_rank(t->comm);

    if (rank == 0)
        state_set_point(state, t);
    return state_copy(state, t, rank, rank, co_comm_size(t->comm));
}

/* Ranks that share weights update parts of them, and each has the optimizer's state of its part
   alone: from those of rank 0's host to rank 0, which has a state for it. Other hosts have the
   same. */
static co_status state_gather_parts(co_state *state, const trainer *t)
{
    co_comm *near = trainer_sharers(t);
    const int ranks = near ? co_comm_size(near) : 1;
    int32_t first = co_comm_rank(t->comm);
    const float *live;
    size_t n;
    bool own;

    if (near)
        CO_TRY(co_comm_bcast(near, &first, 1, CO_I32, 0));
    for (int i = CO_STATE_MORE; first == 0 && (live = state_live(&n, &own, t, i)) != NULL; i++)
        for (int r = 1; r < ranks && !own; r++) {
            const size_t begin = co_store_slice(n, r, ranks);
            const size_t count = co_store_slice(n, r + 1, ranks) - begin;

            if (co_comm_rank(near) == r)
                CO_TRY(co_comm_send(near, live + begin, count, CO_F32, 0));
            if (state && co_comm_rank(near) == 0)
                CO_TRY(co_comm_recv(near, state->shape.array[i].data + begin, count, CO_F32, r));
        }
    return CO_OK;
}

/* Own arrays and points of all ranks to rank 0, where what is common is. */
static co_status state_gather(co_state *state, const trainer *t)
{
    const bool root = state && co_comm_rank(t->comm) == 0;
    const co_rank_point point = state_rank_point(t);
    const float *live;
    size_t n;
    bool own;

    if (root) {
        state_set_point(state, t);
        CO_TRY(state_copy(state, t, 0, 0, 1));
    }
    CO_TRY(state_gather_parts(state, t));
    CO_TRY(co_comm_gather(t->comm, root ? state->rank : NULL, &point, sizeof(point), CO_U8, 0));
    for (int i = 0; (live = state_live(&n, &own, t, i)) != NULL; i++)
        if (own)
            CO_TRY(co_comm_gather(t->comm, root ? state->shape.array[i].data : NULL, live, n,
                                  CO_F32, 0));
    return CO_OK;
}

co_status co_state_capture(co_state *state, struct trainer *t)
{
    CO_TRY(co_distributed_settle(t->distributed));
    if (!state || !state->shared)
        return state_gather(state, t);
    CO_TRY(co_state_capture_part(state, t));
    return co_comm_barrier(t->comm);
}

/* Whether copies count by the shares that the strategy says. */
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
           (merge->way != 1 || merge->velocity != 0);
}

/* From the mean of a round to where the strategy's step along its way ends. */
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

        mean[e] =
            (float)(x - merge->way * (x - (double)mean[e]) - merge->velocity * (double)velocity[e]);
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

/* Elements begin .. end of the copies' mean times `factor`, to where the trainer has the array. */
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

static co_status state_put_array(trainer *t, const co_state *state, int i)
{
    co_queue *queue = t->job->model->store->queue;
    const co_state_array *array = &state->shape.array[i];
    const int rank = co_comm_rank(t->comm), ranks = co_comm_size(t->comm);
    const co_comm *near = i == CO_STATE_PARAM ? trainer_sharers(t) : NULL;
    const int copies = co_state_copies(state, i);
    /* Weights that ranks share are written once. */
    const size_t begin =
        near ? co_store_slice(array->n, co_comm_rank(near), co_comm_size(near)) : 0;
    const size_t end =
        near ? co_store_slice(array->n, co_comm_rank(near) + 1, co_comm_size(near)) : array->n;
    const float *from = array->data;
    size_t n;
    bool own;
    float *live = state_live(&n, &own, t, i);

    CO_TRY(state_check(array, live, n));
    /* All had a part of a sum; so have all now. */
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

/* This rank's point; on another number of ranks, rank 0 continues with the sum of all. */
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
        co_recent_add(&point.recent, &from->recent);
    }
    return point;
}

static void state_put_point(trainer *t, const co_state *state)
{
    const co_run_point *point = &state->point;
    const co_rank_point own = state_pick_point(state, co_comm_rank(t->comm), co_comm_size(t->comm));
    size_t n = 0;
    uint64_t *counters = co_distributed_counters(t->distributed, &n);

    t->epoch = point->epoch;
    t->epoch_step = point->epoch_step;
    t->step = t->first_step = point->step;
    t->samples = point->samples;
    t->epoch_samples = point->epoch_samples;
    t->train_seconds = point->train_seconds;
    t->epoch_seconds = point->epoch_seconds;
    t->earlier_seconds = point->wall_seconds;
    t->earlier = point->spent;
    t->best = point->best;
    t->last = point->last;
    t->last.rank = NULL;
    t->seen = own.seen;
    t->means = own.means;
    t->recent.spans = own.recent;
    if (own.scaler.scale > 0)
        co_distributed_scaler(t->distributed)->state = own.scaler;
    if (t->ema)
        t->ema->updates = point->step / (uint64_t)t->job->spec.ema_options.every;
    for (size_t i = 0; counters && i < n && i < CO_STRATEGY_MAX_COUNTERS; i++)
        counters[i] = own.count[i];
}

/* The plan of an epoch is the one that the state was made by. */
co_status co_state_check(const struct trainer *t, const co_state *state)
{
    const co_run_point *point = &state->point;

    if (point->batch == t->info.batch && point->steps_per_epoch == t->info.steps_per_epoch)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "the run so far had %llu samples a step and %llu steps an epoch, and with this "
                   "config and these ranks it would have %llu and %llu; it cannot continue so",
                   (unsigned long long)point->batch, (unsigned long long)point->steps_per_epoch,
                   (unsigned long long)t->info.batch, (unsigned long long)t->info.steps_per_epoch);
}

co_status co_state_restore(struct trainer *t, const co_state *state)
{
    const co_rank_point own = state_pick_point(state, co_comm_rank(t->comm), co_comm_size(t->comm));

    for (int i = 0; i < state->shape.n_array; i++)
        CO_TRY(state_put_array(t, state, i));
    state_put_point(t, state);
    if (trainer_sharers(t))
        CO_TRY(co_comm_barrier(trainer_sharers(t)));
    return co_distributed_resume(t->distributed, state->point.step, own.updates);
}
