/*
 * range.h - parts of files of a web server, by range requests. A server that fails now and then is
 * asked again, later and later.
 */
#ifndef CO_FETCH_RANGE_H
#define CO_FETCH_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

/* Connections of one process, kept open between requests. Thread-safe; ranks forked later make
   connections of their own. */
typedef struct co_range co_range;

typedef struct co_range_request {
    const char *url;
    uint64_t offset;
    size_t n;       /* bytes, at least 1 */
    uint64_t total; /* that the file has; 0: not known */
    /* Of a request that nobody waits for: it is made once, without a warning, and ends in about a
       second when this becomes true. NULL: it is repeated until it is answered. */
    const atomic_bool *cancel;
} co_range_request;

typedef struct co_range_answer {
    uint64_t total; /* size of the file */
    bool missing;   /* on failure: the server has no such file (404, 410) */
} co_range_answer;

/* Whether a text is an address: http:// or https://. */
bool co_range_is_address(const char *text);
/* CO_E_USAGE: an address with a user, a query or a fragment, or with characters that none may have.
 */
co_status co_range_check_address(const char *url);

/* `retry_s`: how long a request is repeated before it fails. CO_E_UNSUPPORTED: no libcurl. */
co_status co_range_create(co_range **out, double retry_s);
void co_range_destroy(co_range *range);
/* Close idle connections: before the process forks, so that no two share one. */
void co_range_rest(co_range *range);
/* Exactly the bytes asked for. CO_E_IO names the address: what the server answers at last; or at
   once a file that is missing, forbidden, or of another size than `total`, and a server that has no
   ranges. `answer` may be NULL. */
co_status co_range_read(uint8_t *out, co_range_answer *answer, co_range *range,
                        const co_range_request *request);

#endif
