/* library.c - opens libcurl, and sets what all transfers have. */
#define CURL_DISABLE_DEPRECATION
#include "fetch/library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text.h"

#define LIBRARY_CONNECT_S 30
#define LIBRARY_SLOW      64 /* bytes a second, below which a transfer stalls */
#define LIBRARY_REDIRECTS 5

co_status co_fetch_library_open(co_fetch_library *out, const char *remedy)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return co_fail(CO_E_UNSUPPORTED,
                       "libcurl is not on this machine (libcurl.so.4); install it "
                       "(Debian: libcurl4), or %s",
                       remedy);
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
    out->global_init(CURL_GLOBAL_DEFAULT);
    return CO_OK;
}

static long library_protocols(const char *names)
{
    return (long)((strstr(names, "http,") ? CURLPROTO_HTTP : 0) |
                  (strstr(names, "https") ? CURLPROTO_HTTPS : 0) |
                  (strstr(names, "file") ? CURLPROTO_FILE : 0));
}

/* The library may be older than the headers that this was built with. */
static void library_allow(const co_fetch_library *l, CURL *handle, bool redirected,
                          const char *names)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    if (l->setopt(handle, redirected ? CURLOPT_REDIR_PROTOCOLS_STR : CURLOPT_PROTOCOLS_STR,
                  names) == CURLE_OK)
        return;
#endif
    l->setopt(handle, redirected ? CURLOPT_REDIR_PROTOCOLS : CURLOPT_PROTOCOLS,
              library_protocols(names));
}

/* An empty variable is as none. */
static const char *library_named(const char *variable)
{
    const char *value = getenv(variable);

    return value && value[0] ? value : NULL;
}

void co_fetch_library_set(const co_fetch_library *l, CURL *handle, const char *url,
                          const char *protocols, char why[CURL_ERROR_SIZE])
{
    const char *bundle = library_named("CURL_CA_BUNDLE"), *file = library_named("SSL_CERT_FILE");
    const char *folder = library_named("SSL_CERT_DIR");

    l->setopt(handle, CURLOPT_URL, url);
    library_allow(l, handle, false, protocols);
    /* What came encrypted is not fetched in the clear. */
    library_allow(l, handle, true, strncasecmp(url, "https:", 6) == 0 ? "https" : "http,https");
    why[0] = '\0';
    l->setopt(handle, CURLOPT_ERRORBUFFER, why);
    l->setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    l->setopt(handle, CURLOPT_MAXREDIRS, (long)LIBRARY_REDIRECTS);
    l->setopt(handle, CURLOPT_FAILONERROR, 1L);
    l->setopt(handle, CURLOPT_NOSIGNAL, 1L);
    l->setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)LIBRARY_CONNECT_S);
    l->setopt(handle, CURLOPT_LOW_SPEED_LIMIT, (long)LIBRARY_SLOW);
    l->setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)CO_FETCH_STALL_S);
    l->setopt(handle, CURLOPT_USERAGENT, "cohort");
    if (bundle || file)
        l->setopt(handle, CURLOPT_CAINFO, bundle ? bundle : file);
    if (folder)
        l->setopt(handle, CURLOPT_CAPATH, folder);
}

co_status co_fetch_library_fail(const co_fetch_library *l, co_status st, const char *url,
                                CURLcode code, const char *why)
{
    const char *what = CO_SHOW(why[0] ? why : l->text(code));

    url = CO_SHOW(url);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return co_fail(st,
                       "%s: its certificate is refused: %s; where an authority of your own has "
                       "signed it, name the authority's file in SSL_CERT_FILE",
                       url, what);
    if (code == CURLE_SSL_CACERT_BADFILE)
        return co_fail(st,
                       "%s: there is nothing to check its certificate with: %s; install the "
                       "authorities (Debian: ca-certificates), or name a file in SSL_CERT_FILE",
                       url, what);
    return co_fail(st, "%s: %s", url, what);
}
