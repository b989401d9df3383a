/*
 * access.h - who may see the page.
 *
 * Any program of any user on this machine can connect to the loopback interface, and any page in
 * the user's browser can send requests to it. So a stranger needs the token; a page of another site
 * is known by its origin, also where its name has been made to lead here (DNS rebinding).
 */
#ifndef CO_LIVE_ACCESS_H
#define CO_LIVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

#define CO_ACCESS_SECRET 32 /* hexadecimal digits: 128 bits */

typedef struct co_access {
    char token[CO_ACCESS_SECRET + 1];  /* of the address; for one exchange */
    char cookie[CO_ACCESS_SECRET + 1]; /* what it is exchanged for */
    /* The page is below /s/PATH/, and the cookie sent there alone: browsers send cookies to all
       ports of a host, also to another user's server. */
    char path[CO_ACCESS_SECRET + 1];
} co_access;

/* CO_E_IO: the system gives no random bytes. */
co_status co_access_make(co_access *out);

/* What a request says of where it is from; NULL: nothing. */
typedef struct co_access_request {
    const char *host, *origin, *site; /* its headers Host, Origin, Sec-Fetch-Site */
    bool is_first; /* for the page that logs in, to which links of others may lead */
} co_access_request;

/* Whether it is to this machine by a name of the loopback interface, and not of another origin. The
   port may be another one: `ssh -L`. */
bool co_access_is_ours(const co_access_request *request);
/* Compares in a time that does not depend on where they differ. NULL: false. */
bool co_access_is_secret(const char *secret, const char *given);
/* What follows /s/PATH/ in the path of an address, or NULL: not below it. */
const char *co_access_below(const co_access *access, const char *path);

#endif
