/*
 * server.c - the page, its data and its events by libmicrohttpd.
 *
 * Nothing but the page that logs in is given without the cookie, and nothing at all to another host
 * name or origin. Requests change nothing: a login only compares.
 */
#include "live/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/mem.h"
#include "live/login_page.h"

#define SERVER_IDLE_S   30                 /* a connection on which nothing moves is closed */
#define SERVER_MEMORY   ((size_t)16 << 10) /* of a connection, its headers with it */
#define SERVER_BLOCK    ((size_t)16 << 10)
#define SERVER_END_RUNS 8

/* A browser that gets events. */
struct co_server_stream {
    co_server *server;
    struct MHD_Connection *connection;
    co_server_stream *next;
    uint64_t after;      /* number of the last message it has */
    co_message *message; /* that is being sent; NULL: none */
    size_t sent;
    bool suspended, beat;
};

/* A request whose headers have come. */
typedef struct server_request {
    size_t n;
    char body[CO_ACCESS_SECRET + 1]; /* of a login */
} server_request;

static const char *const server_headers[][2] = {
    {"Cache-Control", "no-store"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
};

/* Takes the response. */
static enum MHD_Result server_answer(co_server *s, struct MHD_Connection *connection,
                                     unsigned status, const char *type,
                                     struct MHD_Response *response)
{
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    for (size_t i = 0; i < sizeof(server_headers) / sizeof(server_headers[0]); i++)
        s->http.add_header(response, server_headers[i][0], server_headers[i][1]);
    s->http.add_header(response, "Content-Type", type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        s->http.add_header(response, "Allow", "GET, HEAD");
    result = s->http.queue(connection, status, response);
    s->http.destroy(response);
    return result;
}

static enum MHD_Result server_say(co_server *s, struct MHD_Connection *connection, unsigned status,
                                  const char *text)
{
    return server_answer(s, connection, status, "text/plain; charset=utf-8",
                         s->http.from_buffer(strlen(text), (char *)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result server_refuse(co_server *s, struct MHD_Connection *connection)
{
    return server_say(s, connection, MHD_HTTP_FORBIDDEN,
                      "Not allowed. Open the whole address that `cohort watch` has printed.\n");
}

/* ---- page and data ---- */

static int server_put(const char *text, size_t n, void *arg)
{
    return fwrite(text, 1, n, arg) == n ? 0 : -1;
}

static co_status server_put_all(FILE *out, const co_server *s, bool page)
{
    const co_page_live live = {s->folder, s->messages.last};
    json_t *runs, *data;
    co_status st;

    CO_TRY(co_live_runs_json(&runs, s->runs));
    st = co_page_live_json(&data, runs, &live);
    json_decref(runs);
    if (st != CO_OK)
        return st;
    if (page)
        st = co_page_put_live(out, data);
    else if (json_dump_callback(data, server_put, out, JSON_COMPACT | JSON_REAL_PRECISION(7)) != 0)
        st = co_fail(CO_E_NOMEM, "out of memory");
    json_decref(data);
    return st;
}

static enum MHD_Result server_give(co_server *s, struct MHD_Connection *connection, bool page)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    co_status st = out ? server_put_all(out, s, page) : CO_E_NOMEM;

    if (out && fclose(out) != 0)
        st = CO_E_NOMEM;
    if (st != CO_OK) {
        free(text);
        return server_say(s, connection, MHD_HTTP_SERVICE_UNAVAILABLE, "Out of memory.\n");
    }
    return server_answer(s, connection, MHD_HTTP_OK,
                         page ? "text/html; charset=utf-8" : "application/json",
                         s->http.from_buffer(size, text, MHD_RESPMEM_MUST_FREE));
}

/* ---- events ---- */

static void server_resume(co_server_stream *stream)
{
    if (!stream->suspended)
        return;
    stream->suspended = false;
    stream->server->http.resume(stream->connection);
}

static ssize_t server_read(void *arg, uint64_t at, char *out, size_t max)
{
    co_server_stream *stream = arg;
    co_server *s = stream->server;
    size_t n;

    (void)at;
    if (s->ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!stream->message && stream->beat && max >= 2) {
        stream->beat = false;
        out[0] = ':';
        out[1] = '\n';
        return 2;
    }
    if (!stream->message &&
        co_messages_next(&stream->message, &s->messages, stream->after) != CO_OK)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!stream->message) {
        stream->suspended = true;
        s->http.suspend(stream->connection);
        return 0;
    }
    n = stream->message->size - stream->sent;
    if (n > max)
        n = max;
    memcpy(out, stream->message->text + stream->sent, n);
    stream->sent += n;
    if (stream->sent == stream->message->size) {
        stream->after = stream->message->number;
        stream->sent = 0;
        co_message_drop(stream->message);
        stream->message = NULL;
    }
    return (ssize_t)n;
}

static void server_forget(void *arg)
{
    co_server_stream *stream = arg, **at = &stream->server->stream;

    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    stream->server->n_stream--;
    co_message_drop(stream->message);
    co_free(stream);
}

/* The number of the last message that the browser has. */
static uint64_t server_after(const co_server *s, struct MHD_Connection *connection)
{
    const char *text = s->http.lookup(connection, MHD_HEADER_KIND, "Last-Event-ID");

    if (!text)
        text = s->http.lookup(connection, MHD_GET_ARGUMENT_KIND, "after");
    return text ? strtoull(text, NULL, 10) : UINT64_MAX;
}

static enum MHD_Result server_follow(co_server *s, struct MHD_Connection *connection)
{
    co_server_stream *stream;
    struct MHD_Response *response;

    if (s->n_stream >= CO_SERVER_STREAMS)
        return server_say(s, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "Too many pages are open; close some.\n");
    stream = co_calloc(1, sizeof(*stream));
    if (!stream)
        return MHD_NO;
    *stream = (co_server_stream){.server = s,
                                 .connection = connection,
                                 .next = s->stream,
                                 .after = server_after(s, connection),
                                 .beat = true};
    response =
        s->http.from_reader(MHD_SIZE_UNKNOWN, SERVER_BLOCK, server_read, stream, server_forget);
    if (!response) {
        co_free(stream);
        return MHD_NO;
    }
    s->stream = stream;
    s->n_stream++;
    return server_answer(s, connection, MHD_HTTP_OK, "text/event-stream", response);
}

/* ---- requests ---- */

static enum MHD_Result server_login(co_server *s, struct MHD_Connection *connection,
                                    const server_request *request)
{
    char path[8 + CO_ACCESS_SECRET], cookie[128 + 2 * CO_ACCESS_SECRET];
    struct MHD_Response *response;

    if (request->n != CO_ACCESS_SECRET || !co_access_is_secret(s->access.token, request->body))
        return server_refuse(s, connection);
    snprintf(path, sizeof(path), "/s/%s/", s->access.path);
    snprintf(cookie, sizeof(cookie), "cohort=%s; Path=%s; HttpOnly; SameSite=Strict",
             s->access.cookie, path);
    response = s->http.from_buffer(strlen(path), path, MHD_RESPMEM_MUST_COPY);
    if (response)
        s->http.add_header(response, "Set-Cookie", cookie);
    return server_answer(s, connection, MHD_HTTP_OK, "text/plain; charset=utf-8", response);
}

static enum MHD_Result server_give_login(co_server *s, struct MHD_Connection *connection)
{
    const char *text = co_login_pages[0].text;

    return server_answer(s, connection, MHD_HTTP_OK, "text/html; charset=utf-8",
                         s->http.from_buffer(strlen(text), (char *)text, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result server_route(co_server *s, struct MHD_Connection *connection,
                                    const char *path, const char *method,
                                    const server_request *request)
{
    const bool reads =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    const bool is_login = strcmp(method, MHD_HTTP_METHOD_POST) == 0 && strcmp(path, "/login") == 0;
    const co_access_request from = {
        .host = s->http.lookup(connection, MHD_HEADER_KIND, "Host"),
        .origin = s->http.lookup(connection, MHD_HEADER_KIND, "Origin"),
        .site = s->http.lookup(connection, MHD_HEADER_KIND, "Sec-Fetch-Site"),
        .is_first = reads && strcmp(path, "/") == 0,
    };
    const char *below = co_access_below(&s->access, path);

    if (!co_access_is_ours(&from))
        return server_refuse(s, connection);
    if (is_login)
        return server_login(s, connection, request);
    if (!reads)
        return server_say(s, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only to be read.\n");
    if (from.is_first)
        return server_give_login(s, connection);
    if (!below || !co_access_is_secret(s->access.cookie,
                                       s->http.lookup(connection, MHD_COOKIE_KIND, "cohort")))
        return server_refuse(s, connection);
    if (*below == '\0' || strcmp(below, "data") == 0)
        return server_give(s, connection, *below == '\0');
    if (strcmp(below, "events") == 0)
        return server_follow(s, connection);
    return server_say(s, connection, MHD_HTTP_NOT_FOUND, "There is nothing here.\n");
}

/* Called when the headers have come, then for parts of a body, then without one. */
static enum MHD_Result server_handle(void *arg, struct MHD_Connection *connection, const char *url,
                                     const char *method, const char *version, const char *upload,
                                     size_t *size, void **state)
{
    server_request *request = *state;

    (void)version;
    if (!request) {
        *state = co_calloc(1, sizeof(*request));
        return *state ? MHD_YES : MHD_NO;
    }
    if (*size) {
        const size_t room =
            CO_ACCESS_SECRET - (request->n < CO_ACCESS_SECRET ? request->n : CO_ACCESS_SECRET);

        memcpy(request->body + CO_ACCESS_SECRET - room, upload, *size < room ? *size : room);
        request->n += *size;
        *size = 0;
        return MHD_YES;
    }
    return server_route(arg, connection, url, method, request);
}

static void server_done(void *arg, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode how)
{
    (void)arg;
    (void)connection;
    (void)how;
    co_free(*state);
    *state = NULL;
}

/* ---- the server ---- */

static co_status server_listen(int *out, int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)*port)};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, (struct sockaddr *)&address, size) == 0 &&
        listen(fd, CO_SERVER_CONNECTIONS) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
        *out = fd;
        *port = ntohs(address.sin_port);
        return CO_OK;
    }
    co_fail(CO_E_USAGE, "cannot listen on 127.0.0.1:%d: %s%s", *port, strerror(errno),
            *port ? "; give another --port" : "");
    if (fd >= 0)
        close(fd);
    return CO_E_USAGE;
}

static void server_say_nothing(void *arg, const char *format, va_list args)
{
    (void)arg;
    (void)format;
    (void)args;
}

/* By select and not by epoll: that, with libmicrohttpd 0.9.75, has found connections beyond the
   limit that had gone only when they had been idle for SERVER_IDLE_S. */
static co_status server_start(co_server *s, int listener)
{
    s->daemon = s->http.start(MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
                              server_handle, s, MHD_OPTION_EXTERNAL_LOGGER, server_say_nothing,
                              NULL, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
                              (unsigned)CO_SERVER_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                              (unsigned)SERVER_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                              SERVER_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                              MHD_OPTION_NOTIFY_COMPLETED, server_done, NULL, MHD_OPTION_END);
    if (s->daemon)
        return CO_OK;
    close(listener);
    return co_fail(CO_E_FAILED, "libmicrohttpd does not start: %s", strerror(errno));
}

co_status co_server_open(co_server *server, int port, co_live_runs *runs, const char *folder)
{
    int listener;

    *server = (co_server){.runs = runs, .folder = folder, .port = port};
    CO_TRY(co_http_open(&server->http));
    CO_TRY(co_access_make(&server->access));
    CO_TRY(server_listen(&listener, &server->port));
    return server_start(server, listener);
}

void co_server_run(co_server *server, int milliseconds)
{
    (void)server->http.run(server->daemon, milliseconds);
}

co_status co_server_send(co_server *server, const json_t *json)
{
    CO_TRY(co_messages_add(&server->messages, json));
    for (co_server_stream *at = server->stream; at; at = at->next)
        server_resume(at);
    return CO_OK;
}

void co_server_beat(co_server *server)
{
    for (co_server_stream *at = server->stream; at; at = at->next) {
        at->beat = true;
        server_resume(at);
    }
}

void co_server_close(co_server *server)
{
    if (server->daemon) {
        server->ending = true;
        co_server_beat(server);
        /* None may be suspended when it stops. */
        for (int i = 0; i < SERVER_END_RUNS && server->stream; i++)
            co_server_run(server, 10);
        server->http.stop(server->daemon);
    }
    server->daemon = NULL;
    co_messages_free(&server->messages);
}
