/*
 * parallel.c - how many threads a loop gets; and copying, by several.
 */
#include "core/parallel.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define PARALLEL_CHECKED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PARALLEL_CHECKED
#endif
#endif

/* Bytes that one core copies in some 10 microseconds. */
#define PARALLEL_COPY_SMALL ((size_t)1 << 17)

int co_parallel_threads(int threads)
{
#if defined(_OPENMP) && !defined(PARALLEL_CHECKED)
    return threads > 0 ? threads : omp_get_max_threads();
#else
    (void)threads;
    return 1;
#endif
}

void co_parallel_use(int threads)
{
#ifdef _OPENMP
    if (threads > 0 && omp_get_max_threads() != threads)
        omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

void co_parallel_each(void (*body)(void *arg, int t), void *arg, int threads)
{
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++)
        body(arg, t);
}

void co_parallel_copy(void *to, const void *from, int64_t rows, size_t row_bytes, int threads)
{
    threads = (size_t)rows * row_bytes < PARALLEL_COPY_SMALL ? 1 : co_parallel_threads(threads);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range part = co_parallel_part(rows, t, threads);
        const size_t at = (size_t)part.begin * row_bytes;

        memcpy((char *)to + at, (const char *)from + at,
               (size_t)(part.end - part.begin) * row_bytes);
    }
}
