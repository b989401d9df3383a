/*
 * shard_ahead.c - a queue of blocks, and the threads that fetch them.
 *
 * The queue is short, so that what is fetched is in the cache when it is needed and not long
 * before. Blocks that follow each other in it and in their shard are one request.
 */
#include "data/shard_ahead.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/mem.h"

#define AHEAD_QUEUE    8192 /* blocks */
#define AHEAD_RUN      4    /* blocks of a request */
#define AHEAD_THREADS  64
#define AHEAD_PAUSE_NS 200000000 /* after a failure */

typedef struct ahead_block {
    uint32_t shard;
    uint64_t block;
} ahead_block;

struct co_shard_ahead {
    co_shard_ahead_options options;
    pthread_mutex_t lock;
    atomic_bool cancel;
    pthread_t thread[AHEAD_THREADS];
    /* guarded by lock */
    pthread_cond_t wake, end, gone;
    pid_t owner; /* process whose the threads are */
    int n_thread;
    bool ending;     /* by a thread that is in co_shard_ahead_stop */
    uint64_t *asked; /* owned: a bit per block */
    ahead_block queue[AHEAD_QUEUE];
    uint64_t taken, added; /* block i is queue[i % AHEAD_QUEUE] */
};

static size_t ahead_words(const co_shard_ahead *a)
{
    return (size_t)(a->options.blocks / 64 + 1);
}

static void ahead_make_conditions(co_shard_ahead *a)
{
    pthread_condattr_t clock;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&a->wake, NULL);
    pthread_cond_init(&a->gone, NULL);
    pthread_cond_init(&a->end, &clock);
    pthread_condattr_destroy(&clock);
}

co_status co_shard_ahead_create(co_shard_ahead **out, const co_shard_ahead_options *options)
{
    co_shard_ahead *a = co_calloc(1, sizeof(*a));

    if (!a)
        return CO_E_NOMEM;
    a->options = *options;
    if (a->options.threads > AHEAD_THREADS)
        a->options.threads = AHEAD_THREADS;
    a->owner = getpid();
    pthread_mutex_init(&a->lock, NULL);
    ahead_make_conditions(a);
    a->asked = co_calloc(ahead_words(a), sizeof(*a->asked));
    if (!a->asked) {
        co_shard_ahead_destroy(a);
        return CO_E_NOMEM;
    }
    *out = a;
    return CO_OK;
}

static void ahead_forget(co_shard_ahead *a)
{
    a->taken = a->added = 0;
    memset(a->asked, 0, ahead_words(a) * sizeof(*a->asked));
}

/* Lock. Threads of a process are not those of one that was forked from it. */
static void ahead_enter(co_shard_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (a->owner == getpid())
        return;
    a->owner = getpid();
    a->n_thread = 0;
    a->ending = false;
    atomic_store(&a->cancel, false);
    ahead_make_conditions(a);
    ahead_forget(a);
}

/* Wait for blocks; false: the thread ends. */
static bool ahead_take(co_shard_run *out, co_shard_ahead *a)
{
    bool found;

    pthread_mutex_lock(&a->lock);
    while (!a->ending && a->taken == a->added)
        pthread_cond_wait(&a->wake, &a->lock);
    found = !a->ending;
    if (found) {
        const ahead_block *first = &a->queue[a->taken++ % AHEAD_QUEUE];

        *out = (co_shard_run){first->shard, first->block, first->block + 1};
        while (a->taken < a->added && out->end - out->first < AHEAD_RUN) {
            const ahead_block *next = &a->queue[a->taken % AHEAD_QUEUE];

            if (next->shard != out->shard || next->block != out->end)
                break;
            out->end++;
            a->taken++;
        }
    }
    pthread_mutex_unlock(&a->lock);
    return found;
}

static void ahead_pause(co_shard_ahead *a)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += AHEAD_PAUSE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&a->lock);
    while (!a->ending && pthread_cond_timedwait(&a->end, &a->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&a->lock);
}

static void *ahead_main(void *arg)
{
    co_shard_ahead *a = arg;
    co_shard_run run;

    while (ahead_take(&run, a))
        if (!a->options.fetch(a->options.arg, &run, &a->cancel))
            ahead_pause(a);
    return NULL;
}

/* Under the lock. Signals are for the thread that runs the training. */
static void ahead_start(co_shard_ahead *a)
{
    sigset_t all, before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (a->n_thread < a->options.threads && error == 0) {
        error = pthread_create(&a->thread[a->n_thread], NULL, ahead_main, a);
        a->n_thread += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void co_shard_ahead_add(co_shard_ahead *a, uint64_t number, uint32_t shard, uint64_t block)
{
    uint64_t *word = &a->asked[number / 64];
    const uint64_t bit = UINT64_C(1) << number % 64;

    ahead_enter(a);
    if (!a->ending && !(*word & bit) && a->added - a->taken < AHEAD_QUEUE) {
        *word |= bit;
        a->queue[a->added++ % AHEAD_QUEUE] = (ahead_block){shard, block};
        if (a->n_thread == 0)
            ahead_start(a);
        pthread_cond_signal(&a->wake);
    }
    pthread_mutex_unlock(&a->lock);
}

void co_shard_ahead_stop(co_shard_ahead *a)
{
    ahead_enter(a);
    while (a->ending)
        pthread_cond_wait(&a->gone, &a->lock);
    if (a->n_thread == 0) {
        pthread_mutex_unlock(&a->lock);
        return;
    }
    a->ending = true;
    atomic_store(&a->cancel, true);
    pthread_cond_broadcast(&a->wake);
    pthread_cond_broadcast(&a->end);
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < a->n_thread; i++)
        pthread_join(a->thread[i], NULL);
    pthread_mutex_lock(&a->lock);
    a->n_thread = 0;
    a->ending = false;
    atomic_store(&a->cancel, false);
    ahead_forget(a);
    pthread_cond_broadcast(&a->gone);
    pthread_mutex_unlock(&a->lock);
}

void co_shard_ahead_destroy(co_shard_ahead *a)
{
    if (!a)
        return;
    if (a->asked)
        co_shard_ahead_stop(a);
    pthread_cond_destroy(&a->wake);
    pthread_cond_destroy(&a->end);
    pthread_cond_destroy(&a->gone);
    pthread_mutex_destroy(&a->lock);
    co_free(a->asked);
    co_free(a);
}
