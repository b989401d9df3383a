/*
 * watch_blocks.c - blocks of one training with viewers of `cohort watch` and without any, in turns;
 * for bench/watch.sh.
 *
 *   watch_blocks PORT COOKIE PATH METRICS LAUNCHER SERVER VIEWERS PAIRS SECONDS
 *
 * A viewer is what a browser asks for: the page, then its events as they come. They come and leave
 * between blocks, and what happens after that, for half as long as a block, counts for neither.
 * Prints a line for each block, of numbers: 1 with viewers or 0; seconds; steps; processor time of
 * all ranks; time that threads of ranks were ready and had no core; processor time of the server;
 * of evaluations; events that viewers got. All times are seconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS_MAX_VIEWERS 64
#define BLOCKS_TAIL        8192

typedef struct job {
    int port;
    const char *cookie, *path, *metrics;
    long launcher, server;
    int viewers;
} job;

/* What has been used and done so far. */
typedef struct sample {
    double step, wall, ranks, delay, server, evaluations;
} sample;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "watch_blocks: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Adds the fields of schedstat of all threads of a process: on a core, and ready without one. */
static void add_schedstat(double *on, double *ready, long pid)
{
    char path[64];
    glob_t all;

    snprintf(path, sizeof(path), "/proc/%ld/task/*/schedstat", pid);
    if (glob(path, 0, NULL, &all) != 0)
        return;
    for (size_t i = 0; i < all.gl_pathc; i++) {
        unsigned long long a = 0, b = 0;
        FILE *file = fopen(all.gl_pathv[i], "r");

        if (file && fscanf(file, "%llu %llu", &a, &b) == 2) {
            *on += 1e-9 * (double)a;
            if (ready)
                *ready += 1e-9 * (double)b;
        }
        if (file)
            fclose(file);
    }
    globfree(&all);
}

static void add_children(double *on, double *ready, long pid)
{
    char path[64];
    long child;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid);
    file = fopen(path, "r");
    while (file && fscanf(file, "%ld", &child) == 1)
        add_schedstat(on, ready, child);
    if (file)
        fclose(file);
}

/* Of children that have ended, in ticks. */
static double ended_children(long pid)
{
    char path[64], text[1024];
    long user = 0, system = 0;
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    file = fopen(path, "r");
    if (!file)
        fail(path);
    n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    if (!strrchr(text, ')') ||
        sscanf(strrchr(text, ')') + 2,
               "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2)
        fail("the server's times");
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Steps and seconds of the last event of a step that is whole. */
static void last_event(sample *out, const char *path)
{
    char text[BLOCKS_TAIL + 1], *end, *at;
    const int file = open(path, O_RDONLY);
    off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    ssize_t n;

    if (size < 0)
        fail(path);
    n = pread(file, text, BLOCKS_TAIL, size > BLOCKS_TAIL ? size - BLOCKS_TAIL : 0);
    close(file);
    text[n > 0 ? n : 0] = '\0';
    for (end = strrchr(text, '\n'); end; end = strrchr(text, '\n')) {
        const char *step, *wall;

        *end = '\0';
        at = strrchr(text, '\n');
        at = at ? at + 1 : text;
        step = strstr(at, "\"step\":");
        wall = strstr(at, "\"wall_seconds\":");
        if (!strstr(at, "\"event\":\"step\"") || !step || !wall)
            continue;
        out->step = strtod(step + 7, NULL);
        out->wall = strtod(wall + 15, NULL);
        return;
    }
    fail("no event of a step");
}

/* Right after an event, so that steps and times belong together. */
static sample take(const job *j)
{
    sample s = {0}, before = {0};

    last_event(&before, j->metrics);
    do {
        usleep(1000);
        last_event(&s, j->metrics);
    } while (s.step == before.step);
    add_children(&s.ranks, &s.delay, j->launcher);
    add_schedstat(&s.server, NULL, j->server);
    add_children(&s.evaluations, NULL, j->server);
    s.evaluations += ended_children(j->server);
    return s;
}

static int request(const job *j, const char *what, const char *after)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)j->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char text[2048];
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    const int n = snprintf(text, sizeof(text),
                           "GET %s%s%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nCookie: %s\r\n"
                           "Connection: close\r\n\r\n",
                           j->path, what, after, j->port, j->cookie);

    if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof(to)) != 0 ||
        write(s, text, (size_t)n) != n)
        fail("the server");
    return s;
}

/* The page, for the number that it ends with; then its events. */
static int enter(const job *j)
{
    static char page[32 << 20];
    char after[32] = "0";
    const int s = request(j, "", "");
    size_t n = 0;
    ssize_t got;
    const char *at;

    while (n < sizeof(page) - 1 && (got = read(s, page + n, sizeof(page) - 1 - n)) > 0)
        n += (size_t)got;
    close(s);
    page[n] = '\0';
    at = strstr(page, "\"after\":");
    if (!at) {
        errno = EBADMSG;
        fail("the page");
    }
    snprintf(after, sizeof(after), "%ld", strtol(at + 8, NULL, 10));
    return request(j, "events?after=", after);
}

/* Reads what comes until that time; how many messages. */
static int follow(const int *viewer, int n, double until)
{
    struct pollfd p[BLOCKS_MAX_VIEWERS];
    static char text[1 << 20];
    int events = 0;

    for (int i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = viewer[i], .events = POLLIN};
    for (double left; (left = until - now()) > 0;) {
        if (poll(p, (nfds_t)n, (int)(1000 * left) + 1) <= 0)
            continue;
        for (int i = 0; i < n; i++) {
            const ssize_t got = p[i].revents ? read(p[i].fd, text, sizeof(text) - 1) : -1;

            if (p[i].revents && got <= 0) {
                errno = ECONNRESET;
                fail("a viewer was left");
            }
            if (got <= 0)
                continue;
            text[got] = '\0';
            for (const char *at = text; (at = strstr(at, "data:")); at++)
                events++;
        }
    }
    return events;
}

static void block(const job *j, int with, double seconds)
{
    int viewer[BLOCKS_MAX_VIEWERS], events;
    sample begin, end;

    for (int i = 0; i < with * j->viewers; i++)
        viewer[i] = enter(j);
    (void)follow(viewer, with * j->viewers, now() + seconds / 2);
    begin = take(j);
    events = follow(viewer, with * j->viewers, now() + seconds);
    end = take(j);
    for (int i = 0; i < with * j->viewers; i++)
        close(viewer[i]);
    printf("%d %.6f %.0f %.6f %.6f %.6f %.6f %d\n", with, end.wall - begin.wall,
           end.step - begin.step, end.ranks - begin.ranks, end.delay - begin.delay,
           end.server - begin.server, end.evaluations - begin.evaluations, events);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    job j;

    if (argc != 10)
        return 1;
    j = (job){atoi(argv[1]), argv[2],       argv[3],      argv[4],
              atol(argv[5]), atol(argv[6]), atoi(argv[7])};
    if (j.viewers < 1 || j.viewers > BLOCKS_MAX_VIEWERS)
        return 1;
    for (int pair = 0; pair < atoi(argv[8]); pair++) {
        block(&j, pair % 2, atof(argv[9]));
        block(&j, !(pair % 2), atof(argv[9]));
    }
    return 0;
}
