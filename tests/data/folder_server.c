/* folder_server.c - one connection after the other, one request for each, in a process of its own.
 */
#include "folder_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(int to, const char *text)
{
    (void)!write(to, text, strlen(text));
}

static void send_range(folder_server *s, int to, int file, const char *request, bool cut)
{
    const char *range = strstr(request, "Range: bytes=");
    unsigned long long first = 0, last = 0, n;
    struct stat info;
    char head[256];
    uint8_t *bytes;

    fstat(file, &info);
    if (s->whole || !range || sscanf(range, "Range: bytes=%llu-%llu", &first, &last) != 2) {
        say(to, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        return;
    }
    if (first >= (unsigned long long)info.st_size) {
        say(to, "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    if (last >= (unsigned long long)info.st_size)
        last = (unsigned long long)info.st_size - 1;
    n = last - first + 1;
    snprintf(head, sizeof(head),
             "HTTP/1.1 206 Partial\r\nContent-Length: %llu\r\nContent-Range: bytes "
             "%llu-%llu/%llu\r\nConnection: close\r\n\r\n",
             n, first, last, (unsigned long long)info.st_size);
    say(to, head);
    bytes = malloc(n);
    if (cut)
        n /= 2;
    if (pread(file, bytes, n, (off_t)first) == (ssize_t)n && write(to, bytes, n) == (ssize_t)n)
        atomic_fetch_add(&s->bytes, n);
    free(bytes);
}

static void answer(folder_server *s, int to, const char *folder, const char *request)
{
    const int number = atomic_fetch_add(&s->requests, 1) + 1;
    const int every = atomic_load(&s->fail_every);
    const int way = every && number % every == 0 ? number / every % 3 : -1;
    char name[200], path[512];
    int file;

    if (way >= 0)
        atomic_fetch_add(&s->failed, 1);
    if (way == 0)
        say(to, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    if (way == 0 || way == 1 || sscanf(request, "GET %199s HTTP", name) != 1)
        return;
    snprintf(path, sizeof(path), "%s%s", folder, name);
    file = open(path, O_RDONLY);
    if (file < 0)
        say(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    else
        send_range(s, to, file, request, way == 2);
    if (file >= 0)
        close(file);
}

static void serve(folder_server *s, int listener, const char *folder)
{
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        const int to = accept(listener, NULL, NULL);
        char request[4096];
        ssize_t n;

        if (to < 0)
            continue;
        n = read(to, request, sizeof(request) - 1);
        request[n > 0 ? n : 0] = '\0';
        if (n > 0)
            answer(s, to, folder, request);
        shutdown(to, SHUT_WR);
        close(to);
    }
}

folder_server *folder_server_start(const char *folder)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof(address);
    folder_server *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    assert_true(s != MAP_FAILED && listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 32), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(address.sin_port));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(s, listener, folder);
    }
    s->pid = pid; /* by one of the two: the memory is shared */
    close(listener);
    return s;
}

void folder_server_stop(folder_server *s)
{
    assert_true(s->pid > 0);
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    munmap(s, sizeof(*s));
}
