/* live.h - runs as they are now, for a browser or a terminal: `cohort watch`. Reads what runs
   write, and asks a running one for its status; changes nothing of them. */
#ifndef CO_LIVE_LIVE_H
#define CO_LIVE_LIVE_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include <cohort/status.h>

/* Adds to a run of the page what its weights show, as `cohort report` has it; called in a process
   of its own. */
typedef struct co_live_measure {
    co_status (*run)(json_t *run, const char *dir, const void *arg); /* NULL: nobody can */
    const void *arg;
} co_live_measure;

typedef struct co_live_options {
    const char *const *folder; /* (n): run directories, or folders of them */
    size_t n;
    int port;  /* of the loopback interface; 0: any that is free */
    FILE *out; /* gets the address */
    co_live_measure measure;
} co_live_options;

/* Serve the page until this process is asked to end: by SIGINT, which is CO_OK, or else, which is
   CO_E_TERMINATED. CO_E_UNSUPPORTED: without libmicrohttpd, in this build or on this machine. */
co_status co_live_serve(const co_live_options *options);
/* Show them on the terminal that standard input and output are, until q or Ctrl-C or as above; the
   terminal is then as it was. CO_E_USAGE: they are none. */
co_status co_live_terminal(const co_live_options *options);
/* The version of libmicrohttpd, for people; CO_E_UNSUPPORTED as above. */
co_status co_live_server_version(char *out, size_t size);

#endif
