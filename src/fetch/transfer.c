/*
 * transfer.c - one file from an address, by libcurl, which is opened when it is needed: a program
 * that never fetches does not load it.
 *
 * Proxies are libcurl's: https_proxy, no_proxy and so on. Certificates of a site: SSL_CERT_FILE,
 * SSL_CERT_DIR and CURL_CA_BUNDLE. Untrusted input: no more bytes are written than the file has.
 */
#include "fetch/transfer.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/open.h"
#include "core/text.h"
#include "fetch/put.h"

#define TRANSFER_CONNECT_S 30
#define TRANSFER_STALL_S   30 /* without TRANSFER_SLOW bytes a second: broken */
#define TRANSFER_SLOW      64
#define TRANSFER_REDIRECTS 5

typedef struct transfer_library {
    CURLcode (*global_init)(long flags);
    CURL *(*init)(void);
    CURLcode (*setopt)(CURL *handle, CURLoption option, ...);
    CURLcode (*perform)(CURL *handle);
    CURLcode (*getinfo)(CURL *handle, CURLINFO info, ...);
    const char *(*text)(CURLcode code);
    void (*cleanup)(CURL *handle);
} transfer_library;

/* A transfer under way. */
typedef struct transfer_state {
    const co_transfer *transfer;
    int fd;
    uint64_t have;    /* bytes in the file */
    uint64_t offset;  /* of them before this call */
    bool is_large;    /* more came than the file may have */
    co_status failed; /* of the file or of progress->tick */
    CURL *handle;
    const transfer_library *library;
} transfer_state;

static co_status transfer_open_library(transfer_library *out)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return co_fail(CO_E_UNSUPPORTED,
                       "libcurl is not on this machine (libcurl.so.4); install it "
                       "(Debian: libcurl4), or give the files by --from DIR");
    *(void **)&out->global_init = dlsym(library, "curl_global_init");
    *(void **)&out->init = dlsym(library, "curl_easy_init");
    *(void **)&out->setopt = dlsym(library, "curl_easy_setopt");
    *(void **)&out->perform = dlsym(library, "curl_easy_perform");
    *(void **)&out->getinfo = dlsym(library, "curl_easy_getinfo");
    *(void **)&out->text = dlsym(library, "curl_easy_strerror");
    *(void **)&out->cleanup = dlsym(library, "curl_easy_cleanup");
    if (!out->global_init || !out->init || !out->setopt || !out->perform || !out->getinfo ||
        !out->text || !out->cleanup)
        return co_fail(CO_E_UNSUPPORTED, "libcurl.so.4 lacks functions that it should have");
    return CO_OK;
}

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
    const char *slash = strrchr(s->transfer->url, '/');

    (void)up_total;
    (void)up;
    if (s->failed == CO_OK)
        s->failed =
            progress->tick(progress->arg, slash ? slash + 1 : s->transfer->url,
                           s->offset + (uint64_t)now, total > 0 ? s->offset + (uint64_t)total : 0);
    return s->failed != CO_OK;
}

static void transfer_set(transfer_state *s)
{
    const transfer_library *l = s->library;
    const char *bundle = getenv("CURL_CA_BUNDLE"), *file = getenv("SSL_CERT_FILE");
    const char *folder = getenv("SSL_CERT_DIR");

    l->setopt(s->handle, CURLOPT_URL, s->transfer->url);
#if LIBCURL_VERSION_NUM >= 0x075500
    l->setopt(s->handle, CURLOPT_PROTOCOLS_STR, "http,https,file");
    l->setopt(s->handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    l->setopt(s->handle, CURLOPT_PROTOCOLS,
              (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS | CURLPROTO_FILE));
    l->setopt(s->handle, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    l->setopt(s->handle, CURLOPT_FOLLOWLOCATION, 1L);
    l->setopt(s->handle, CURLOPT_MAXREDIRS, (long)TRANSFER_REDIRECTS);
    l->setopt(s->handle, CURLOPT_FAILONERROR, 1L);
    l->setopt(s->handle, CURLOPT_NOSIGNAL, 1L);
    l->setopt(s->handle, CURLOPT_CONNECTTIMEOUT, (long)TRANSFER_CONNECT_S);
    l->setopt(s->handle, CURLOPT_LOW_SPEED_LIMIT, (long)TRANSFER_SLOW);
    l->setopt(s->handle, CURLOPT_LOW_SPEED_TIME, (long)TRANSFER_STALL_S);
    l->setopt(s->handle, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)s->transfer->max);
    l->setopt(s->handle, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)s->offset);
    l->setopt(s->handle, CURLOPT_USERAGENT, "cohort");
    if (bundle || file)
        l->setopt(s->handle, CURLOPT_CAINFO, bundle ? bundle : file);
    if (folder)
        l->setopt(s->handle, CURLOPT_CAPATH, folder);
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
    if (code == CURLE_HTTP_RETURNED_ERROR)
        return co_fail(CO_E_DATA, "%s: the server answers %ld", url, answer);
    return co_fail(CO_E_DATA, "%s: %s", url, s->library->text(code));
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
    transfer_library library;
    co_status st;

    *again = false;
    CO_TRY(transfer_open_library(&library));
    CO_TRY(transfer_open_file(&s));
    s.library = &library;
    library.global_init(CURL_GLOBAL_DEFAULT);
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
