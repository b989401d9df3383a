/* md5.c - MD5 (RFC 1321). */
#include "fetch/md5.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint32_t md5_turn(uint32_t v, int bits)
{
    return v << bits | v >> (32 - bits);
}

static uint32_t md5_load(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The function of a round, and the word of the block that its step i takes. */
static uint32_t md5_mix(int i, const uint32_t s[4], int *word)
{
    switch (i / 16) {
    case 0:
        *word = i;
        return (s[1] & s[2]) | (~s[1] & s[3]);
    case 1:
        *word = (5 * i + 1) % 16;
        return (s[1] & s[3]) | (s[2] & ~s[3]);
    case 2:
        *word = (3 * i + 5) % 16;
        return s[1] ^ s[2] ^ s[3];
    default:
        *word = 7 * i % 16;
        return s[2] ^ (s[1] | ~s[3]);
    }
}

static void md5_block(co_md5 *hash, const uint8_t *block)
{
    static const int turns[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t s[4];

    memcpy(s, hash->state, sizeof(s));
    for (int i = 0; i < 64; i++) {
        int word;
        const uint32_t mixed = md5_mix(i, s, &word);
        const uint32_t sum =
            s[0] + mixed + hash->constant[i] + md5_load(block + (size_t)4 * (size_t)word);

        s[0] = s[3];
        s[3] = s[2];
        s[2] = s[1];
        s[1] += md5_turn(sum, turns[i / 16][i % 4]);
    }
    for (int i = 0; i < 4; i++)
        hash->state[i] += s[i];
}

void co_md5_begin(co_md5 *hash)
{
    *hash = (co_md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
    /* The RFC's table: the integer part of 2^32 |sin(i + 1)|. */
    for (int i = 0; i < 64; i++)
        hash->constant[i] = (uint32_t)(uint64_t)(fabs(sin(i + 1.0)) * 4294967296.0);
}

void co_md5_add(co_md5 *hash, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    while (n > 0) {
        const size_t used = (size_t)(hash->bytes % 64), left = 64 - used;
        const size_t take = n < left ? n : left;

        memcpy(hash->block + used, at, take);
        hash->bytes += take;
        at += take;
        n -= take;
        if (take == left)
            md5_block(hash, hash->block);
    }
}

void co_md5_end(char out[33], co_md5 *hash)
{
    static const uint8_t pad[64] = {0x80};
    const uint64_t bits = hash->bytes * 8;
    uint8_t length[8];

    co_md5_add(hash, pad, 1 + (size_t)((119 - hash->bytes % 64) % 64));
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (8 * i));
    co_md5_add(hash, length, sizeof(length));
    for (int i = 0; i < 16; i++)
        snprintf(out + (size_t)2 * (size_t)i, 3, "%02x",
                 (unsigned)(hash->state[i / 4] >> (8 * (i % 4)) & 0xff));
}
