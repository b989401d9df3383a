/*
 * mutate.c - changes to a file that its reader must bear: bits, bytes, numbers at their limits,
 * missing, doubled and foreign stretches, large numbers in text. Knows no format.
 */
#include "mutate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

#define MUTATE_CHANGES 8

typedef struct mutation {
    co_rng rng;
    uint64_t drawn; /* words of rng */
    size_t size;
    uint8_t data[MUTATE_MAX_BYTES];
} mutation;

/* Below n; the slight bias of the remainder does not matter here. */
static size_t mutate_draw(mutation *m, size_t n)
{
    return n ? co_rng_word(&m->rng, m->drawn++) % n : 0;
}

/* Long stretches are rare: half are of up to 8 bytes. */
static size_t mutate_length(mutation *m, size_t most)
{
    const size_t longest = mutate_draw(m, 2) && most > 8 ? 8 : most;

    return longest ? 1 + mutate_draw(m, longest) : 0;
}

/* Put `n` bytes in place of the `old` at `at`; leaves the file alone where it would get too large.
   `from` may lie in the file. */
static void mutate_replace(mutation *m, size_t at, size_t old, const void *from, size_t n)
{
    static const uint8_t none;
    uint8_t *copy;

    if (m->size - old + n > MUTATE_MAX_BYTES || (copy = malloc(n ? n : 1)) == NULL)
        return;
    memcpy(copy, n ? from : &none, n);
    memmove(m->data + at + n, m->data + at + old, m->size - at - old);
    memcpy(m->data + at, copy, n);
    m->size += n - old;
    free(copy);
}

static void mutate_bit(mutation *m)
{
    if (m->size)
        m->data[mutate_draw(m, m->size)] ^= (uint8_t)(1u << mutate_draw(m, 8));
}

static void mutate_byte(mutation *m)
{
    static const uint8_t value[] = {0, 255, 1, 127, 128, '\n', '"', '0'};

    if (m->size)
        m->data[mutate_draw(m, m->size)] = value[mutate_draw(m, sizeof(value))];
}

/* A number of 1 to 8 bytes, in either order: a power of two, one beside it, or the file's size. */
static void mutate_number(mutation *m)
{
    const size_t bytes = (size_t)1 << mutate_draw(m, 4);
    const bool big = mutate_draw(m, 2);
    uint64_t value = mutate_draw(m, 4) ? UINT64_C(1) << mutate_draw(m, 64) : m->size;
    size_t at;

    if (m->size < bytes)
        return;
    value += mutate_draw(m, 3) - 1; /* -1, 0 or 1, modulo 2^64 */
    if (mutate_draw(m, 4) == 0)
        value = 0 - value;
    at = mutate_draw(m, m->size - bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        m->data[at + (big ? bytes - 1 - i : i)] = (uint8_t)(value >> 8 * i);
}

static void mutate_truncate(mutation *m)
{
    m->size -= mutate_length(m, m->size);
}

static void mutate_remove(mutation *m)
{
    const size_t n = mutate_length(m, m->size);

    mutate_replace(m, mutate_draw(m, m->size - n + 1), n, NULL, 0);
}

/* Once or several times, behind itself or elsewhere. */
static void mutate_double(mutation *m)
{
    const size_t n = mutate_length(m, m->size);
    const size_t from = mutate_draw(m, m->size - n + 1);
    const size_t to = mutate_draw(m, 2) ? from + n : mutate_draw(m, m->size + 1);

    for (size_t times = 1 + mutate_draw(m, 2) * mutate_draw(m, 100); times > 0; times--)
        mutate_replace(m, to, 0, m->data + from, n);
}

/* The beginning of this file and the end of another one. */
static void mutate_splice(mutation *m, const mutate_file *other)
{
    const size_t at = mutate_draw(m, m->size + 1);
    const size_t from = mutate_draw(m, other->size + 1);

    mutate_replace(m, at, m->size - at, other->data + from, other->size - from);
}

/* A run of digits becomes another number, often of the same length, so that what is behind it
   stays where it was. */
static void mutate_digits(mutation *m)
{
    static const char *const large[] = {
        "0",          "-1",         "127",        "65536",      "2147483647",
        "2147483648", "4294967295", "4294967296", "1e999",      "9007199254740993",
        "1e-999",     "nan",        "0x7f",       "1000000000", "9223372036854775807",
        "0.0",        "007",        "1_000",      "-0",         "9223372036854775808",
        "999999",     "-1e308",     "1024",       "16777217",   "18446744073709551616"};
    const char *text = large[mutate_draw(m, sizeof(large) / sizeof(large[0]))];
    size_t begin = mutate_draw(m, m->size), end;

    while (begin < m->size && !isdigit(m->data[begin]))
        begin++;
    for (end = begin; end < m->size && isdigit(m->data[end]); end++)
        ;
    if (begin == end)
        return;
    if (mutate_draw(m, 2))
        mutate_replace(m, begin, end - begin, text, strlen(text));
    else
        memset(m->data + begin, mutate_draw(m, 2) ? '9' : '0' + (int)mutate_draw(m, 10),
               end - begin);
}

static void mutate_once(mutation *m, const mutate_file *other)
{
    static void (*const change[])(mutation *) = {mutate_bit,    mutate_byte,   mutate_number,
                                                 mutate_number, mutate_digits, mutate_digits,
                                                 mutate_remove, mutate_double};
    const size_t n = sizeof(change) / sizeof(change[0]);
    const size_t which = mutate_draw(m, 2 * n + 2);

    /* Cuts and splices cost most of a file: not too often. */
    if (which == 2 * n)
        mutate_truncate(m);
    else if (which == 2 * n + 1)
        mutate_splice(m, other);
    else
        change[which % n](m);
}

mutate_file mutate(const mutate_file *file, size_t n, uint64_t seed, uint32_t index)
{
    mutate_file made = {NULL, 0};
    mutation *m = calloc(1, sizeof(*m));
    const mutate_file *from;

    if (m == NULL)
        return made;
    m->rng = (co_rng){.seed = seed, .stream = CO_RNG_TEST, .item = index};
    from = &file[mutate_draw(m, n)];
    m->size = from->size < MUTATE_MAX_BYTES ? from->size : MUTATE_MAX_BYTES;
    memcpy(m->data, from->data, m->size);
    for (size_t changes = 1 + mutate_draw(m, MUTATE_CHANGES); changes > 0; changes--)
        mutate_once(m, &file[mutate_draw(m, n)]);
    made.size = m->size;
    made.data = malloc(made.size ? made.size : 1);
    if (made.data != NULL)
        memcpy(made.data, m->data, made.size);
    free(m);
    return made;
}
