/*
 * sample_lists.c - parser for a text that lists each rank's samples. Untrusted input.
 *
 * Checks that every sample exists and occurs only once.
 */
#include "data/sample_lists.h"

#include <stdbool.h>
#include <string.h>

#include "core/mem.h"
#include "core/plural.h"

#define INDICES_DIGITS 10 /* of UINT32_MAX */

typedef struct lists_reader {
    const uint8_t *at, *end; /* rest of the line */
    size_t line;             /* from 1 */
    uint64_t count;          /* samples of the set */
    uint32_t *order;         /* where the next sample goes */
    uint64_t *seen;          /* owned: (count) line in which a sample is listed, or 0 */
    const char *name;
} lists_reader;

static bool lists_is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == ',';
}

static void lists_skip_blanks(lists_reader *r)
{
    while (r->at < r->end && lists_is_blank(*r->at))
        r->at++;
}

static co_status lists_read_number(uint64_t *out, lists_reader *r)
{
    const uint8_t *start = r->at;

    *out = 0;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && r->at - start <= INDICES_DIGITS)
        *out = *out * 10 + (uint64_t)(*r->at++ - '0');
    if (r->at == start && r->at<r->end && * r->at> ' ' && *r->at < 0x7f)
        return co_fail(CO_E_DATA, "%s:%zu: expected the number of a sample, not '%c'", r->name,
                       r->line, *r->at);
    if (r->at == start)
        return co_fail(CO_E_DATA, "%s:%zu: expected the number of a sample", r->name, r->line);
    if (*out >= r->count)
        return co_fail(CO_E_DATA, "%s:%zu: there is no sample %llu; the data set's are 0 to %llu",
                       r->name, r->line, (unsigned long long)*out,
                       (unsigned long long)r->count - 1);
    return CO_OK;
}

/* "17", or "10-19". */
static co_status lists_read_range(uint64_t *first, uint64_t *last, lists_reader *r)
{
    CO_TRY(lists_read_number(first, r));
    *last = *first;
    if (r->at < r->end && *r->at == '-') {
        r->at++;
        CO_TRY(lists_read_number(last, r));
    }
    if (*last < *first)
        return co_fail(CO_E_DATA, "%s:%zu: the range %llu-%llu ends before it begins", r->name,
                       r->line, (unsigned long long)*first, (unsigned long long)*last);
    if (r->at < r->end && !lists_is_blank(*r->at))
        return co_fail(CO_E_DATA,
                       "%s:%zu: samples are parted by blanks or commas; what follows %llu is "
                       "neither",
                       r->name, r->line, (unsigned long long)*last);
    return CO_OK;
}

static co_status lists_take(lists_reader *r, uint64_t sample)
{
    if (r->seen[sample] == r->line)
        return co_fail(CO_E_DATA, "%s:%zu: sample %llu comes twice", r->name, r->line,
                       (unsigned long long)sample);
    if (r->seen[sample])
        return co_fail(CO_E_DATA, "%s:%zu: sample %llu is in line %llu already", r->name, r->line,
                       (unsigned long long)sample, (unsigned long long)r->seen[sample]);
    r->seen[sample] = r->line;
    *r->order++ = (uint32_t)sample;
    return CO_OK;
}

static co_status lists_read_line(lists_reader *r)
{
    for (lists_skip_blanks(r); r->at < r->end; lists_skip_blanks(r)) {
        uint64_t first, last;

        CO_TRY(lists_read_range(&first, &last, r));
        for (uint64_t sample = first; sample <= last; sample++)
            CO_TRY(lists_take(r, sample));
    }
    return CO_OK;
}

static co_status lists_read(uint64_t *size, lists_reader *r, const uint8_t *end, int ranks)
{
    int rank = 0;

    while (r->at < end) {
        const uint8_t *newline = memchr(r->at, '\n', (size_t)(end - r->at));
        const uint32_t *first = r->order;

        r->end = newline ? newline : end;
        r->line++;
        if (*r->at != '#') {
            if (rank == ranks)
                return co_fail(
                    CO_E_USAGE,
                    "%s:%zu: a line for rank %d, but there are %d rank%s; give one per rank",
                    r->name, r->line, rank, ranks, co_plural((uint64_t)ranks));
            CO_TRY(lists_read_line(r));
            size[rank++] = (uint64_t)(r->order - first);
        }
        r->at = newline ? newline + 1 : end;
    }
    if (rank < ranks)
        return co_fail(CO_E_USAGE, "%s: lines for %d rank%s, but there are %d; give one per rank",
                       r->name, rank, co_plural((uint64_t)rank), ranks);
    return CO_OK;
}

co_status co_indices_parse(uint32_t *order, uint64_t *size, const uint8_t *text, size_t n,
                           uint64_t count, int ranks, const char *name)
{
    lists_reader r = {.at = text, .count = count, .order = order, .name = name};
    co_status st;

    r.seen = co_calloc(count, sizeof(*r.seen));
    if (!r.seen)
        return CO_E_NOMEM;
    st = lists_read(size, &r, text + n, ranks);
    if (st == CO_OK && r.order == order)
        st = co_fail(CO_E_DATA, "%s: names no sample", name);
    co_free(r.seen);
    return st;
}
