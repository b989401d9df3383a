/*
 * status.c - the calling thread's last failure.
 */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

#include <cohort/version.h>

#include "core/number.h"
#include "core/text.h"

#define STATUS_STR_(x) #x
#define STATUS_STR(x)  STATUS_STR_(x)

static _Thread_local char status_message[CO_STATUS_MESSAGE];
static _Thread_local co_status status_last;
static _Thread_local uint64_t status_count;

const char *co_error_message(void)
{
    return status_message;
}

co_status co_error_status(void)
{
    return status_last;
}

co_status(co_fail)(co_status status, const char *fmt, ...)
{
    char message[CO_STATUS_MESSAGE]; /* an argument may be the old message */
    va_list args;

    va_start(args, fmt);
    (void)co_number_vprint(message, sizeof(message), fmt, args);
    va_end(args);
    /* Text from files must neither break the line nor control a terminal. */
    co_text_show(status_message, sizeof(status_message), message);
    status_last = status;
    status_count++;
    return status;
}

uint64_t co_fail_count(void)
{
    return status_count;
}

int co_exit_code(co_status status)
{
    switch (status) {
    case CO_OK:
        return 0;
    case CO_E_USAGE:
        return 2;
    case CO_E_DATA:
        return 3;
    case CO_E_PEER:
    case CO_E_TIMEOUT:
    case CO_E_MISMATCH:
        return 4;
    case CO_E_INTERRUPTED:
        return 130;
    case CO_E_TERMINATED:
        return 143;
    default:
        return 1;
    }
}

const char *co_version(void)
{
    return STATUS_STR(CO_VERSION_MAJOR) "." STATUS_STR(CO_VERSION_MINOR) "." STATUS_STR(
        CO_VERSION_PATCH);
}
