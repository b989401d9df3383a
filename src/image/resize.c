/*
 * resize.c - the key `resize`: bring images to one size by interpolation or padding.
 *
 * Interpolation is linear, so it can follow normalisation, which a table makes free.
 */
#include "image/resize.h"

#include "core/mem.h"
#include "image/lookup_table.h"

static const char *const resize_modes[] = {"bilinear", "pad", NULL};

static const co_key resize_keys[] = {
    {"size", CO_KEY_INTS, offsetof(co_resize, size), NULL, 1, 1 << 14, NULL,
     "height and width, or one number for both"},
    {"mode", CO_KEY_CHOICE, offsetof(co_resize, mode), "bilinear", 0, 0, resize_modes,
     "interpolate, or put zeros around"},
    CO_KEYS_END,
};

co_status co_resize_read(co_resize *out, const co_value *value, co_config *config)
{
    co_value *size = (co_value *)value, map = {.kind = CO_VALUE_MAP, .n = 1, .item = &size};
    const char *key = "size";

    *out = (co_resize){0};
    if (!value)
        return CO_OK;
    map.key = &key;
    map.source = value->source;
    map.line = value->line;
    map.column = value->column;
    CO_TRY(co_keys_read(out, resize_keys, value->kind == CO_VALUE_MAP ? value : &map, "resize",
                        co_config_arena(config)));
    if (out->size.n != 1 && out->size.n != 2)
        return co_value_fail(value, "resize: expected a size or [height, width]");
    return CO_OK;
}

/* Half-pixel centres of F.interpolate, in its precision. */
static void resize_make_taps(co_resize_tap *tap, int64_t to, int64_t from)
{
    const float scale = (float)from / (float)to;

    for (int64_t i = 0; i < to; i++) {
        float at = scale * ((float)i + 0.5f) - 0.5f;

        if (at < 0)
            at = 0;
        tap[i].low = (uint32_t)at;
        if (tap[i].low > (uint32_t)from - 1)
            tap[i].low = (uint32_t)from - 1;
        tap[i].high = tap[i].low + (tap[i].low + 1 < (uint32_t)from);
        tap[i].weight = at - (float)tap[i].low;
    }
}

co_status co_resize_setup(co_resize *resize, const co_shape *from)
{
    int64_t height = from->dim[1], width = from->dim[2];

    resize->from = resize->to = *from;
    if (resize->size.n == 0)
        return CO_OK;
    resize->to.dim[1] = resize->size.v[0];
    resize->to.dim[2] = resize->size.v[resize->size.n - 1];
    if (resize->mode == CO_RESIZE_PAD) {
        if (resize->to.dim[1] >= height && resize->to.dim[2] >= width)
            return CO_OK;
        return co_fail(CO_E_USAGE,
                       "resize: cannot pad %lldx%lld images to %lldx%lld; use mode: bilinear",
                       (long long)height, (long long)width, (long long)resize->to.dim[1],
                       (long long)resize->to.dim[2]);
    }
    resize->row = co_calloc((size_t)resize->to.dim[1], sizeof(*resize->row));
    resize->column = co_calloc((size_t)resize->to.dim[2], sizeof(*resize->column));
    if (!resize->row || !resize->column)
        return CO_E_NOMEM;
    resize_make_taps(resize->row, resize->to.dim[1], height);
    resize_make_taps(resize->column, resize->to.dim[2], width);
    return CO_OK;
}

void co_resize_close(co_resize *resize)
{
    co_free(resize->row);
    co_free(resize->column);
    resize->row = resize->column = NULL;
}

static void resize_interpolate(float *out, const co_resize *resize, const uint8_t *in,
                               const float *table)
{
    const int64_t height = resize->to.dim[1], width = resize->to.dim[2];

    for (int64_t y = 0; y < height; y++) {
        const co_resize_tap row = resize->row[y];
        const uint8_t *low = in + row.low * (size_t)resize->from.dim[2];
        const uint8_t *high = in + row.high * (size_t)resize->from.dim[2];

        for (int64_t x = 0; x < width; x++) {
            const co_resize_tap col = resize->column[x];
            const float right = col.weight, left = 1 - right;
            const float above = left * table[low[col.low]] + right * table[low[col.high]];
            const float below = left * table[high[col.low]] + right * table[high[col.high]];

            *out++ = (1 - row.weight) * above + row.weight * below;
        }
    }
}

static void resize_pad(float *out, const co_resize *resize, const uint8_t *in, const float *table)
{
    const int64_t height = resize->to.dim[1], width = resize->to.dim[2];
    const int64_t top = (height - resize->from.dim[1]) / 2;
    const int64_t left = (width - resize->from.dim[2]) / 2;

    for (int64_t i = 0; i < height * width; i++)
        out[i] = table[0];
    for (int64_t y = 0; y < resize->from.dim[1]; y++)
        for (int64_t x = 0; x < resize->from.dim[2]; x++)
            out[(top + y) * width + left + x] = table[*in++];
}

void co_resize_apply(float *out, const co_resize *resize, const uint8_t *in,
                     const co_lookup_table *table)
{
    const size_t from = (size_t)(resize->from.dim[1] * resize->from.dim[2]);
    const size_t to = (size_t)(resize->to.dim[1] * resize->to.dim[2]);

    for (int64_t c = 0; c < resize->from.dim[0]; c++, in += from, out += to, table++) {
        if (resize->size.n == 0)
            co_lookup(out, in, from, table);
        else if (resize->mode == CO_RESIZE_PAD)
            resize_pad(out, resize, in, table->value);
        else
            resize_interpolate(out, resize, in, table->value);
    }
}
