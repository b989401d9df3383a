/* without.c - for builds without libmicrohttpd. */
#include "live/live.h"

static co_status without_server(void)
{
    return co_fail(CO_E_UNSUPPORTED,
                   "this build cannot serve pages; build it with libmicrohttpd (Debian: "
                   "libmicrohttpd-dev)");
}

co_status co_live_serve(const co_live_options *options)
{
    (void)options;
    return without_server();
}

co_status co_live_server_version(char *out, size_t size)
{
    (void)out;
    (void)size;
    return without_server();
}
