/*
 * sha256.c - SHA-256 (FIPS 180-4).
 */
#include "core/sha256.h"

#include <string.h>

#include "core/isa.h"
#include "core/sha256_x86.h"

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const uint32_t co_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t sha256_rotate(uint32_t x, int right)
{
    return x >> right | x << (32 - right);
}

/* The 16 words of a block, big-endian, and the 48 that follow from them. */
static void sha256_schedule(uint32_t w[64], const uint8_t block[64])
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + w[i - 7] + (sha256_rotate(a, 7) ^ sha256_rotate(a, 18) ^ a >> 3) +
               (sha256_rotate(b, 17) ^ sha256_rotate(b, 19) ^ b >> 10);
    }
}

/* Instead of each word, the names of the words move: a of round i is s[-i mod 8]. */
static void sha256_mix(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64], s[8];

    sha256_schedule(w, block);
    memcpy(s, state, sizeof(s));
#pragma GCC unroll 64
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t a = s[-i & 7], b = s[(1 - i) & 7], c = s[(2 - i) & 7];
        const uint32_t e = s[(4 - i) & 7], f = s[(5 - i) & 7], g = s[(6 - i) & 7];
        const uint32_t t1 = s[(7 - i) & 7] +
                            (sha256_rotate(e, 6) ^ sha256_rotate(e, 11) ^ sha256_rotate(e, 25)) +
                            ((e & f) ^ (~e & g)) + co_sha256_k[i] + w[i];
        const uint32_t t2 = (sha256_rotate(a, 2) ^ sha256_rotate(a, 13) ^ sha256_rotate(a, 22)) +
                            ((a & b) ^ (a & c) ^ (b & c));

        s[(3 - i) & 7] += t1;
        s[(7 - i) & 7] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

static void sha256_mix_blocks(uint32_t state[8], const uint8_t *block, size_t n)
{
#ifdef CO_SHA256_X86
    if (co_isa_has_sha()) {
        co_sha256_mix_x86(state, block, n);
        return;
    }
#endif
    for (size_t i = 0; i < n; i++)
        sha256_mix(state, block + 64 * i);
}

void co_sha256_begin(co_sha256 *hash)
{
    *hash = (co_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                  0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void co_sha256_add(co_sha256 *hash, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;

    while (n > 0) {
        const size_t held = hash->bytes % sizeof(hash->block);
        size_t part = sizeof(hash->block) - held;

        if (held == 0 && n >= sizeof(hash->block)) { /* whole blocks where they lie */
            part = n - n % sizeof(hash->block);
            sha256_mix_blocks(hash->state, from, part / sizeof(hash->block));
        } else {
            part = part < n ? part : n;
            memcpy(hash->block + held, from, part);
            if (held + part == sizeof(hash->block))
                sha256_mix_blocks(hash->state, hash->block, 1);
        }
        hash->bytes += part;
        from += part;
        n -= part;
    }
}

void co_sha256_end(char out[65], co_sha256 *hash)
{
    static const char digits[] = "0123456789abcdef";
    const uint64_t bits = hash->bytes * 8;
    uint8_t length[8];

    co_sha256_add(hash, "\x80", 1);
    while (hash->bytes % sizeof(hash->block) != 56)
        co_sha256_add(hash, "", 1);
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    co_sha256_add(hash, length, sizeof(length));
    for (int i = 0; i < 64; i++)
        out[i] = digits[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}
