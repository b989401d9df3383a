/* range_address.c - which addresses are taken. */
#include <string.h>

#include "core/text.h"
#include "fetch/range.h"

bool co_range_is_address(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

co_status co_range_check_address(const char *url)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._~:/%[]+,=@!$'()*;{}";
    const char *host = strstr(url, "://") + 3;
    const char *at = strchr(host, '@'), *slash = strchr(host, '/');

    if (strpbrk(url, "?#"))
        return co_fail(CO_E_USAGE, "%s: an address with ? or # cannot have names of files appended",
                       CO_SHOW(url));
    if (at && (!slash || at < slash))
        return co_fail(CO_E_USAGE,
                       "the address of data has a user in it, which would be written into runs and "
                       "logs; put user and password into ~/.netrc");
    if (!host[0] || host[0] == '/' || strspn(url, allowed) != strlen(url))
        return co_fail(CO_E_USAGE,
                       "%s: is not an address; other characters are written %%20 and so on",
                       CO_SHOW(url));
    return CO_OK;
}
