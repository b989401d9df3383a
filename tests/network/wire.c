/*
 * wire.c - `wire PID HOST_END SWITCH_END SEED CONTROL`: a cable that delays, loses, reorders and
 * doubles frames, and that can be cut in one direction. Between two TAP devices: HOST_END in the
 * network namespace of process PID, SWITCH_END in that of this process. Ends with either device.
 *
 * CONTROL is a FIFO of lines: `delay MS`, `jitter MS`, `loss PERCENT`, `reorder PERCENT`, `double
 * PERCENT`, `cut none|to|from|both` (to: nothing reaches the host), `say` (what it has done so far,
 * on standard output). What happens to the n-th frame of a direction is a function of the seed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX    65600
#define QUEUE_MAX    8192    /* frames on their way; more are lost, as in a switch */
#define OVERTAKEN_NS 1000000 /* a reordered frame comes up to ten times this later */
#define NS_PER_MS    1000000.0
#define REST_NS      1000000000

enum { TO_HOST, FROM_HOST, DIRECTIONS };

typedef struct frame {
    uint64_t due_ns, order; /* of equal times the first goes first */
    int to;                 /* direction */
    size_t bytes;
    unsigned char data[];
} frame;

typedef struct wire {
    int end[DIRECTIONS]; /* to which frames of a direction are written */
    uint64_t seed[DIRECTIONS], last_ns[DIRECTIONS];
    bool cut[DIRECTIONS];
    double delay_ms, jitter_ms, loss, reorder, twice;
    frame *queue[QUEUE_MAX]; /* a heap by due time */
    int n;
    uint64_t order, passed, lost, reordered, doubled;
} wire;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Uniform in [0, 1). */
static double draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

/* ---- frames on their way ---- */

static bool is_before(const frame *a, const frame *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void queue_push(wire *w, frame *f)
{
    int at = w->n++;

    for (; at > 0 && is_before(f, w->queue[(at - 1) / 2]); at = (at - 1) / 2)
        w->queue[at] = w->queue[(at - 1) / 2];
    w->queue[at] = f;
}

static frame *queue_pop(wire *w)
{
    frame *first = w->queue[0], *last = w->queue[--w->n];
    int at = 0;

    for (int child = 1; child < w->n; child = 2 * at + 1) {
        child += child + 1 < w->n && is_before(w->queue[child + 1], w->queue[child]);
        if (!is_before(w->queue[child], last))
            break;
        w->queue[at] = w->queue[child];
        at = child;
    }
    w->queue[at] = last;
    return first;
}

static void enter(wire *w, int to, const unsigned char *data, size_t bytes, double late)
{
    frame *f = w->n < QUEUE_MAX ? malloc(sizeof(*f) + bytes) : NULL;

    if (!f) {
        w->lost++;
        return;
    }
    f->due_ns =
        now_ns() + (uint64_t)((w->delay_ms + w->jitter_ms * draw(&w->seed[to])) * NS_PER_MS);
    if (late > 0)
        f->due_ns += (uint64_t)(late * 10 * OVERTAKEN_NS);
    else if (f->due_ns < w->last_ns[to])
        f->due_ns = w->last_ns[to]; /* jitter alone does not reorder */
    else
        w->last_ns[to] = f->due_ns;
    f->order = w->order++;
    f->to = to;
    f->bytes = bytes;
    memcpy(f->data, data, bytes);
    queue_push(w, f);
}

static void take(wire *w, int to, const unsigned char *data, size_t bytes)
{
    const bool is_lost = draw(&w->seed[to]) < w->loss, is_late = draw(&w->seed[to]) < w->reorder;
    const bool is_double = draw(&w->seed[to]) < w->twice;
    const double late = draw(&w->seed[to]);

    if (is_lost || w->cut[to]) {
        w->lost++;
        return;
    }
    w->reordered += is_late;
    w->doubled += is_double;
    for (int i = 0; i <= is_double; i++)
        enter(w, to, data, bytes, is_late ? late + 0.01 : 0);
}

static bool read_frames(wire *w, int to)
{
    static unsigned char data[FRAME_MAX];
    const int from = w->end[to == TO_HOST ? FROM_HOST : TO_HOST];
    ssize_t n = 0;

    for (int i = 0; i < 64 && (n = read(from, data, sizeof(data))) > 0; i++)
        take(w, to, data, (size_t)n);
    return n > 0 || errno == EAGAIN || errno == EINTR || errno == EIO;
}

/* Nanoseconds until the next frame is due. */
static uint64_t send_due(wire *w)
{
    while (w->n > 0) {
        const uint64_t now = now_ns();
        frame *f;

        if (w->queue[0]->due_ns > now)
            return w->queue[0]->due_ns - now;
        f = queue_pop(w);
        /* An end that is down takes nothing. */
        if (write(w->end[f->to], f->data, f->bytes) == (ssize_t)f->bytes)
            w->passed++;
        else
            w->lost++;
        free(f);
    }
    return REST_NS;
}

/* ---- control ---- */

static bool set(wire *w, const char *key, const char *value)
{
    const double number = strtod(value, NULL);

    if (strcmp(key, "delay") == 0)
        w->delay_ms = number;
    else if (strcmp(key, "jitter") == 0)
        w->jitter_ms = number;
    else if (strcmp(key, "loss") == 0)
        w->loss = number / 100;
    else if (strcmp(key, "reorder") == 0)
        w->reorder = number / 100;
    else if (strcmp(key, "double") == 0)
        w->twice = number / 100;
    else if (strcmp(key, "cut") != 0)
        return false;
    else
        for (int to = 0; to < DIRECTIONS; to++)
            w->cut[to] =
                strcmp(value, "both") == 0 || strcmp(value, to == TO_HOST ? "to" : "from") == 0;
    return true;
}

static void obey(wire *w, int control)
{
    static char text[4096];
    static size_t used;
    const ssize_t n = read(control, text + used, sizeof(text) - 1 - used);
    char *at = text, *end, key[16], value[16];

    if (n <= 0)
        return;
    text[used += (size_t)n] = '\0';
    for (; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        value[0] = '\0';
        if (sscanf(at, "%15s %15s", key, value) == 1 && strcmp(key, "say") == 0)
            printf("passed %llu lost %llu reordered %llu doubled %llu\n",
                   (unsigned long long)w->passed, (unsigned long long)w->lost,
                   (unsigned long long)w->reordered, (unsigned long long)w->doubled);
        else if (!set(w, key, value))
            printf("wire: what is '%s'?\n", at);
        fflush(stdout);
    }
    used = strlen(at);
    memmove(text, at, used + 1);
}

/* ---- devices ---- */

static int open_tap(const char *name)
{
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) {
        fprintf(stderr, "wire: no device %s: %s\n", name, strerror(errno));
        exit(1);
    }
    return fd;
}

static void enter_network(const char *pid)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
        fprintf(stderr, "wire: no network of process %s: %s\n", pid, strerror(errno));
        exit(1);
    }
    close(fd);
}

static void run(wire *w, int control)
{
    struct pollfd ends[] = {{.fd = w->end[FROM_HOST], .events = POLLIN},
                            {.fd = w->end[TO_HOST], .events = POLLIN},
                            {.fd = control, .events = POLLIN}};

    for (;;) {
        const uint64_t ns = send_due(w);
        const struct timespec rest = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

        if (ppoll(ends, 3, &rest, NULL) < 0) {
            if (errno != EINTR)
                return;
            continue;
        }
        if ((ends[0].revents | ends[1].revents) & (POLLERR | POLLNVAL))
            return;
        if ((ends[0].revents & POLLIN && !read_frames(w, TO_HOST)) ||
            (ends[1].revents & POLLIN && !read_frames(w, FROM_HOST)))
            return;
        if (ends[2].revents & POLLIN)
            obey(w, control);
    }
}

int main(int argc, char **argv)
{
    static wire w;
    int control;

    if (argc != 6) {
        fprintf(stderr, "usage: wire PID HOST_END SWITCH_END SEED CONTROL\n");
        return 2;
    }
    for (int to = 0; to < DIRECTIONS; to++)
        w.seed[to] = ((uint64_t)strtoull(argv[4], NULL, 10) * 2 + (uint64_t)to) * 2654435761U +
                     88172645463325252U;
    control = open(argv[5], O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (control < 0) {
        fprintf(stderr, "wire: %s: %s\n", argv[5], strerror(errno));
        return 1;
    }
    w.end[FROM_HOST] = open_tap(argv[3]);
    enter_network(argv[1]);
    w.end[TO_HOST] = open_tap(argv[2]);
    run(&w, control);
    return 0;
}
