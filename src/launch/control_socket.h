/*
 * control_socket.h - requests to a running launcher over a socket in a folder, one line each way.
 *
 * Only the owner can use the socket. Does not know the requests.
 */
#ifndef CO_LAUNCH_CONTROL_SOCKET_H
#define CO_LAUNCH_CONTROL_SOCKET_H

#include <poll.h>
#include <stddef.h>

#include <cohort/status.h>

#define CO_CONTROL_NAME  "control.sock"
#define CO_CONTROL_LINE  256  /* bytes of a request, including the newline */
#define CO_CONTROL_REPLY 8192 /* bytes of an answer, including the newline */
#define CO_CONTROL_FDS   5    /* the socket and its simultaneous clients */

typedef struct co_control co_control;

/* Answer `request` (without its newline) with one line of at most `size` bytes. */
typedef void (*co_control_fn)(void *arg, char *reply, size_t size, const char *request);

/* Listen on `folder`/control.sock. Replaces the socket of a dead run; CO_E_USAGE if a live one
   answers. The caller closes it, which removes the socket. */
co_status co_control_open(co_control **out, const char *folder, co_control_fn fn, void *arg);
void co_control_close(co_control *control);
/* For a child that inherited it: close without removing the socket. */
void co_control_forget(co_control *control);

/* Fill in the descriptors to poll; returns how many. Takes NULL. */
int co_control_polls(struct pollfd out[CO_CONTROL_FDS], const co_control *control);
/* Call after poll, whatever its result. Never blocks. */
void co_control_serve(co_control *control);

/* Send a request to the launcher of `folder` and wait for the answer. */
co_status co_control_ask(char reply[CO_CONTROL_REPLY], const char *folder, const char *request,
                         int timeout_ms);

#endif
