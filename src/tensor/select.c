/*
 * select.c - exact selection of the k largest in one pass over most of the data.
 *
 * The bits of |x| have the order of |x|, so that the selection works on unsigned integers, the
 * keys. A sample of the data gives a bound that slightly more than k keys reach (Lin et al.,
 * arXiv:1712.01887, take such a bound for the answer; here it only says which elements are
 * examined); one pass gathers those, and a radix sort's digit counts find the k-th key. Where the
 * sample was misleading, the digits of all n keys are counted. The result is the same either way.
 */
#include "tensor/select.h"

#include <string.h>

#define SELECT_LINE       16    /* floats that are sampled together: a cache line */
#define SELECT_SAMPLE     16384 /* keys of a sample */
#define SELECT_SMALL      65536 /* up to this many keys all are counted */
#define SELECT_ROOM_MORE  4096
#define SELECT_DIGIT_BITS 11
#define SELECT_DIGITS     2048

static uint32_t select_key(const float *x, size_t i)
{
    uint32_t bits;

    memcpy(&bits, x + i, sizeof(bits));
    return bits & 0x7fffffffU;
}

size_t co_select_room(size_t k)
{
    const size_t room = 4 * k + SELECT_ROOM_MORE + CO_VECTOR_MORE;

    return room > SELECT_SAMPLE ? room : SELECT_SAMPLE;
}

/* Keys to choose from: of the elements `index` (n) of x, or of all. */
typedef struct select_from {
    const float *x;
    const uint32_t *index; /* NULL: 0 .. n - 1 */
    size_t n;
} select_from;

static uint32_t select_from_key(const select_from *from, size_t i)
{
    return select_key(from->x, from->index ? from->index[i] : i);
}

/* Histogram of the digits at `shift` of those keys whose higher digits are `prefix`. */
static void select_count(uint32_t count[SELECT_DIGITS], const select_from *from, uint32_t prefix,
                         int shift, int bits)
{
    const uint32_t mask = (1U << bits) - 1;

    memset(count, 0, SELECT_DIGITS * sizeof(*count));
    for (size_t i = 0; i < from->n; i++) {
        const uint32_t key = select_from_key(from, i);

        if (key >> (shift + bits) == prefix)
            count[key >> shift & mask]++;
    }
}

/* The k-th largest key. *above: keys larger than it. */
static uint32_t select_kth(size_t *above, const select_from *from, size_t k)
{
    static const int digit[] = {11, 10, 10}; /* of 31 bits */
    uint32_t count[SELECT_DIGITS], prefix = 0;
    int shift = 31;

    *above = 0;
    for (int d = 0; d < 3; d++) {
        uint32_t value = (1U << digit[d]) - 1;

        shift -= digit[d];
        select_count(count, from, prefix, shift, digit[d]);
        while (*above + count[value] < k)
            *above += count[value--];
        prefix = prefix << digit[d] | value;
    }
    return prefix;
}

/* The k largest by the k-th key, in order of their positions. */
static void select_collect(uint32_t *index, const select_from *from, size_t k)
{
    size_t above, n = 0;
    const uint32_t kth = select_kth(&above, from, k);
    size_t equal = k - above;

    for (size_t i = 0; n < k; i++) {
        const uint32_t key = select_from_key(from, i);

        if (key < kth || (key == kth && equal == 0))
            continue;
        equal -= key == kth;
        index[n++] = from->index ? from->index[i] : (uint32_t)i;
    }
}

/* A key that more than k of n reach, estimated from a sample whose positions go into `room`. */
static uint32_t select_bound(uint32_t *room, const float *x, size_t n, size_t k)
{
    const size_t lines = n / SELECT_LINE, wanted = SELECT_SAMPLE / SELECT_LINE;
    select_from sample = {.x = x, .index = room, .n = SELECT_SAMPLE};
    size_t place, above;

    for (size_t i = 0; i < wanted; i++)
        for (size_t e = 0; e < SELECT_LINE; e++)
            room[i * SELECT_LINE + e] = (uint32_t)(i * lines / wanted * SELECT_LINE + e);
    place = k * SELECT_SAMPLE / n;
    place += place / 2 + 32; /* of the k-th key in the sample, with a margin for chance */
    return place < SELECT_SAMPLE ? select_kth(&above, &sample, place) : 0;
}

void co_select_largest(const co_vector_inner *inner, uint32_t *index, uint32_t *room,
                       const float *x, size_t n, size_t k)
{
    const select_from all = {.x = x, .n = n};
    select_from some = {.x = x, .index = room};
    const size_t most = 4 * k + SELECT_ROOM_MORE - 1;
    uint32_t bound = 0;

    if (n > SELECT_SMALL && most < n)
        bound = select_bound(room, x, n, k);
    if (bound > 0)
        some.n = inner->find_large(room, x, n, bound, most);
    if (bound > 0 && some.n >= k && some.n <= most)
        select_collect(index, &some, k);
    else
        select_collect(index, &all, k);
}
