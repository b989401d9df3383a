/* fuzz_vocab.c - the reader of vocab.json over any bytes. */
#include "text/bpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_bpe *bpe;

    if (co_bpe_create(&bpe) != CO_OK)
        return 0;
    if (co_bpe_parse_vocab(bpe, data, size, "input") == CO_OK)
        for (uint32_t t = 0; t < co_bpe_tokens(bpe); t++) {
            size_t n;

            co_bpe_piece(bpe, &n, t);
        }
    co_bpe_destroy(bpe);
    return 0;
}
