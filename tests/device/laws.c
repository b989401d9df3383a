/* laws.c - the contract of ext/device.h as tests. CO_MEMORY_DEVICE is read through copies only. */
#include "device/laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/mem.h"
#include "waits.h"

#define KINDS 4
#define BYTES 5000

static const co_memory kinds[KINDS] = {CO_MEMORY_HOST, CO_MEMORY_PINNED, CO_MEMORY_DEVICE,
                                       CO_MEMORY_EXCHANGED};

static unsigned char *take(co_device *device, size_t bytes, co_memory kind)
{
    void *block = NULL;

    assert_int_equal(co_device_alloc(&block, device, bytes, kind), CO_OK);
    return block;
}

static co_queue *make_queue(co_device *device)
{
    co_queue *queue = NULL;

    assert_int_equal(co_queue_create(&queue, device), CO_OK);
    return queue;
}

static co_fence *make_fence(co_device *device)
{
    co_fence *fence = NULL;

    assert_int_equal(co_fence_create(&fence, device), CO_OK);
    return fence;
}

static void draw(unsigned char *out, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (unsigned char)(seed >> 24);
    }
}

static void check_bytes(co_queue *queue, const void *at, int byte, size_t n)
{
    static unsigned char seen[BYTES];

    assert_int_in_range(n, 0, BYTES);
    assert_int_equal(co_queue_copy_now(queue, seen, at, n), CO_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(seen[i], byte);
}

static void memory_is_zeroed_aligned_and_apart(co_device *device)
{
    static const size_t sizes[] = {0, 1, 63, 64, BYTES};
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    co_queue *queue = make_queue(device);

    for (int k = 0; k < KINDS; k++) {
        unsigned char *block[N];

        for (int i = 0; i < N; i++) {
            block[i] = take(device, sizes[i], kinds[k]);
            assert_non_null(block[i]);
            assert_int_equal((uintptr_t)block[i] % CO_DEVICE_ALIGN, 0);
            check_bytes(queue, block[i], 0, sizes[i]);
            assert_int_equal(co_queue_fill(queue, block[i], 0xa5, sizes[i]), CO_OK);
        }
        for (int i = 0; i < N; i++) {
            check_bytes(queue, block[i], 0xa5, sizes[i]);
            for (int j = 0; j < i; j++)
                assert_ptr_not_equal(block[i], block[j]);
            co_device_free(device, block[i], kinds[k]);
        }
        co_device_free(device, NULL, kinds[k]);
    }
    co_queue_destroy(queue);
}

static void memory_forgotten_can_be_written_again(co_device *device)
{
    co_queue *queue = make_queue(device);
    unsigned char *block = take(device, BYTES, CO_MEMORY_DEVICE);

    assert_int_equal(co_queue_fill(queue, block, 1, BYTES), CO_OK);
    assert_int_equal(co_queue_wait(queue, WAITS_MS), CO_OK);
    co_device_forget(device, block, BYTES);
    assert_int_equal(co_queue_fill(queue, block, 2, BYTES), CO_OK);
    check_bytes(queue, block, 2, BYTES);
    co_device_free(device, block, CO_MEMORY_DEVICE);
    co_queue_destroy(queue);
}

static void memory_that_is_not_there_is_refused(co_device *device)
{
    for (int k = 0; k < KINDS; k++) {
        void *block = NULL;

        assert_int_equal(co_device_alloc(&block, device, SIZE_MAX, kinds[k]), CO_E_NOMEM);
        assert_null(block);
    }
}

static co_status take_one_of_each(co_device *device)
{
    void *block[KINDS] = {NULL};
    co_queue *queue = NULL;
    co_fence *fence = NULL;
    co_status st = CO_OK;

    for (int k = 0; k < KINDS && st == CO_OK; k++)
        st = co_device_alloc(&block[k], device, BYTES, kinds[k]);
    if (st == CO_OK)
        st = co_queue_create(&queue, device);
    if (st == CO_OK)
        st = co_fence_create(&fence, device);
    if (st == CO_OK)
        st = co_queue_copy_now(queue, block[2], block[0], BYTES);
    co_queue_destroy(queue);
    co_fence_destroy(fence);
    for (int k = 0; k < KINDS; k++)
        co_device_free(device, block[k], kinds[k]);
    return st;
}

static void every_failed_allocation_is_survived(co_device *device)
{
    uint64_t k = 0;
    co_status st;

    do {
        co_mem_fail_at(++k);
        st = take_one_of_each(device);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
    } while (st != CO_OK);
    co_mem_fail_at(0);
    assert_true(k > KINDS);
}

/* Copies between every pair of kinds at unaligned addresses; bytes around the target stay. */
static void check_copy(co_device *device, co_queue *queue, co_memory from_kind, co_memory to_kind,
                       size_t n)
{
    static unsigned char sent[BYTES], got[BYTES + 8];
    unsigned char *from = take(device, n + 3, from_kind), *to = take(device, n + 8, to_kind);

    draw(sent, n, (unsigned)n + 1);
    assert_int_equal(co_queue_copy_now(queue, from + 3, sent, n), CO_OK);
    assert_int_equal(co_queue_fill(queue, to, 0x5a, n + 8), CO_OK);
    assert_int_equal(co_queue_copy(queue, to + 5, from + 3, n), CO_OK);
    assert_int_equal(co_queue_copy_now(queue, got, to, n + 8), CO_OK);
    assert_memory_equal(got + 5, sent, n);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(got[i], 0x5a);
    for (size_t i = n + 5; i < n + 8; i++)
        assert_int_equal(got[i], 0x5a);
    co_device_free(device, from, from_kind);
    co_device_free(device, to, to_kind);
}

static void copies_go_in_all_directions(co_device *device)
{
    static const size_t sizes[] = {0, 1, 63, 4097};
    co_queue *queue = make_queue(device);

    for (int from = 0; from < KINDS; from++)
        for (int to = 0; to < KINDS; to++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
                check_copy(device, queue, kinds[from], kinds[to], sizes[s]);
    co_queue_destroy(queue);
}

/* Each operation depends on the one before it. */
static void a_queue_keeps_its_order(co_device *device)
{
    co_queue *queue = make_queue(device);
    unsigned char *a = take(device, BYTES, CO_MEMORY_DEVICE);
    unsigned char *b = take(device, BYTES, CO_MEMORY_PINNED);

    for (int i = 1; i <= 100; i++) {
        assert_int_equal(co_queue_fill(queue, a, 255 - i, BYTES), CO_OK);
        assert_int_equal(co_queue_fill(queue, a, i, BYTES), CO_OK);
        assert_int_equal(co_queue_copy(queue, b, a, BYTES), CO_OK);
        assert_int_equal(co_queue_fill(queue, a, 0, BYTES), CO_OK);
        assert_int_equal(co_queue_copy(queue, a, b, BYTES), CO_OK);
    }
    check_bytes(queue, a, 100, BYTES);
    co_queue_destroy(queue);
    co_device_free(device, a, CO_MEMORY_DEVICE);
    co_device_free(device, b, CO_MEMORY_PINNED);
}

/* Two queues take turns with one block, ordered by fences only. */
static void a_queue_follows_another(co_device *device)
{
    co_queue *x = make_queue(device), *y = make_queue(device);
    co_fence *made = make_fence(device), *used = make_fence(device);
    unsigned char *block = take(device, BYTES, CO_MEMORY_DEVICE);
    unsigned char *seen = take(device, 30 * (size_t)BYTES, CO_MEMORY_PINNED);

    for (size_t i = 0; i < 30; i++) {
        assert_int_equal(co_queue_follow(x, used), CO_OK); /* not recorded yet */
        assert_int_equal(co_queue_fill(x, block, 0xee, BYTES), CO_OK);
        assert_int_equal(co_queue_fill(x, block, (int)i + 1, BYTES), CO_OK);
        assert_int_equal(co_fence_record(made, x), CO_OK);
        assert_int_equal(co_queue_follow(y, made), CO_OK);
        assert_int_equal(co_queue_copy(y, seen + i * BYTES, block, BYTES), CO_OK);
        assert_int_equal(co_fence_record(used, y), CO_OK);
    }
    assert_int_equal(co_fence_wait(used, WAITS_MS), CO_OK);
    for (size_t i = 0; i < 30; i++)
        for (size_t e = 0; e < BYTES; e++)
            assert_int_equal(seen[i * BYTES + e], i + 1);
    co_queue_destroy(x);
    co_queue_destroy(y);
    co_fence_destroy(made);
    co_fence_destroy(used);
    co_device_free(device, block, CO_MEMORY_DEVICE);
    co_device_free(device, seen, CO_MEMORY_PINNED);
}

/* A queue follows the point recorded at the time of the call, not a later one. */
static void a_queue_follows_the_point_of_then(co_device *device)
{
    co_queue *x = make_queue(device), *y = make_queue(device);
    co_fence *fence = make_fence(device), *back = make_fence(device);
    unsigned char *block = take(device, 1, CO_MEMORY_DEVICE);

    assert_int_equal(co_queue_fill(x, block, 1, 1), CO_OK);
    assert_int_equal(co_fence_record(fence, x), CO_OK);
    assert_int_equal(co_queue_follow(y, fence), CO_OK);
    assert_int_equal(co_queue_fill(y, block, 2, 1), CO_OK);
    assert_int_equal(co_fence_record(back, y), CO_OK);
    assert_int_equal(co_queue_follow(x, back), CO_OK);
    assert_int_equal(co_fence_record(fence, x), CO_OK); /* after y's work, which needs the first
                                                           point */
    assert_int_equal(co_fence_wait(fence, WAITS_MS), CO_OK);
    check_bytes(y, block, 2, 1);
    co_queue_destroy(x);
    co_queue_destroy(y);
    co_fence_destroy(fence);
    co_fence_destroy(back);
    co_device_free(device, block, CO_MEMORY_DEVICE);
}

static void a_fence_is_reached_when_the_host_sees_the_work(co_device *device)
{
    co_queue *queue = make_queue(device);
    co_fence *fence = make_fence(device);
    unsigned char *from = take(device, BYTES, CO_MEMORY_DEVICE);
    unsigned char *to = take(device, BYTES, CO_MEMORY_PINNED);
    bool reached = false;

    assert_int_equal(co_fence_reached(&reached, fence), CO_OK);
    assert_true(reached);
    for (int i = 1; i <= 20; i++) {
        const uint64_t start = co_clock_ns();

        assert_int_equal(co_queue_fill(queue, from, i, BYTES), CO_OK);
        assert_int_equal(co_queue_copy(queue, to, from, BYTES), CO_OK);
        assert_int_equal(co_fence_record(fence, queue), CO_OK);
        do
            assert_int_equal(co_fence_reached(&reached, fence), CO_OK);
        while (!reached && waits_more(start));
        for (size_t e = 0; e < BYTES; e++)
            assert_int_equal(to[e], i);
    }
    assert_int_equal(co_fence_wait(fence, 0), CO_OK);
    assert_int_equal(co_queue_wait(queue, WAITS_MS), CO_OK);
    co_queue_destroy(queue);
    co_queue_destroy(NULL);
    co_fence_destroy(fence);
    co_fence_destroy(NULL);
    co_device_free(device, from, CO_MEMORY_DEVICE);
    co_device_free(device, to, CO_MEMORY_PINNED);
}

/* ---- capture ---- */

#define WORDS 16

/* One step: the first word moves to the end, the others down by one. */
typedef struct line {
    co_queue *queue;
    uint32_t *word, *room; /* (WORDS) */
    bool fails;
} line;

static co_status line_give(void *arg)
{
    const line *l = arg;

    CO_TRY(co_queue_copy(l->queue, l->room, l->word + 1, (WORDS - 1) * sizeof(*l->word)));
    CO_TRY(co_queue_copy(l->queue, l->room + WORDS - 1, l->word, sizeof(*l->word)));
    CO_TRY(co_queue_copy(l->queue, l->word, l->room, WORDS * sizeof(*l->word)));
    CO_TRY(co_queue_fill(l->queue, l->room, 0xff, WORDS * sizeof(*l->word)));
    return l->fails ? co_fail(CO_E_FAILED, "the line fails") : CO_OK;
}

static void line_read(uint32_t *out, const line *l)
{
    assert_int_equal(co_queue_copy_now(l->queue, out, l->word, WORDS * sizeof(*out)), CO_OK);
}

static void line_begin(const line *l)
{
    uint32_t first[WORDS];

    for (uint32_t i = 0; i < WORDS; i++)
        first[i] = 0x01010101u * i;
    assert_int_equal(co_queue_copy_now(l->queue, l->word, first, sizeof(first)), CO_OK);
}

static void check_replays(line *l)
{
    uint32_t first[WORDS], plain[WORDS], replayed[WORDS];
    co_capture *capture = NULL;

    line_begin(l);
    line_read(first, l);
    for (int i = 0; i < 101; i++)
        assert_int_equal(line_give(l), CO_OK);
    line_read(plain, l);
    assert_memory_not_equal(plain, first, sizeof(plain));

    line_begin(l);
    l->fails = true;
    assert_int_equal(co_capture_create(&capture, l->queue, line_give, l), CO_E_FAILED);
    assert_null(capture);
    l->fails = false;
    assert_int_equal(co_capture_create(&capture, l->queue, line_give, l), CO_OK);
    line_read(replayed, l);
    assert_memory_equal(replayed, first, sizeof(first)); /* capturing has executed nothing */
    for (int i = 0; i < 100; i++)
        assert_int_equal(co_capture_replay(capture, l->queue), CO_OK);
    assert_int_equal(line_give(l), CO_OK);
    line_read(replayed, l);
    assert_memory_equal(replayed, plain, sizeof(plain));
    co_capture_destroy(capture);
}

static void a_capture_replayed_equals_its_work_or_is_refused(co_device *device)
{
    line l = {.queue = make_queue(device)};
    co_capture *capture = NULL;

    l.word = (uint32_t *)(void *)take(device, WORDS * sizeof(*l.word), CO_MEMORY_DEVICE);
    l.room = (uint32_t *)(void *)take(device, WORDS * sizeof(*l.room), CO_MEMORY_DEVICE);
    if ((device ? device->ops : &co_device_host)->capture)
        check_replays(&l);
    else
        assert_int_equal(co_capture_create(&capture, l.queue, line_give, &l), CO_E_UNSUPPORTED);
    assert_null(capture);
    co_capture_destroy(NULL);
    co_queue_destroy(l.queue);
    co_device_free(device, l.word, CO_MEMORY_DEVICE);
    co_device_free(device, l.room, CO_MEMORY_DEVICE);
}

#define CLOCK_SLEEP_US 5000

/* Between the two points the host waits, so that the device cannot have been faster. */
static void timed_fences_tell_how_long_it_was(co_device *device)
{
    co_fence *fence[2] = {NULL};
    co_queue *queue;
    double there = 0, back = 0;
    uint64_t begin_ns;

    if (!co_device_has_clock(device)) {
        assert_int_equal(co_timed_fence_create(&fence[0], device), CO_E_UNSUPPORTED);
        return;
    }
    queue = make_queue(device);
    for (int i = 0; i < 2; i++)
        assert_int_equal(co_timed_fence_create(&fence[i], device), CO_OK);
    begin_ns = co_clock_ns();
    assert_int_equal(co_fence_record(fence[0], queue), CO_OK);
    assert_int_equal(co_fence_wait(fence[0], WAITS_MS), CO_OK);
    co_clock_sleep_us(CLOCK_SLEEP_US);
    assert_int_equal(co_fence_record(fence[1], queue), CO_OK);
    assert_int_equal(co_fence_wait(fence[1], WAITS_MS), CO_OK);
    assert_int_equal(co_fence_seconds(&there, fence[0], fence[1]), CO_OK);
    assert_int_equal(co_fence_seconds(&back, fence[1], fence[0]), CO_OK);
    assert_true(there >= CLOCK_SLEEP_US * 0.9e-6);
    assert_true(there <= co_clock_seconds(begin_ns, co_clock_ns()) * 1.1);
    assert_true(there == -back);
    for (int i = 0; i < 2; i++)
        co_fence_destroy(fence[i]);
    co_queue_destroy(queue);
}

/* Work of two queues: `side` follows the first, and both go on. */
typedef struct fork {
    co_queue *queue, *side;
    co_fence *begun, *done, *before;
    unsigned char *a, *b, *seen; /* (BYTES), and of `seen` (2 * BYTES) */
    bool follows, outside;
} fork;

static co_status fork_give(void *arg)
{
    const fork *f = arg;

    CO_TRY(co_queue_copy(f->queue, f->seen, f->a, BYTES));
    CO_TRY(co_queue_copy(f->queue, f->b, f->a, BYTES));
    CO_TRY(co_fence_record(f->begun, f->queue));
    CO_TRY(co_queue_follow(f->side, f->begun));
    CO_TRY(co_queue_copy(f->side, f->seen + BYTES, f->b, BYTES));
    CO_TRY(co_queue_fill(f->side, f->b, 0, BYTES));
    CO_TRY(co_fence_record(f->done, f->side));
    CO_TRY(co_queue_fill(f->queue, f->a, 7, BYTES));
    if (f->outside)
        CO_TRY(co_queue_follow(f->queue, f->before));
    if (f->follows)
        CO_TRY(co_queue_follow(f->queue, f->done));
    return co_queue_copy(f->queue, f->a, f->b, BYTES / 2);
}

static void check_fork(fork *f)
{
    co_capture *capture = NULL;
    bool reached;

    assert_int_equal(co_fence_record(f->before, f->queue), CO_OK);
    assert_int_not_equal(co_capture_create(&capture, f->queue, fork_give, f), CO_OK);
    f->outside = f->follows = true;
    assert_int_not_equal(co_capture_create(&capture, f->queue, fork_give, f), CO_OK);
    f->outside = false;
    assert_null(capture);
    assert_int_equal(co_capture_create(&capture, f->queue, fork_give, f), CO_OK);
    assert_int_equal(co_fence_reached(&reached, f->done), CO_E_USAGE);
    for (int i = 1; i <= 20; i++) {
        assert_int_equal(co_queue_fill(f->queue, f->a, i, BYTES), CO_OK);
        assert_int_equal(co_capture_replay(capture, f->queue), CO_OK);
        assert_int_equal(co_capture_replay(capture, f->queue), CO_OK);
        check_bytes(f->queue, f->a, 0, BYTES / 2);
        check_bytes(f->queue, f->a + BYTES / 2, 7, BYTES - BYTES / 2);
        assert_int_equal(f->seen[0], 0);
        assert_int_equal(f->seen[2 * BYTES - 1], 7);
    }
    /* both are what they were before, and at once */
    assert_int_equal(co_queue_fill(f->side, f->b, 3, BYTES), CO_OK);
    assert_int_equal(co_fence_record(f->done, f->side), CO_OK);
    assert_int_equal(co_fence_wait(f->done, WAITS_MS), CO_OK);
    check_bytes(f->side, f->b, 3, BYTES);
    co_capture_destroy(capture);
}

static void a_capture_has_the_queues_that_follow_it(co_device *device)
{
    fork f = {.queue = make_queue(device), .side = make_queue(device)};

    if (!(device ? device->ops : &co_device_host)->capture)
        return;
    f.begun = make_fence(device);
    f.done = make_fence(device);
    f.before = make_fence(device);
    f.a = take(device, BYTES, CO_MEMORY_DEVICE);
    f.b = take(device, BYTES, CO_MEMORY_DEVICE);
    f.seen = take(device, 2 * (size_t)BYTES, CO_MEMORY_PINNED);
    check_fork(&f);
    co_queue_destroy(f.queue);
    co_queue_destroy(f.side);
    co_fence_destroy(f.begun);
    co_fence_destroy(f.done);
    co_fence_destroy(f.before);
    co_device_free(device, f.a, CO_MEMORY_DEVICE);
    co_device_free(device, f.b, CO_MEMORY_DEVICE);
    co_device_free(device, f.seen, CO_MEMORY_PINNED);
}

const law device_laws[] = {
    {"memory is zeroed, aligned and apart", memory_is_zeroed_aligned_and_apart},
    {"memory forgotten can be written again", memory_forgotten_can_be_written_again},
    {"memory that is not there is refused", memory_that_is_not_there_is_refused},
    {"every failed allocation is survived", every_failed_allocation_is_survived},
    {"copies go in all directions", copies_go_in_all_directions},
    {"a queue keeps its order", a_queue_keeps_its_order},
    {"a queue follows another", a_queue_follows_another},
    {"a queue follows the point of then", a_queue_follows_the_point_of_then},
    {"a fence is reached when the host sees the work",
     a_fence_is_reached_when_the_host_sees_the_work},
    {"a capture replayed equals its work, or is refused",
     a_capture_replayed_equals_its_work_or_is_refused},
    {"timed fences tell how long it was", timed_fences_tell_how_long_it_was},
    {"a capture has the queues that follow it", a_capture_has_the_queues_that_follow_it},
    {NULL, NULL},
};
