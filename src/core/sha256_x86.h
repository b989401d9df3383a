/* sha256_x86.h - blocks of SHA-256 by the instructions of x86-64 CPUs for it (co_isa_has_sha). */
#ifndef CO_CORE_SHA256_X86_H
#define CO_CORE_SHA256_X86_H

#include <stddef.h>
#include <stdint.h>

extern const uint32_t co_sha256_k[64];

/* n blocks of 64 bytes; the state as eight words, a first. */
void co_sha256_mix_x86(uint32_t state[8], const uint8_t *block, size_t n);

#endif
