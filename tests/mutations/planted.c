/*
 * planted.c - a reader with faults: it aborts at a number of eight digits, loops at "-", and after
 * a quotation mark its process ends as the leak sanitizer ends it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

static void planted_leak(void)
{
    _exit(23);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile int forever = 1;
    size_t digits = 0;

    for (size_t i = 0; i < size; i++) {
        digits = isdigit(data[i]) ? digits + 1 : 0;
        if (digits == 8)
            abort();
        while (data[i] == '-' && forever)
            ;
        if (data[i] == '"')
            (void)atexit(planted_leak);
    }
    return 0;
}
