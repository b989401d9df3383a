/*
 * transfer.c - one file from an address, by libcurl. Untrusted input: no more bytes are written
 * than the file has.
 */
#include "fetch/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/open.h"
#include "core/text.h"
#include "fetch/library.h"
#include "fetch/put.h"

/* A transfer under way. */
typedef struct transfer_state {
    const co_transfer *transfer;
    int fd;
    uint64_t have;    /* bytes in the file */
    uint64_t offset;  /* of them before this call */
    bool is_large;    /* more came than the file may have */
    co_status failed; /* of the file or of progress->tick */
    char why[CURL_ERROR_SIZE];
    CURL *handle;
    const co_fetch_library *library;
} transfer_state;

static size_t transfer_write(char *bytes, size_t size, size_t n, void *arg)
{
    transfer_state *s = arg;
    const size_t all = size * n;

    if (all > s->transfer->max - s->have)
        s->is_large = true;
    if (s->failed != CO_OK || s->is_large)
        return 0;
    s->failed = co_fetch_put(s->fd, bytes, all, s->transfer->path);
    if (s->failed != CO_OK)
        return 0;
    s->have += all;
    return all;
}

static int transfer_progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total,
                             curl_off_t up)
{
    transfer_state *s = arg;
    const co_get_progress *progress = s->transfer->progress;

    (void)up_total;
    (void)up;
    if (s->failed == CO_OK)
        s->failed =
            progress->tick(progress->arg, co_fs_name(s->transfer->url), s->offset + (uint64_t)now,
                           total > 0 ? s->offset + (uint64_t)total : 0);
    return s->failed != CO_OK;
}

static void transfer_set(transfer_state *s)
{
    const co_fetch_library *l = s->library;

    co_fetch_library_set(l, s->handle, s->transfer->url, "http,https,file", s->why);
    l->setopt(s->handle, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)s->transfer->max);
    l->setopt(s->handle, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)s->offset);
    l->setopt(s->handle, CURLOPT_WRITEFUNCTION, transfer_write);
    l->setopt(s->handle, CURLOPT_WRITEDATA, s);
    l->setopt(s->handle, CURLOPT_XFERINFOFUNCTION, transfer_progress);
    l->setopt(s->handle, CURLOPT_XFERINFODATA, s);
    l->setopt(s->handle, CURLOPT_NOPROGRESS, 0L);
}

static bool transfer_is_broken(CURLcode code)
{
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
           code == CURLE_OPERATION_TIMEDOUT || code == CURLE_SEND_ERROR;
}

static co_status transfer_result(bool *again, const transfer_state *s, CURLcode code)
{
    const char *url = CO_SHOW(s->transfer->url);
    long answer = 0;

    if (s->failed != CO_OK)
        return s->failed;
    if (s->is_large || code == CURLE_FILESIZE_EXCEEDED)
        return co_fail(CO_E_DATA, "%s: sends more than the %llu bytes that the file may have", url,
                       (unsigned long long)s->transfer->max);
    if (code == CURLE_OK)
        return CO_OK;
    s->library->getinfo(s->handle, CURLINFO_RESPONSE_CODE, &answer);
    *again = transfer_is_broken(code) && s->have > s->offset;
    if (code == CURLE_HTTP_RETURNED_ERROR && answer) /* else a proxy's */
        return co_fail(CO_E_DATA, "%s: the server answers %ld", url, answer);
    return co_fetch_library_fail(s->library, CO_E_DATA, s->transfer->url, code, s->why);
}

/* A file of our own, to continue or to begin. */
static co_status transfer_open_file(transfer_state *s)
{
    struct stat info;

    CO_TRY(co_open_append(&s->fd, s->transfer->path));
    if (fstat(s->fd, &info) != 0 || (uint64_t)info.st_size > s->transfer->max) {
        if (ftruncate(s->fd, 0) != 0) {
            close(s->fd);
            return co_fail(CO_E_IO, "%s: %s", s->transfer->path, strerror(errno));
        }
        info.st_size = 0;
    }
    s->have = s->offset = (uint64_t)info.st_size;
    return CO_OK;
}

co_status co_transfer_run(bool *again, const co_transfer *transfer)
{
    transfer_state s = {.transfer = transfer, .failed = CO_OK};
    co_fetch_library library;
    co_status st;

    *again = false;
    CO_TRY(co_fetch_library_open(&library, "give the files by --from DIR"));
    CO_TRY(transfer_open_file(&s));
    s.library = &library;
    s.handle = library.init();
    if (s.handle) {
        transfer_set(&s);
        st = transfer_result(again, &s, library.perform(s.handle));
        library.cleanup(s.handle);
    } else {
        st = co_fail(CO_E_NOMEM, "out of memory");
    }
    if (close(s.fd) != 0 && st == CO_OK)
        st = co_fail(CO_E_IO, "%s: %s", transfer->path, strerror(errno));
    return st;
}
