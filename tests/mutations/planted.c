/*
 * planted.c - a faulty reader for testing the harness: aborts at a number of eight digits, loops at
 * "-", and exits like the leak sanitizer after a quotation mark.
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
