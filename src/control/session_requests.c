/*
 * session_requests.c - requests of `cohort ctl` to the launcher: status, checkpoint, ranks, stop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/session_internal.h"
#include "core/plural.h"

#define REQUESTS_DONE 64 /* bytes of what is done */

static co_watch *requests_watch(const void *arg, int i)
{
    const co_session *s = arg;

    return s->shm && i < s->ranks ? co_shm_watch(s->shm, i) : NULL;
}

static co_answer_view requests_view(const co_session *s)
{
    return (co_answer_view){.shown = &s->shared->shown,
                            .ranks = s->ranks,
                            .restarts = s->restarts,
                            .resizes = s->resizes,
                            .rate = s->rate.rate,
                            .start_ns = s->options.start_ns,
                            .stopping = s->stopping,
                            .watch = requests_watch,
                            .arg = s};
}

static co_status requests_ranks(char done[REQUESTS_DONE], co_session *s, const char *number)
{
    char *end;
    const long ranks = strtol(number, &end, 10);

    if (*end || end == number || ranks < 1 || ranks > 1024)
        return co_fail(CO_E_USAGE, "'%s' is no number of ranks", number);
    if (s->stopping)
        return co_fail(CO_E_USAGE, "the run is stopping");
    if (ranks == s->ranks && !s->wanted) {
        snprintf(done, REQUESTS_DONE, "the run has %ld rank%s already", ranks,
                 co_plural((uint64_t)ranks));
        return CO_OK;
    }
    CO_TRY(session_can_resize(s, (int)ranks));
    snprintf(done, REQUESTS_DONE, "the number of ranks changes at the next step");
    s->wanted = (int)ranks;
    session_ask_leave(s);
    return CO_OK;
}

void session_answer(void *arg, char *reply, size_t size, const char *request)
{
    co_session *s = arg;
    char done[REQUESTS_DONE];

    if (strcmp(request, "status") == 0) {
        const co_answer_view view = requests_view(s);

        co_answer_status(reply, size, &view);
    } else if (strcmp(request, "checkpoint") == 0) {
        s->save = true;
        co_answer_agree(reply, size, CO_ANSWER_WILL_SAVE);
    } else if (strcmp(request, "stop") == 0) {
        s->stopping = s->stopping ? s->stopping : CO_ANSWER_STOPPING;
        session_ask_leave(s);
        co_answer_agree(reply, size, CO_ANSWER_WILL_STOP);
    } else if (strncmp(request, "ranks ", 6) == 0) {
        if (requests_ranks(done, s, request + 6) == CO_OK)
            co_answer_agree(reply, size, done);
        else
            co_answer_refuse(reply, size);
    } else {
        co_answer_unknown(reply, size, request);
    }
}
