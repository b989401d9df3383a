/* access.c - token and cookie, host and origin. */
#include "live/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

static co_status access_random(char out[CO_ACCESS_SECRET + 1])
{
    unsigned char bytes[CO_ACCESS_SECRET / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return co_fail(CO_E_IO, "the system gives no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return CO_OK;
}

co_status co_access_make(co_access *out)
{
    CO_TRY(access_random(out->token));
    CO_TRY(access_random(out->cookie));
    return access_random(out->path);
}

/* Whether `host` is `name`, or that with a port. */
static bool access_names(const char *host, const char *name)
{
    const size_t n = strlen(name);
    const char *rest = host + n;

    if (strncasecmp(host, name, n) != 0)
        return false;
    return *rest == '\0' ||
           (*rest == ':' && rest[1] && rest[1 + strspn(rest + 1, "0123456789")] == '\0');
}

static bool access_is_loopback(const char *host)
{
    return access_names(host, "127.0.0.1") || access_names(host, "localhost") ||
           access_names(host, "[::1]");
}

bool co_access_is_ours(const co_access_request *request)
{
    const char *origin = request->origin, *site = request->site;

    if (!request->host || !access_is_loopback(request->host))
        return false;
    if (origin &&
        (strncmp(origin, "http://", 7) != 0 || strcasecmp(origin + 7, request->host) != 0))
        return false;
    return !site || request->is_first || strcmp(site, "same-origin") == 0 ||
           strcmp(site, "none") == 0;
}

bool co_access_is_secret(const char *secret, const char *given)
{
    unsigned char differs = 0;

    if (!given || strlen(given) != CO_ACCESS_SECRET)
        return false;
    for (size_t i = 0; i < CO_ACCESS_SECRET; i++)
        differs |= (unsigned char)(secret[i] ^ given[i]);
    return differs == 0;
}

const char *co_access_below(const co_access *access, const char *path)
{
    char of[CO_ACCESS_SECRET + 1];

    if (strncmp(path, "/s/", 3) != 0 || strlen(path) < 3 + CO_ACCESS_SECRET + 1)
        return NULL;
    memcpy(of, path + 3, CO_ACCESS_SECRET);
    of[CO_ACCESS_SECRET] = '\0';
    if (!co_access_is_secret(access->path, of) || path[3 + CO_ACCESS_SECRET] != '/')
        return NULL;
    return path + 3 + CO_ACCESS_SECRET + 1;
}
