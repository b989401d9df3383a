/*
 * fuzz_image.c - the image decoder over any bytes: a box of the image, chosen by the first bytes,
 * to a small size.
 *
 * What probe accepts keeps to the limits, and a decoder that has failed still decodes the next one:
 * the scratch is kept from input to input.
 */
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHOICE 8
/* Larger images take the fuzzer's time and show nothing new. */
#define FUZZ_MAX_PIXELS 250000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static co_image_scratch *scratch; /* of the process */
    static co_lookup_table table[3];  /* what the floats are does not matter */
    static float out[3 * 64 * 64];
    co_image_want want = {0};
    co_image_info info;

    if (!scratch && co_image_scratch_create(&scratch) != CO_OK)
        return 0;
    if (size < FUZZ_CHOICE ||
        co_image_probe(&info, data + FUZZ_CHOICE, size - FUZZ_CHOICE, "input") != CO_OK)
        return 0;
    if (info.width == 0 || info.height == 0 || info.width > CO_IMAGE_MAX_SIDE ||
        info.height > CO_IMAGE_MAX_SIDE)
        abort();
    if ((uint64_t)info.width * info.height > FUZZ_MAX_PIXELS)
        return 0;
    want.box.width = 1 + (info.width - 1) * (data[0] / 255.0);
    want.box.height = 1 + (info.height - 1) * (data[1] / 255.0);
    want.box.x = (info.width - want.box.width) * (data[2] / 255.0);
    want.box.y = (info.height - want.box.height) * (data[3] / 255.0);
    want.width = 1 + data[4] % 64;
    want.height = 1 + data[5] % 64;
    want.channels = data[6] % 2 ? 1 : 3;
    want.mirror = data[7] % 2;
    want.table = data[7] / 2 % 2 ? table : NULL;
    want.stream = data[7] / 4 % 2;
    want.scaled = data[7] / 8 % 2 == 0; /* as before there was a choice: for inputs of then */
    if (co_image_decode(out, &want, scratch, data + FUZZ_CHOICE, size - FUZZ_CHOICE, "input") ==
        CO_E_USAGE)
        abort(); /* the box is within the image */
    return 0;
}
