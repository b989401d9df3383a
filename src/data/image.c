/*
 * image.c - JPEG and PNG files to pixels.
 */
#include "data/image.h"

static co_status image_missing(const char *name)
{
    return co_fail(CO_E_UNSUPPORTED, "%s: this build cannot decode images", name);
}

co_status co_image_scratch_create(co_image_scratch **out)
{
    *out = NULL;
    return CO_OK;
}

void co_image_scratch_destroy(co_image_scratch *scratch)
{
    (void)scratch;
}

co_status co_image_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name)
{
    (void)out, (void)bytes, (void)n;
    return image_missing(name);
}

co_status co_image_decode(uint8_t *out, const co_image_want *want, co_image_scratch *scratch,
                          const uint8_t *bytes, size_t n, const char *name)
{
    (void)out, (void)want, (void)scratch, (void)bytes, (void)n;
    return image_missing(name);
}

co_status co_image_resample(uint8_t *out, const co_image_want *want, const co_pixels *in,
                            co_image_scratch *scratch)
{
    (void)out, (void)want, (void)in, (void)scratch;
    return image_missing("resampling");
}
