/* mock_queue.h - queues of the mock device; private to mock*.c. */
#ifndef TESTS_DEVICE_MOCK_QUEUE_H
#define TESTS_DEVICE_MOCK_QUEUE_H

#include <pthread.h>

#include "device/mock.h"
#include "device/mock_vector.h"

#define MOCK_RING     1024 /* operations a queue holds; a caller waits when it is full */
#define MOCK_BRANCHES 4    /* queues that a capture may have */
#define MOCK_DELAY_US 300

typedef struct mock_device {
    co_device base;
    co_device_ops ops;
    mock_memory memory;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under lock */
    bool held, broken;
    uint64_t captures;              /* so far */
    struct mock_capture *capturing; /* in progress; NULL: none */
    int busy;                       /* workers with an operation in progress */
    uint64_t done;
    uint64_t trace;    /* for mock_trace */
    mock_entry *entry; /* borrowed, for mock_log; NULL: not wanted */
    size_t n_entry, max_entry;
} mock_device;

typedef struct mock_fence {
    co_fence base;
    uint64_t recorded, reached; /* under lock: number of times */
    uint64_t seen;              /* likewise; `reached` when the host last looked */
    uint64_t reached_ns;        /* likewise; when, of co_clock_ns */
    bool timed;
    uint64_t capture; /* number of the capture that it is a point of; 0: of none */
    size_t point;     /* of that capture */
} mock_fence;

typedef enum mock_kind {
    MOCK_COPY,
    MOCK_FILL,
    MOCK_CALL,
    MOCK_JOB,
    MOCK_RECORD,
    MOCK_FOLLOW
} mock_kind;

typedef struct mock_work {
    mock_kind kind;
    void *to;
    const void *from;
    int byte;
    size_t bytes;
    mock_fence *fence;
    uint64_t point; /* recording of the fence to wait for */
    int branch;     /* of a capture */
    mock_call call;
    mock_job job;
    void *what; /* owned, `bytes` long; a job's */
} mock_work;

/* Work of several queues: of the one that is captured, branch 0, and of those that follow it. */
typedef struct mock_capture {
    co_capture base;
    uint64_t number;
    mock_work *work; /* owned; records and follows name a point of the capture */
    size_t n, cap, points;
    mock_fence *point; /* (points) owned, once the capture has ended */
    int branches;
    struct {
        struct mock_queue *from; /* borrowed, until the capture has ended */
        co_queue *queue;         /* owned, from then on; of branch 0: NULL */
        size_t last;             /* its last point */
        bool open;               /* has work after it, or nobody has followed it */
    } branch[MOCK_BRANCHES];
} mock_capture;

typedef struct mock_queue {
    co_queue base;
    pthread_t worker;
    uint32_t draw;         /* random state of the delay; worker only */
    mock_capture *capture; /* in progress; NULL: none */
    int branch;            /* of it */
    /* under the device's lock */
    mock_work ring[MOCK_RING];
    uint64_t given, taken, done;
    bool end;
} mock_queue;

/* co_device_ops */
co_status mock_queue_create(co_queue **out, co_device *device);
void mock_queue_destroy(co_queue *base);
co_status mock_copy(co_queue *queue, void *to, const void *from, size_t bytes);
co_status mock_fill(co_queue *queue, void *to, int byte, size_t bytes);
co_status mock_fence_create(co_fence **out, co_device *device);
co_status mock_timed_fence_create(co_fence **out, co_device *device);
co_status mock_fence_seconds(double *out, const co_fence *begin, const co_fence *end);
void mock_fence_destroy(co_fence *fence);
co_status mock_record(co_fence *base, co_queue *queue);
co_status mock_follow(co_queue *queue, const co_fence *base);
co_status mock_reached(bool *out, const co_fence *base);
co_status mock_capture_create(co_capture **out, co_queue *queue, co_status (*body)(void *arg),
                              void *arg);
/* The two halves of it. CO_E_USAGE: a queue that has joined the capture is not followed at its end.
 */
co_status mock_capture_begin(co_queue *base);
co_status mock_capture_end(co_capture **out, co_queue *base);
co_status mock_replay(co_capture *base, co_queue *queue);
void mock_capture_destroy(co_capture *base);

/* --- for mock_capture.c --- */
bool mock_copy_what(mock_work *work);
/* Frees what is kept for `work`, done or not. */
void mock_forget(mock_work *work);
co_status mock_give(mock_queue *queue, const mock_work *work);
void mock_note(mock_device *mock, const mock_entry *entry);
co_status mock_give_record(mock_queue *queue, mock_fence *fence);
co_status mock_give_follow(mock_queue *queue, mock_fence *fence);

/* --- for mock_queue.c: while a queue is captured --- */
co_status mock_keep(mock_queue *queue, const mock_work *work);
co_status mock_keep_record(mock_fence *fence, mock_queue *queue);
/* Also where the fence is of a capture, and the queue becomes a branch of it. */
co_status mock_keep_follow(mock_queue *queue, const mock_fence *fence);

#endif
