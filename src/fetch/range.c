/*
 * range.c - range requests by libcurl. Untrusted input: an answer is taken only if it is the range
 * that was asked for, of a file of the expected size.
 */
#include "fetch/range.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/text.h"
#include "fetch/library.h"

#define RANGE_IDLE        32  /* connections that are kept */
#define RANGE_FIRST_WAIT  0.1 /* seconds */
#define RANGE_MOST_WAIT   10.0
#define RANGE_FIRST_TRIES 3 /* of a server that has never answered: a wrong address, as a rule */
#define RANGE_WARNINGS    3
#define RANGE_SLICE_US    100000 /* of a longer sleep */

struct co_range {
    co_fetch_library library;
    double retry_s;
    pthread_mutex_t lock;
    CURL *idle[RANGE_IDLE]; /* under lock */
    int n;
    pid_t owner;         /* process whose they are */
    atomic_bool reached; /* a server has answered */
    atomic_int warned;
};

/* One request under way. */
typedef struct range_state {
    const co_range_request *request;
    uint8_t *out;
    size_t have;
    uint64_t begin, total; /* of the answer's Content-Range */
    long stall_s;          /* how long a try waits for a server that sends nothing */
    bool has_range, is_large;
    char why[CURL_ERROR_SIZE];
} range_state;

co_status co_range_create(co_range **out, double retry_s)
{
    co_range *r = co_calloc(1, sizeof(*r));
    co_status st;

    if (!r)
        return CO_E_NOMEM;
    st = co_fetch_library_open(&r->library, "copy the shards to this machine");
    if (st != CO_OK) {
        co_free(r);
        return st;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->retry_s = retry_s;
    r->owner = getpid();
    *out = r;
    return CO_OK;
}

void co_range_rest(co_range *r)
{
    pthread_mutex_lock(&r->lock);
    if (r->owner == getpid())
        while (r->n > 0)
            r->library.cleanup(r->idle[--r->n]);
    pthread_mutex_unlock(&r->lock);
}

void co_range_destroy(co_range *r)
{
    if (!r)
        return;
    co_range_rest(r);
    pthread_mutex_destroy(&r->lock);
    co_free(r);
}

static CURL *range_take(co_range *r)
{
    CURL *handle = NULL;

    pthread_mutex_lock(&r->lock);
    if (r->owner != getpid()) { /* those of the process that this was forked from are not ours */
        r->n = 0;
        r->owner = getpid();
    }
    if (r->n > 0)
        handle = r->idle[--r->n];
    pthread_mutex_unlock(&r->lock);
    return handle ? handle : r->library.init();
}

static void range_give(co_range *r, CURL *handle)
{
    r->library.setopt(handle, CURLOPT_ERRORBUFFER, (char *)NULL);
    pthread_mutex_lock(&r->lock);
    if (r->n < RANGE_IDLE) {
        r->idle[r->n++] = handle;
        handle = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    if (handle)
        r->library.cleanup(handle);
}

static size_t range_write(char *bytes, size_t size, size_t n, void *arg)
{
    range_state *s = arg;
    const size_t all = size * n;

    if (!s->has_range)
        return 0; /* a whole file, which may be of any size */
    if (all > s->request->n - s->have) {
        s->is_large = true;
        return 0;
    }
    memcpy(s->out + s->have, bytes, all);
    s->have += all;
    return all;
}

/* Content-Range: bytes FIRST-LAST/TOTAL */
static size_t range_header(char *bytes, size_t size, size_t n, void *arg)
{
    static const char name[] = "content-range:";
    const size_t all = size * n;
    range_state *s = arg;
    unsigned long long first, last, total;
    char line[128];

    if (all >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        s->has_range = false; /* of the answer after a redirect */
    if (all < sizeof(name) || all >= sizeof(line) ||
        strncasecmp(bytes, name, sizeof(name) - 1) != 0)
        return all;
    memcpy(line, bytes + sizeof(name) - 1, all - sizeof(name) + 1);
    line[all - sizeof(name) + 1] = '\0';
    if (sscanf(line, " bytes %llu-%llu/%llu", &first, &last, &total) == 3) {
        s->has_range = true;
        s->begin = first;
        s->total = total;
    }
    return all;
}

static int range_cancelled(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                           curl_off_t up)
{
    const atomic_bool *cancel = arg;

    (void)down_all, (void)down, (void)up_all, (void)up;
    return cancel && atomic_load(cancel);
}

static void range_set(const co_range *r, CURL *handle, range_state *s)
{
    const co_fetch_library *l = &r->library;
    const co_range_request *q = s->request;
    char range[64];

    snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)q->offset,
             (unsigned long long)(q->offset + q->n - 1));
    co_fetch_library_set(l, handle, q->url, "http,https", s->why);
    l->setopt(handle, CURLOPT_CONNECTTIMEOUT, s->stall_s);
    l->setopt(handle, CURLOPT_LOW_SPEED_TIME, s->stall_s);
    l->setopt(handle, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    l->setopt(handle, CURLOPT_RANGE, range);
    l->setopt(handle, CURLOPT_WRITEFUNCTION, range_write);
    l->setopt(handle, CURLOPT_WRITEDATA, s);
    l->setopt(handle, CURLOPT_HEADERFUNCTION, range_header);
    l->setopt(handle, CURLOPT_HEADERDATA, s);
    l->setopt(handle, CURLOPT_NOPROGRESS, q->cancel ? 0L : 1L);
    l->setopt(handle, CURLOPT_XFERINFOFUNCTION, range_cancelled);
    l->setopt(handle, CURLOPT_XFERINFODATA, q->cancel);
}

/* Whether the same request may be answered another time. */
static bool range_may_pass(CURLcode code, long answer)
{
    switch (code) {
    case CURLE_HTTP_RETURNED_ERROR:
        return answer == 408 || answer == 425 || answer == 429 || answer >= 500;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

/* The file ends before the range does. */
static co_status range_is_short(const co_range_request *q)
{
    if (!q->total)
        return co_fail(CO_E_IO, "%s: has fewer than %llu bytes: cut short, or another file",
                       CO_SHOW(q->url), (unsigned long long)(q->offset + q->n));
    return co_fail(CO_E_IO, "%s: is shorter than its index says: cut short, or changed",
                   CO_SHOW(q->url));
}

/* What is wrong with an answer that came. */
static co_status range_check(bool *again, const range_state *s, long answer)
{
    const co_range_request *q = s->request;
    const char *url = CO_SHOW(q->url);

    if (answer == 200)
        return co_fail(CO_E_IO,
                       "%s: the server sends the whole file where a range of it is asked for; it "
                       "has to know range requests",
                       url);
    if (s->has_range && q->total && s->total != q->total)
        return co_fail(CO_E_IO,
                       "%s: has %llu bytes, and had %llu when its index was written: it was "
                       "changed",
                       url, (unsigned long long)s->total, (unsigned long long)q->total);
    if (s->has_range && s->total < q->offset + q->n)
        return range_is_short(q);
    if (s->is_large || (s->has_range && s->begin != q->offset))
        return co_fail(CO_E_IO, "%s: the server sends another range than it was asked for", url);
    if (answer == 206 && !s->has_range)
        return co_fail(CO_E_IO, "%s: the server does not say which range it sends (Content-Range)",
                       url);
    *again = true;
    return co_fail(CO_E_IO, "%s: the server sends %zu of %zu bytes", url, s->have, q->n);
}

static co_status range_once(bool *again, co_range_answer *answer, co_range *r, range_state *s)
{
    const char *url = CO_SHOW(s->request->url);
    CURL *handle = range_take(r);
    CURLcode code;
    long number = 0;

    *again = false;
    if (!handle)
        return co_fail(CO_E_NOMEM, "out of memory");
    s->have = 0;
    s->has_range = s->is_large = false;
    range_set(r, handle, s);
    code = r->library.perform(handle);
    r->library.getinfo(handle, CURLINFO_RESPONSE_CODE, &number);
    if (code == CURLE_OK)
        range_give(r, handle);
    else
        r->library.cleanup(handle);
    if (number > 0)
        atomic_store(&r->reached, true);
    answer->total = s->total;
    answer->missing = number == 404 || number == 410;
    if (code == CURLE_OK && s->has_range && s->begin == s->request->offset &&
        s->have == s->request->n && (!s->request->total || s->total == s->request->total))
        return CO_OK;
    if (code == CURLE_OK || code == CURLE_WRITE_ERROR)
        return range_check(again, s, number);
    if (number == 416)
        return range_is_short(s->request);
    *again = range_may_pass(code, number);
    if (code == CURLE_HTTP_RETURNED_ERROR && number) /* else a proxy's */
        return co_fail(CO_E_IO, "%s: the server answers %ld", url, number);
    return co_fetch_library_fail(&r->library, CO_E_IO, s->request->url, code, s->why);
}

/* Between half of the time and all of it, so that ranks do not come back together. */
static void range_sleep(double seconds, uint64_t salt)
{
    const uint64_t now = co_clock_ns();
    const double part =
        0.5 + 0.5 * (double)((now ^ salt) * UINT64_C(0x9e3779b97f4a7c15) >> 40) / (double)(1 << 24);

    while (co_clock_seconds(now, co_clock_ns()) < seconds * part)
        co_clock_sleep_us(RANGE_SLICE_US / 4);
}

/* Half of what is left of `retry`, so that there is a next try. */
static long range_stall(const co_range *r, double seconds)
{
    const double half = (r->retry_s - seconds) / 2;

    return half < 1 ? 1 : half < CO_FETCH_STALL_S ? (long)half : CO_FETCH_STALL_S;
}

static co_status range_give_up(int tries, double seconds)
{
    char why[1024];

    snprintf(why, sizeof(why), "%s", co_error_message());
    return co_fail(CO_E_IO, "%s, at each of %d tries in %.0f s", why, tries, seconds);
}

co_status co_range_read(uint8_t *out, co_range_answer *answer, co_range *r,
                        const co_range_request *request)
{
    range_state s = {.request = request, .out = out, .stall_s = range_stall(r, 0)};
    const uint64_t start = co_clock_ns();
    double wait = RANGE_FIRST_WAIT;
    co_range_answer any;

    for (int tries = 1;; tries++) {
        bool again;
        const co_status st = range_once(&again, answer ? answer : &any, r, &s);
        const double seconds = co_clock_seconds(start, co_clock_ns());

        if (st == CO_OK || !again || request->cancel)
            return st;
        if (seconds + wait > r->retry_s ||
            (tries >= RANGE_FIRST_TRIES && !atomic_load(&r->reached)))
            return range_give_up(tries, seconds);
        if (tries == 1 && atomic_fetch_add(&r->warned, 1) < RANGE_WARNINGS)
            co_log(CO_LOG_WARN, "%s; asking again, for up to %.0f s", co_error_message(),
                   r->retry_s);
        range_sleep(wait, (uint64_t)(uintptr_t)&s ^ (uint64_t)getpid() << 32);
        wait = 2 * wait < RANGE_MOST_WAIT ? 2 * wait : RANGE_MOST_WAIT;
        s.stall_s = range_stall(r, co_clock_seconds(start, co_clock_ns()));
    }
}
