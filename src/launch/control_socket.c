/*
 * control_socket.c - a socket in a folder that only its owner can use, served between other tasks.
 *
 * A socket address has 108 bytes, and the folder's path may be longer, so both sides use
 * /proc/self/fd of the opened folder. Clients never block the server: requests are read as they
 * arrive, an answer fits into the socket's buffer, and silent clients are dropped.
 */
#include "launch/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"

#define CONTROL_SILENCE_NS UINT64_C(10000000000)
#define CONTROL_RETRY_US   5000

typedef struct control_client {
    int fd; /* -1: none */
    uint64_t since_ns;
    size_t used;
    char line[CO_CONTROL_LINE];
} control_client;

struct co_control {
    int folder, fd;
    co_control_fn fn;
    void *arg;
    control_client client[CO_CONTROL_FDS - 1];
};

static void control_address(struct sockaddr_un *out, int folder)
{
    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/" CO_CONTROL_NAME, folder);
}

/* Returns the connected socket, or -1 with errno. */
static int control_connect(int folder)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

    if (fd < 0)
        return -1;
    control_address(&address, folder);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static co_status control_io(const char *folder, const char *what)
{
    return co_fail(CO_E_IO, "%s/" CO_CONTROL_NAME ": cannot %s: %s", folder, what, strerror(errno));
}

/* Remove the socket of a dead run; any other file of that name is an error. */
static co_status control_clear(const co_control *c, const char *folder)
{
    struct stat info = {0};

    if (fstatat(c->folder, CO_CONTROL_NAME, &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return CO_OK;
    if (!S_ISSOCK(info.st_mode))
        return co_fail(CO_E_USAGE,
                       "%s/" CO_CONTROL_NAME ": is not the socket of a run; remove it, or give "
                       "another folder",
                       folder);
    return unlinkat(c->folder, CO_CONTROL_NAME, 0) == 0
               ? CO_OK
               : control_io(folder, "remove what a dead run left");
}

static co_status control_listen(co_control *c, const char *folder)
{
    struct sockaddr_un address;
    int other = control_connect(c->folder);

    if (other >= 0 || errno == EAGAIN) {
        if (other >= 0)
            close(other);
        return co_fail(CO_E_USAGE,
                       "%s: a run in this folder answers on " CO_CONTROL_NAME
                       "; wait for its end or give another folder",
                       folder);
    }
    CO_TRY(control_clear(c, folder));
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    control_address(&address, c->folder);
    /* fchmod before bind: the file gets the mode of the unbound socket. */
    if (c->fd < 0 || fchmod(c->fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        return control_io(folder, "make the socket");
    return listen(c->fd, CO_CONTROL_FDS) == 0 ? CO_OK : control_io(folder, "listen");
}

co_status co_control_open(co_control **out, const char *folder, co_control_fn fn, void *arg)
{
    co_control *c = co_calloc(1, sizeof(*c));
    co_status st = CO_OK;

    if (!c)
        return CO_E_NOMEM;
    c->fd = -1;
    c->fn = fn;
    c->arg = arg;
    for (int i = 0; i < CO_CONTROL_FDS - 1; i++)
        c->client[i].fd = -1;
    c->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (c->folder < 0)
        st = control_io(folder, "open the folder");
    if (st == CO_OK)
        st = control_listen(c, folder);
    if (st != CO_OK) {
        co_control_forget(c);
        return st;
    }
    *out = c;
    return CO_OK;
}

static void control_drop(control_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

void co_control_forget(co_control *control)
{
    if (!control)
        return;
    for (int i = 0; i < CO_CONTROL_FDS - 1; i++)
        control_drop(&control->client[i]);
    if (control->fd >= 0)
        close(control->fd);
    if (control->folder >= 0)
        close(control->folder);
    co_free(control);
}

void co_control_close(co_control *control)
{
    if (control)
        unlinkat(control->folder, CO_CONTROL_NAME, 0);
    co_control_forget(control);
}

int co_control_polls(struct pollfd out[CO_CONTROL_FDS], const co_control *control)
{
    int n = 0;

    if (!control)
        return 0;
    out[n++] = (struct pollfd){.fd = control->fd, .events = POLLIN};
    for (int i = 0; i < CO_CONTROL_FDS - 1; i++)
        if (control->client[i].fd >= 0)
            out[n++] = (struct pollfd){.fd = control->client[i].fd, .events = POLLIN};
    return n;
}

/* Answer, then close the connection. */
static void control_answer(const co_control *c, control_client *client)
{
    char reply[CO_CONTROL_REPLY];
    ssize_t sent;

    c->fn(c->arg, reply, sizeof(reply) - 1, client->line);
    memcpy(reply + strlen(reply), "\n", 2);
    sent = send(client->fd, reply, strlen(reply), MSG_NOSIGNAL);
    (void)sent; /* the client may have gone */
    control_drop(client);
}

static void control_read(const co_control *c, control_client *client)
{
    const size_t room = sizeof(client->line) - client->used;
    const ssize_t n = recv(client->fd, client->line + client->used, room, 0);
    char *end;

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (co_clock_ns() > client->since_ns + CONTROL_SILENCE_NS)
            control_drop(client);
        return;
    }
    if (n <= 0) {
        control_drop(client);
        return;
    }
    client->used += (size_t)n;
    end = memchr(client->line, '\n', client->used);
    if (end) {
        *end = '\0';
        control_answer(c, client);
    } else if (client->used == sizeof(client->line)) {
        control_drop(client);
    }
}

/* The file's mode already excludes other users, except root and users of a shared folder. */
static bool control_is_ours(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static void control_accept(co_control *c)
{
    static const char refusal[] = "{\"error\": \"this run belongs to another user\"}\n";

    for (int i = 0; i < CO_CONTROL_FDS - 1; i++) {
        control_client *client = &c->client[i];

        if (client->fd >= 0)
            continue;
        client->fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client->fd < 0)
            return;
        client->used = 0;
        client->since_ns = co_clock_ns();
        if (!control_is_ours(client->fd)) {
            (void)!send(client->fd, refusal, sizeof(refusal) - 1, MSG_NOSIGNAL);
            control_drop(client);
        }
    }
}

void co_control_serve(co_control *control)
{
    if (!control)
        return;
    control_accept(control);
    for (int i = 0; i < CO_CONTROL_FDS - 1; i++)
        if (control->client[i].fd >= 0)
            control_read(control, &control->client[i]);
}

/* ---- client ---- */

/* control_connect, but waits where too many others do. */
static int control_call(int folder, uint64_t limit)
{
    int fd;

    while ((fd = control_connect(folder)) < 0 && errno == EAGAIN && co_clock_ns() < limit)
        co_clock_sleep_us(CONTROL_RETRY_US);
    return fd;
}

static co_status control_silent(const char *folder, int timeout_ms)
{
    return co_fail(CO_E_TIMEOUT, "%s: the run has not answered within %d s", folder,
                   timeout_ms / 1000);
}

static co_status control_receive(char reply[CO_CONTROL_REPLY], int fd, const char *folder,
                                 int timeout_ms, uint64_t limit)
{
    size_t used = 0;

    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const uint64_t now = co_clock_ns();
        ssize_t n;

        if (now >= limit || poll(&wait, 1, (int)((limit - now) / 1000000) + 1) == 0)
            return control_silent(folder, timeout_ms);
        n = recv(fd, reply + used, CO_CONTROL_REPLY - 1 - used, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            return co_fail(CO_E_FAILED, "%s: the run has ended without an answer", folder);
        used += (size_t)n;
        reply[used] = '\0';
        if (reply[used - 1] == '\n') {
            reply[used - 1] = '\0';
            return CO_OK;
        }
        if (used == CO_CONTROL_REPLY - 1)
            return co_fail(CO_E_FAILED, "%s: the run's answer is too long", folder);
    }
}

static co_status control_no_run(const char *folder)
{
    if (errno == EACCES || errno == EPERM)
        return co_fail(CO_E_USAGE, "%s: this run belongs to another user", folder);
    return co_fail(CO_E_USAGE,
                   "%s: no run listens here (%s); name the run directory of one that "
                   "is running on this machine",
                   folder, strerror(errno));
}

co_status co_control_ask(char reply[CO_CONTROL_REPLY], const char *folder, const char *request,
                         int timeout_ms)
{
    char line[CO_CONTROL_LINE];
    const int n = snprintf(line, sizeof(line), "%s\n", request);
    const int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const uint64_t limit = co_clock_ns() + (uint64_t)timeout_ms * 1000000;
    co_status st = CO_OK;
    int fd;

    if (dir < 0)
        return co_fail(CO_E_USAGE, "%s: %s; name a run directory", folder, strerror(errno));
    fd = control_call(dir, limit);
    if (fd < 0)
        st = errno == EAGAIN ? control_silent(folder, timeout_ms) : control_no_run(folder);
    close(dir);
    if (st != CO_OK)
        return st;
    if (n < 0 || n >= (int)sizeof(line))
        st = co_fail(CO_E_USAGE, "a request of more than %d characters", CO_CONTROL_LINE - 2);
    else if (send(fd, line, (size_t)n, MSG_NOSIGNAL) != n)
        st = co_fail(CO_E_FAILED, "%s: the run does not listen: %s", folder, strerror(errno));
    if (st == CO_OK)
        st = control_receive(reply, fd, folder, timeout_ms, limit);
    close(fd);
    return st;
}
