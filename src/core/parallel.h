/*
 * parallel.h - loops that the threads of a rank share: the one place that knows OpenMP, and what
 * the thread sanitizer cannot see of it.
 *
 * Work is cut by its shape. An iteration writes what no other one reads or writes, and sums that
 * cross iterations are joined after the loop in a fixed order, so the number of threads changes no
 * bit.
 */
#ifndef CO_CORE_PARALLEL_H
#define CO_CORE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/* The number of threads for a loop for which there are `threads` cores; 0: OpenMP's default. One
   without OpenMP, and under the thread sanitizer, which does not know its barriers. */
int co_parallel_threads(int threads);

/* Let OpenMP in a library that the calling thread is about to call have that many threads, 0: the
   former number. OpenMP keeps a number for each thread, and a plan may run on any. */
void co_parallel_use(int threads);

/* body(arg, t) for each thread t of `threads`, for folders that are not compiled for OpenMP. */
void co_parallel_each(void (*body)(void *arg, int t), void *arg, int threads);

/* Copy rows of so many bytes each, shared by threads if they are many. */
void co_parallel_copy(void *to, const void *from, int64_t rows, size_t row_bytes, int threads);

/* Pieces [begin, end) of work. */
typedef struct co_range {
    int64_t begin, end;
} co_range;

/* Part `i` of `n` pieces in `parts` neighbouring parts, larger ones first: what thread `i` has of a
   loop, so that it meets the same pieces in one loop after the other. */
static inline co_range co_parallel_part(int64_t n, int i, int parts)
{
    return (co_range){(n * i + parts - 1) / parts, (n * (i + 1) + parts - 1) / parts};
}

/* The iterations of the next `for`, each thread's contiguous. `threads` is a variable. */
#define CO_PARALLEL_PRAGMA(text) _Pragma(#text)
#ifdef _OPENMP
#define CO_PARALLEL_FOR(threads)                                                                   \
    CO_PARALLEL_PRAGMA(omp parallel for schedule(static) num_threads(threads) if ((threads) > 1))
#else
#define CO_PARALLEL_FOR(threads) (void)(threads);
#endif

/* `call` for each thread t of `threads`. For a single one OpenMP would take half a microsecond. */
#define CO_PARALLEL_EACH(t, threads, call)                                                         \
    do {                                                                                           \
        const int co_each = (threads);                                                             \
                                                                                                   \
        if (co_each == 1) {                                                                        \
            const int t = 0;                                                                       \
                                                                                                   \
            call;                                                                                  \
            break;                                                                                 \
        }                                                                                          \
        CO_PARALLEL_FOR(co_each)                                                                   \
        for (int t = 0; t < co_each; t++)                                                          \
            call;                                                                                  \
    } while (0)

#endif
