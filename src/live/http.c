/* http.c - the functions of libmicrohttpd. */
#include "live/http.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "live/live.h"

co_status co_http_open(co_http *out)
{
    static const struct {
        const char *name;
        size_t at;
    } functions[] = {
        {"MHD_start_daemon", offsetof(co_http, start)},
        {"MHD_stop_daemon", offsetof(co_http, stop)},
        {"MHD_run_wait", offsetof(co_http, run)},
        {"MHD_lookup_connection_value", offsetof(co_http, lookup)},
        {"MHD_queue_response", offsetof(co_http, queue)},
        {"MHD_suspend_connection", offsetof(co_http, suspend)},
        {"MHD_resume_connection", offsetof(co_http, resume)},
        {"MHD_create_response_from_buffer", offsetof(co_http, from_buffer)},
        {"MHD_create_response_from_callback", offsetof(co_http, from_reader)},
        {"MHD_add_response_header", offsetof(co_http, add_header)},
        {"MHD_destroy_response", offsetof(co_http, destroy)},
        {"MHD_get_version", offsetof(co_http, version)},
    };
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return co_fail(CO_E_UNSUPPORTED, "libmicrohttpd is not on this machine "
                                         "(libmicrohttpd.so.12); install it (Debian: "
                                         "libmicrohttpd12), or watch on the terminal by --tui");
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function)
            return co_fail(CO_E_UNSUPPORTED,
                           "libmicrohttpd.so.12 has no %s; install a newer one (0.9.75)",
                           functions[i].name);
        memcpy((char *)out + functions[i].at, &function, sizeof(function));
    }
    return CO_OK;
}

co_status co_live_server_version(char *out, size_t size)
{
    co_http http;

    CO_TRY(co_http_open(&http));
    snprintf(out, size, "%s", http.version());
    return CO_OK;
}
