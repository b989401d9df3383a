/* folder_server.c - ranges of files, and failures in turn. */
#include "folder_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loopback.h"

static void send_range(folder_server *s, int to, int file, const char *request, bool cut)
{
    const char *range = strstr(request, "Range: bytes=");
    unsigned long long first = 0, last = 0, n;
    struct stat info;
    char head[256];
    uint8_t *bytes;

    fstat(file, &info);
    if (s->whole || !range || sscanf(range, "Range: bytes=%llu-%llu", &first, &last) != 2) {
        loopback_say(to, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        return;
    }
    if (first >= (unsigned long long)info.st_size) {
        loopback_say(to, "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    if (last >= (unsigned long long)info.st_size)
        last = (unsigned long long)info.st_size - 1;
    n = last - first + 1;
    snprintf(head, sizeof(head),
             "HTTP/1.1 206 Partial\r\nContent-Length: %llu\r\n%s: bytes "
             "%llu-%llu/%llu\r\nConnection: close\r\n\r\n",
             n, s->unnamed ? "X-Range" : "Content-Range", first, last,
             (unsigned long long)info.st_size);
    loopback_say(to, head);
    bytes = malloc(n);
    if (cut)
        n /= 2;
    if (pread(file, bytes, n, (off_t)first) == (ssize_t)n && write(to, bytes, n) == (ssize_t)n)
        atomic_fetch_add(&s->bytes, n);
    free(bytes);
}

/* What the process that answers needs. */
typedef struct folder_served {
    folder_server *server;
    const char *folder;
} folder_served;

static void answer(void *arg, int to, const char *request)
{
    const folder_served *served = arg;
    folder_server *s = served->server;
    const int number = atomic_fetch_add(&s->requests, 1) + 1;
    const int every = atomic_load(&s->fail_every);
    const int way = every && number % every == 0 ? number / every % 3 : -1;
    char name[200], path[512];
    int file;

    if (s->stall_s)
        sleep((unsigned)s->stall_s);
    if (way >= 0)
        atomic_fetch_add(&s->failed, 1);
    if (way == 0)
        loopback_say(to, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    if (way == 0 || way == 1 || sscanf(request, "GET %199s HTTP", name) != 1)
        return;
    snprintf(path, sizeof(path), "%s%s", served->folder, name);
    file = open(path, O_RDONLY);
    if (file < 0)
        loopback_say(to,
                     "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    else
        send_range(s, to, file, request, way == 2);
    if (file >= 0)
        close(file);
}

folder_server *folder_server_start(const char *folder)
{
    folder_server *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    folder_served served = {s, folder};
    int port;

    assert_true(s != MAP_FAILED);
    s->pid = loopback_start(&port, answer, &served);
    snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", port);
    return s;
}

void folder_server_stop(folder_server *s)
{
    loopback_stop(s->pid);
    munmap(s, sizeof(*s));
}
