/* bucket.c - computes the ends of buckets. Does not know what they are used for. */
#include "strategy/bucket.h"

#include "tensor/store.h"

#define BUCKET_EDGE_PART 4 /* size of a full bucket relative to the first and the last */

size_t co_bucket_elements(double mib)
{
    const size_t unit = (size_t)BUCKET_EDGE_PART * CO_STORE_ALIGN;
    const size_t elements = (size_t)(mib * (1 << 20) / sizeof(float));

    return elements < unit ? unit : elements / unit * unit;
}

size_t co_bucket_end(size_t begin, size_t n, size_t full)
{
    const size_t edge = full / BUCKET_EDGE_PART, rest = n - begin;

    /* no bucket is smaller than an edge, unless the whole store is */
    if (rest <= 2 * edge)
        return n;
    if (begin == 0)
        return edge;
    return rest <= full + edge ? n - edge : begin + full;
}

size_t co_bucket_count(size_t n, size_t full)
{
    size_t count = 0;

    for (size_t begin = 0; begin < n; begin = co_bucket_end(begin, n, full))
        count++;
    return count;
}
