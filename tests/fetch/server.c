/* server.c - a small HTTP server, one connection after the other, in a process of its own. */
#include "server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(int fd, const char *text)
{
    (void)!write(fd, text, strlen(text));
}

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
    say(fd, head);
    send_all(fd, file + begin, n);
}

static void send_endless(int fd)
{
    static uint8_t block[65536];

    say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    while (write(fd, block, sizeof(block)) > 0)
        continue;
}

static void send_other(int fd, const uint8_t *file, size_t size)
{
    uint8_t *other = malloc(size);

    memcpy(other, file, size);
    other[size / 2] ^= 1;
    send_part(fd, other, 0, size, size, size);
    free(other);
}

static void answer(int fd, server_way way, const char *request, const uint8_t *file, size_t size)
{
    const char *range = strstr(request, "Range: bytes=");
    size_t begin = range ? strtoul(range + 13, NULL, 10) : 0;

    if (begin >= size || way == SERVER_RESTARTS)
        begin = 0;
    switch (way) {
    case SERVER_GOOD:
    case SERVER_RESTARTS:
        send_part(fd, file, begin, size - begin, size - begin, size);
        return;
    case SERVER_MISSING:
        say(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
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
        say(fd, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n");
        return;
    case SERVER_ROUND:
        say(fd, "HTTP/1.1 302 Found\r\nLocation: /set.bin\r\nContent-Length: 0\r\n"
                "Connection: close\r\n\r\n");
        return;
    case SERVER_MUTE:
        return;
    }
}

static void serve(int listener, server_way way, const uint8_t *file, size_t size)
{
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        const int fd = accept(listener, NULL, NULL);
        char request[4096];
        ssize_t n;

        if (fd < 0)
            continue;
        n = read(fd, request, sizeof(request) - 1);
        request[n > 0 ? n : 0] = '\0';
        if (n > 0)
            answer(fd, way, request, file, size);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
}

void server_start(server *out, server_way way, const uint8_t *file, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof(address);

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    snprintf(out->url, sizeof(out->url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
    out->pid = fork();
    assert_true(out->pid >= 0);
    if (out->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(listener, way, file, size);
    }
    close(listener);
}

void server_stop(server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
}
