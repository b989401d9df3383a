/*
 * mem.c - heap memory with checked sizes, and failures on request for tests.
 */
#include "core/mem.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cohort/status.h>

#define MEM_ALIGN      64
#define MEM_HUGE_BYTES ((size_t)4 << 20)
#define MEM_HUGE_PAGE  ((uintptr_t)2 << 20)

/* Test hooks; the only state. */
static atomic_uint_fast64_t mem_count, mem_fail_at;

void co_mem_fail_at(uint64_t k)
{
    atomic_store(&mem_count, 0);
    atomic_store(&mem_fail_at, k);
}

uint64_t co_mem_count(void)
{
    return atomic_load(&mem_count);
}

/* *bytes in all, at least 1 so that NULL always means failure, and SIZE_MAX where that is too
   little to say how many; false when the request must fail. */
static bool mem_check(size_t *bytes, size_t count, size_t size)
{
    uint64_t k = atomic_fetch_add_explicit(&mem_count, 1, memory_order_relaxed) + 1;

    if (__builtin_mul_overflow(count, size, bytes))
        *bytes = SIZE_MAX;
    if (*bytes == 0)
        *bytes = 1;
    return k != atomic_load_explicit(&mem_fail_at, memory_order_relaxed) && *bytes <= PTRDIFF_MAX;
}

static void *mem_result(void *ptr, size_t bytes)
{
    const char *least = bytes == SIZE_MAX ? "at least " : "";
    struct rlimit limit;

    if (ptr)
        return ptr;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        co_fail(CO_E_NOMEM,
                "out of memory (asked for %s%zu bytes; ulimit -v allows %zu MiB in all)", least,
                bytes, (size_t)limit.rlim_cur >> 20);
    else
        co_fail(CO_E_NOMEM, "out of memory (asked for %s%zu bytes)", least, bytes);
    return NULL;
}

/* For the whole pages of a block, if there are any. False: it failed, and nothing has changed. */
static bool mem_advise(void *ptr, size_t bytes, int advice)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t end = ((uintptr_t)ptr + bytes) / page * page;
    const uintptr_t begin = ((uintptr_t)ptr + page - 1) / page * page;

    return !ptr || begin >= end ||
           madvise((unsigned char *)ptr + (begin - (uintptr_t)ptr), end - begin, advice) == 0;
}

/* Huge pages for large blocks: a hint, failure changes nothing. */
static void mem_ask_huge(void *ptr, size_t bytes)
{
    const uintptr_t begin = ((uintptr_t)ptr + MEM_HUGE_PAGE - 1) & ~(MEM_HUGE_PAGE - 1);
    const uintptr_t end = ((uintptr_t)ptr + bytes) & ~(MEM_HUGE_PAGE - 1);

    if (ptr && begin < end)
        (void)madvise((char *)ptr + (begin - (uintptr_t)ptr), end - begin, MADV_HUGEPAGE);
}

static void mem_ask_large(void *ptr, size_t bytes)
{
    mem_ask_huge(ptr, bytes);
    (void)mem_advise(ptr, bytes, MADV_DONTDUMP);
}

void *co_calloc(size_t count, size_t size)
{
    size_t bytes;
    void *ptr = mem_check(&bytes, count, size) ? calloc(1, bytes) : NULL;

    if (ptr && bytes >= MEM_HUGE_BYTES)
        mem_ask_large(ptr, bytes);
    return mem_result(ptr, bytes);
}

void *co_realloc(void *ptr, size_t count, size_t size)
{
    size_t bytes;

    ptr = mem_check(&bytes, count, size) ? realloc(ptr, bytes) : NULL;
    if (ptr && bytes >= MEM_HUGE_BYTES)
        (void)mem_advise(ptr, bytes, MADV_DONTDUMP);
    return mem_result(ptr, bytes);
}

char *co_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = co_calloc(size, 1);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

/* Of a large block that starts with a page, pages that nobody writes take no memory, such as
   others' parts of a divided array. */
static void mem_zero(void *ptr, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = bytes >= MEM_HUGE_BYTES ? bytes / page * page : 0;

    if (!mem_advise(ptr, whole, MADV_DONTNEED))
        whole = 0;
    memset((unsigned char *)ptr + whole, 0, bytes - whole);
}

void *co_calloc_aligned(size_t count, size_t size)
{
    size_t bytes, align = MEM_ALIGN;
    void *ptr = NULL;

    if (!mem_check(&bytes, count, size))
        return mem_result(NULL, bytes);
    if (bytes >= MEM_HUGE_BYTES)
        align = MEM_HUGE_PAGE;
    if (posix_memalign(&ptr, align, bytes) != 0)
        return mem_result(NULL, bytes);
    if (bytes >= MEM_HUGE_BYTES)
        mem_ask_large(ptr, bytes);
    mem_zero(ptr, bytes);
    return ptr;
}

void co_mem_forget(void *ptr, size_t bytes)
{
    (void)mem_advise(ptr, bytes, MADV_DONTNEED);
}

/* The next allocation that reuses the block may be small, and belong in a core dump. */
void co_free(void *ptr)
{
    const size_t bytes = malloc_usable_size(ptr);

    if (bytes >= MEM_HUGE_BYTES)
        (void)mem_advise(ptr, bytes, MADV_DODUMP);
    free(ptr);
}

void *co_map(size_t bytes, int protection, int flags, int file)
{
    void *base = mmap(NULL, bytes, protection, flags, file, 0);

    if (base == MAP_FAILED)
        return NULL;
    (void)madvise(base, bytes, MADV_DONTDUMP);
    return base;
}
