/* folder_server.h - a small HTTP server on the loopback interface: the files of a folder, by
 * ranges. */
#ifndef TESTS_DATA_FOLDER_SERVER_H
#define TESTS_DATA_FOLDER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Shared with the server, which does as it says from the next request on. */
typedef struct folder_server {
    pid_t pid;
    char url[64];          /* without a slash at its end */
    atomic_int fail_every; /* each so-many-th request fails: 503, cut short or without an answer, in
                              turn; 0: none */
    atomic_bool whole;     /* ranges are ignored */
    atomic_bool unnamed;   /* answers do not say which range they are */
    atomic_int stall_s;    /* before each answer */
    atomic_int requests, failed;
    atomic_uint_least64_t bytes; /* of files, sent */
} folder_server;

/* Starts a process; fails the test if it cannot. */
folder_server *folder_server_start(const char *folder);
void folder_server_stop(folder_server *server);

#endif
