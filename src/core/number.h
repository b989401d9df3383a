/*
 * number.h - numbers as text, with a point whatever locale the program has set: those of configs,
 * files and messages.
 */
#ifndef CO_CORE_NUMBER_H
#define CO_CORE_NUMBER_H

#include <stdarg.h>
#include <stddef.h>

/* strtod. */
double co_number_parse(const char *text, char **end);
/* vsnprintf and snprintf. */
int co_number_vprint(char *out, size_t size, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
int co_number_print(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
