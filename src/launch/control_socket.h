/*
 * control_socket.h - talk to a running launcher over a socket in a folder: one line there, one line
 * back.
 *
 * The socket belongs to its owner alone. Knows nothing of what is asked.
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

/* Listen on `folder`/control.sock. A socket that a dead run left there is replaced; one that
   somebody answers is CO_E_USAGE. Caller closes, which removes the socket. */
co_status co_control_open(co_control **out, const char *folder, co_control_fn fn, void *arg);
void co_control_close(co_control *control);
/* In a child, which has inherited it: nothing of it is removed. */
void co_control_forget(co_control *control);

/* What to wait for; how many. Takes NULL. */
int co_control_polls(struct pollfd out[CO_CONTROL_FDS], const co_control *control);
/* After the wait, whatever came of it. Never blocks. */
void co_control_serve(co_control *control);

/* Ask the launcher of `folder`. */
co_status co_control_ask(char reply[CO_CONTROL_REPLY], const char *folder, const char *request,
                         int timeout_ms);

#endif
