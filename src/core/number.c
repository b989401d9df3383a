/* number.c - numbers as text, by the C locale of this thread alone. */
#include "core/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t number_locale; /* 0: it could not be made */

static void number_make_locale(void)
{
    number_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

/* Returns the locale to go back to. */
static locale_t number_enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, number_make_locale);
    return uselocale(number_locale);
}

double co_number_parse(const char *text, char **end)
{
    const locale_t before = number_enter();
    const double number = strtod(text, end);

    uselocale(before);
    return number;
}

int co_number_vprint(char *out, size_t size, const char *fmt, va_list args)
{
    const locale_t before = number_enter();
    const int n = vsnprintf(out, size, fmt, args);

    uselocale(before);
    return n;
}

int co_number_print(char *out, size_t size, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = co_number_vprint(out, size, fmt, args);
    va_end(args);
    return n;
}
