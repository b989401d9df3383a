/* library.c - opens libcurl, and sets what all transfers have. */
#include "fetch/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_CONNECT_S 30
#define LIBRARY_STALL_S   30 /* without LIBRARY_SLOW bytes a second: broken */
#define LIBRARY_SLOW      64
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

#if LIBCURL_VERSION_NUM < 0x075500
static long library_protocols(const char *names)
{
    return (long)((strstr(names, "http,") ? CURLPROTO_HTTP : 0) |
                  (strstr(names, "https") ? CURLPROTO_HTTPS : 0) |
                  (strstr(names, "file") ? CURLPROTO_FILE : 0));
}
#endif

void co_fetch_library_set(const co_fetch_library *l, CURL *handle, const char *url,
                          const char *protocols)
{
    const char *bundle = getenv("CURL_CA_BUNDLE"), *file = getenv("SSL_CERT_FILE");
    const char *folder = getenv("SSL_CERT_DIR");

    l->setopt(handle, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
    l->setopt(handle, CURLOPT_PROTOCOLS_STR, protocols);
    l->setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    l->setopt(handle, CURLOPT_PROTOCOLS, library_protocols(protocols));
    l->setopt(handle, CURLOPT_REDIR_PROTOCOLS, library_protocols("http,https"));
#endif
    l->setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    l->setopt(handle, CURLOPT_MAXREDIRS, (long)LIBRARY_REDIRECTS);
    l->setopt(handle, CURLOPT_FAILONERROR, 1L);
    l->setopt(handle, CURLOPT_NOSIGNAL, 1L);
    l->setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)LIBRARY_CONNECT_S);
    l->setopt(handle, CURLOPT_LOW_SPEED_LIMIT, (long)LIBRARY_SLOW);
    l->setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)LIBRARY_STALL_S);
    l->setopt(handle, CURLOPT_USERAGENT, "cohort");
    if (bundle || file)
        l->setopt(handle, CURLOPT_CAINFO, bundle ? bundle : file);
    if (folder)
        l->setopt(handle, CURLOPT_CAPATH, folder);
}
