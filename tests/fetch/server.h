/* server.h - a small HTTP server on the loopback interface that serves one file, well or badly. */
#ifndef TESTS_FETCH_SERVER_H
#define TESTS_FETCH_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum server_way {
    SERVER_GOOD,
    SERVER_MISSING,    /* 404 */
    SERVER_BREAKS,     /* ends each answer after a third of the file; ranges are served */
    SERVER_CUT,        /* half of the file, and says that this is all */
    SERVER_OTHER,      /* a file of the same size with other bytes */
    SERVER_ENDLESS,    /* no length, and never an end */
    SERVER_CLAIMS,     /* a length of 2^50 */
    SERVER_LEADS_AWAY, /* redirects to file:///etc/passwd */
    SERVER_ROUND,      /* redirects to itself */
    SERVER_MUTE,       /* closes the connection */
    SERVER_RESTARTS    /* good, but ranges are ignored */
} server_way;

typedef struct server {
    pid_t pid;
    char url[64]; /* of the folder, with a slash */
} server;

/* Starts a process; fails the test if it cannot. */
void server_start(server *out, server_way way, const uint8_t *file, size_t size);
/* Ends it. */
void server_stop(server *s);

#endif
