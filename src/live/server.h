/* server.h - answers browsers. One thread does all: the caller's, within co_server_run. */
#ifndef CO_LIVE_SERVER_H
#define CO_LIVE_SERVER_H

#include <stddef.h>

#include <cohort/status.h>

#include "live/access.h"
#include "live/http.h"
#include "live/messages.h"
#include "live/runs.h"

#define CO_SERVER_CONNECTIONS 32
#define CO_SERVER_STREAMS     16 /* of them, browsers that follow */

typedef struct co_server_stream co_server_stream;

typedef struct co_server {
    co_http http;
    struct MHD_Daemon *daemon;
    int port;
    co_access access;
    const char *folder; /* borrowed: what is watched, for people */
    co_live_runs *runs; /* borrowed */
    co_messages messages;
    co_server_stream *stream; /* owned list */
    size_t n_stream;
    bool ending;
} co_server;

/* Listen on 127.0.0.1:port, 0: any; server->port says which. CO_E_USAGE: it is in use. */
co_status co_server_open(co_server *server, int port, co_live_runs *runs, const char *folder);
void co_server_close(co_server *server);
/* Answer what comes within this time; returns earlier when something has come. */
void co_server_run(co_server *server, int milliseconds);
/* Send a message to all that follow; NULL: that they ask for everything. */
co_status co_server_send(co_server *server, const json_t *json);
/* Send a line that means nothing, by which those that have gone are found. */
void co_server_beat(co_server *server);

#endif
