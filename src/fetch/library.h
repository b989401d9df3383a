/* library.h - libcurl, which is opened when it is needed: a program that never fetches does not
   load it. Internal to src/fetch. */
#ifndef CO_FETCH_LIBRARY_H
#define CO_FETCH_LIBRARY_H

#include <curl/curl.h>

#include <cohort/status.h>

#define CO_FETCH_STALL_S 30 /* a transfer that stands still as long has failed */

typedef struct co_fetch_library {
    CURLcode (*global_init)(long flags);
    CURL *(*init)(void);
    CURLcode (*setopt)(CURL *handle, CURLoption option, ...);
    CURLcode (*perform)(CURL *handle);
    CURLcode (*getinfo)(CURL *handle, CURLINFO info, ...);
    const char *(*text)(CURLcode code);
    void (*cleanup)(CURL *handle);
} co_fetch_library;

/* CO_E_UNSUPPORTED: libcurl is not on this machine; `remedy` says what can be done without. */
co_status co_fetch_library_open(co_fetch_library *out, const char *remedy);
/* What all transfers have: protocols ("http,https"), few redirects, time limits, and certificates
   from SSL_CERT_FILE, SSL_CERT_DIR and CURL_CA_BUNDLE; from https no redirect leads to http.
   Proxies are libcurl's: https_proxy, no_proxy and so on. `why` is written as long as `handle` has
   it. */
void co_fetch_library_set(const co_fetch_library *library, CURL *handle, const char *url,
                          const char *protocols, char why[CURL_ERROR_SIZE]);
/* The error `st` of a transfer that ended with `code` and `why`. */
co_status co_fetch_library_fail(const co_fetch_library *library, co_status st, const char *url,
                                CURLcode code, const char *why);

#endif
