/*
 * parallel.c - how many threads a loop gets.
 */
#include "core/parallel.h"

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
