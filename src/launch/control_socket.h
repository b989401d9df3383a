/*
 * control_socket.h - communicate with a running launcher over a socket in a folder: one line each
 * way.
 *
 * The socket belongs to its owner alone. Knows nothing of the requests.
 */
#ifndef CO_LAUNCH_CONTROL_SOCKET_H
#define CO_LAUNCH_CONTROL_SOCKET_H

#include <poll.h>
#include <stddef.h>

#include <cohort/status.h>

#define CO_CONTROL_NAME  "control.sock"
#define CO_CONTROL_LINE  256  /* bytes of a request, with its end */
#define CO_CONTROL_REPLY 8192 /* bytes of an answer, with its end */
#define CO_CONTROL_FDS   5    /* the socket, and clients at one time */

typedef struct co_control co_control;

/* Answer `request` with one line, without its newline, of at most `size` bytes. */
typedef void (*co_control_fn)(void *arg, char *reply, size_t size, const char *request);

/* Listen on `folder`/control.sock. The socket of a run that has died is replaced; if one answers
   there the call fails with CO_E_USAGE. Caller closes, which removes the socket. */
co_status co_control_open(co_control **out, const char *folder, co_control_fn fn, void *arg);
void co_control_close(co_control *control);
/* In a child, which has inherited it: closes it without removing the file. */
void co_control_forget(co_control *control);

/* Descriptors to wait for; how many. Takes NULL. */
int co_control_polls(struct pollfd out[CO_CONTROL_FDS], const co_control *control);
/* Call it after the wait, whatever its result. Never blocks. */
void co_control_serve(co_control *control);

/* Ask the launcher of `folder`. */
co_status co_control_ask(char reply[CO_CONTROL_REPLY], const char *folder, const char *request,
                         int timeout_ms);

#endif
