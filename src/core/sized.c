/*
 * sized.c - copy between versions of a struct that differ in size.
 */
#include "core/sized.h"

#include <string.h>

#include <cohort/version.h>

co_status co_sized_read(void *out, size_t size, const void *in, size_t given, const char *type)
{
    if (!in)
        return co_fail(CO_E_USAGE, "%s: NULL; pass one, if only &(%s){0}", type, type);
    if (given == 0)
        return co_fail(CO_E_USAGE, "%s: of size 0; pass sizeof(%s)", type, type);
    for (size_t i = size; i < given; i++)
        if (((const unsigned char *)in)[i])
            return co_fail(CO_E_UNSUPPORTED,
                           "%s: byte %zu is not 0, and libcohort %s knows only %zu bytes: the "
                           "program sets a member of newer headers; leave it out, or install the "
                           "newer library",
                           type, i, co_version(), size);
    co_sized_write(out, size, in, given);
    return CO_OK;
}

void co_sized_write(void *out, size_t given, const void *in, size_t size)
{
    const size_t both = given < size ? given : size;

    if (!out)
        return;
    memcpy(out, in, both);
    memset((char *)out + both, 0, given - both);
}
