/* status.h - how every function of Cohort reports a failure and its cause. */
#ifndef COHORT_STATUS_H
#define COHORT_STATUS_H

#if defined(__GNUC__)
#define CO_API                __attribute__((visibility("default")))
#define CO_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define CO_MUST_CHECK         __attribute__((warn_unused_result))
#else
#define CO_API
#define CO_PRINTF(fmt, first)
#define CO_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Result of every function that can fail. CO_OK is 0. */
typedef enum co_status {
    CO_OK = 0,
    CO_E_USAGE,       /* bad argument, option or config           -> exit 2 */
    CO_E_DATA,        /* an input file is missing or damaged      -> exit 3 */
    CO_E_PEER,        /* another rank died                         -> exit 4 */
    CO_E_TIMEOUT,     /* another rank did not arrive in time       -> exit 4 */
    CO_E_MISMATCH,    /* ranks called different collectives        -> exit 4 */
    CO_E_INTERRUPTED, /* SIGINT                                    -> exit 130 */
    CO_E_TERMINATED,  /* SIGTERM                                   -> exit 143 */
    CO_E_IO,          /* reading or writing failed                 -> exit 1 */
    CO_E_NOMEM,       /* out of memory                             -> exit 1 */
    CO_E_UNSUPPORTED, /* this build or machine cannot do it        -> exit 1 */
    CO_E_FAILED       /* the run failed                            -> exit 1 */
} co_status;

/**
 * Message of the calling thread's last failure: one line without a newline, naming the place
 * and the remedy. Borrowed, valid until the next failure on the same thread; "" when none.
 */
CO_API const char *co_error_message(void);

/** Status of that failure; CO_OK when none. */
CO_API co_status co_error_status(void);

/** The process exit code of a status (0, 1, 2, 3, 4, 130 or 143). */
CO_API int co_exit_code(co_status status);

/** Set the calling thread's message and return `status`. The function that detects a failure calls
 *  it; its callers only pass the status on. The message is cut at 2,000 bytes. */
CO_API co_status co_fail(co_status status, const char *fmt, ...) CO_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* otherwise clang's analyzer assumes that it might return CO_OK */
#define co_fail(status, ...) ((void)(co_fail)(status, __VA_ARGS__), (status))
#endif

/** Return from the calling function if `expr` is not CO_OK. */
#define CO_TRY(expr)                                                                               \
    do {                                                                                           \
        co_status co_try_status_ = (expr);                                                         \
        if (co_try_status_ != CO_OK)                                                               \
            return co_try_status_;                                                                 \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
