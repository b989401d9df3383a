/* server.c - one file, given in each of the ways that a server can go wrong. */
#include "server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loopback.h"

static void send_all(int fd, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t got = write(fd, bytes, n);

        if (got <= 0)
            return;
        bytes += got;
        n -= (size_t)got;
    }
}

/* From `begin` on, with the length `claimed`, but only `n` bytes of it. */
static void send_part(int fd, const uint8_t *file, size_t begin, size_t n, size_t claimed,
                      size_t size)
{
    char head[256];

    if (begin)
        snprintf(head, sizeof(head),
                 "HTTP/1.1 206 Partial\r\nContent-Length: %zu\r\nContent-Range: bytes "
                 "%zu-%zu/%zu\r\nConnection: close\r\n\r\n",
                 claimed, begin, size - 1, size);
    else
        snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", claimed);
    loopback_say(fd, head);
    send_all(fd, file + begin, n);
}

static void send_endless(int fd)
{
    static uint8_t block[65536];

    loopback_say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    while (write(fd, block, sizeof(block)) > 0)
        continue;
}

static void send_other(int fd, const uint8_t *file, size_t size)
{
    uint8_t *other = calloc(size + 1, 1);

    memcpy(other, file, size);
    other[size / 2] ^= 1;
    send_part(fd, other, 0, size, size, size);
    free(other);
}

/* What the process that answers needs. */
typedef struct served {
    server_way way;
    const uint8_t *file;
    size_t size;
} served;

static void answer(void *arg, int fd, const char *request)
{
    const served *what = arg;
    const uint8_t *file = what->file;
    const size_t size = what->size;
    const char *range = strstr(request, "Range: bytes=");
    size_t begin = range ? strtoul(range + 13, NULL, 10) : 0;

    if (begin >= size || what->way == SERVER_RESTARTS)
        begin = 0;
    switch (what->way) {
    case SERVER_GOOD:
    case SERVER_RESTARTS:
        send_part(fd, file, begin, size - begin, size - begin, size);
        return;
    case SERVER_MISSING:
        loopback_say(fd,
                     "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    case SERVER_BREAKS:
        send_part(fd, file, begin, size - begin < size / 3 + 1 ? size - begin : size / 3 + 1,
                  size - begin, size);
        return;
    case SERVER_CUT:
        send_part(fd, file, 0, size / 2, size / 2, size);
        return;
    case SERVER_OTHER:
        send_other(fd, file, size);
        return;
    case SERVER_ENDLESS:
        send_endless(fd);
        return;
    case SERVER_CLAIMS:
        send_part(fd, file, 0, size, (size_t)1 << 50, size);
        return;
    case SERVER_LEADS_AWAY:
        loopback_say(fd,
                     "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n"
                     "Connection: close\r\n\r\n");
        return;
    case SERVER_ROUND:
        loopback_say(fd, "HTTP/1.1 302 Found\r\nLocation: /set.bin\r\nContent-Length: 0\r\n"
                         "Connection: close\r\n\r\n");
        return;
    case SERVER_MUTE:
        return;
    }
}

void server_start(server *out, server_way way, const uint8_t *file, size_t size)
{
    served what = {way, file, size};
    int port;

    out->pid = loopback_start(&port, answer, &what);
    snprintf(out->url, sizeof(out->url), "http://127.0.0.1:%d/", port);
}

void server_stop(server *s)
{
    loopback_stop(s->pid);
}
