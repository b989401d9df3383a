/*
 * augment.c - a config's list of augmentations: checks their order, assigns their random streams,
 * and applies them.
 */
#include "image/augment.h"

#include <string.h>

#define AUGMENT_MAX 16 /* augmentations in a list */

static co_status augment_read_one(struct co_augment_one *one, const co_value *value,
                                  co_config *config)
{
    co_arena *arena = co_config_arena(config);
    const co_value *map;
    const void *chosen;

    CO_TRY(co_plugin_choose(&chosen, &map, &co_augment_plugins, value, NULL));
    one->ops = chosen;
    one->value = value;
    one->self = co_arena_alloc(arena, 1, one->ops->self_size);
    if (!one->self)
        return CO_E_NOMEM;
    return co_plugin_read(one->self, one->ops, &co_augment_plugins, NULL, 0, map, arena);
}

/* The stages of a sample, in this order. 0: box, 1: bytes, 2: floats. */
static int augment_stage(const struct co_augment_one *one)
{
    return one->ops->box ? 0 : one->ops->bytes ? 1 : 2;
}

static co_status augment_check_order(co_augment *augment)
{
    for (size_t i = 0; i < augment->n; i++) {
        const struct co_augment_one *one = &augment->one[i];
        const int stage = augment_stage(one);

        if (i && stage < augment_stage(one - 1))
            return co_value_fail(one->value, "augment: '%s' cannot come after '%s'; put it before",
                                 one->ops->name, one[-1].ops->name);
        if (i && stage == 0)
            return co_value_fail(one->value,
                                 "augment: '%s' chooses the part of the image that is "
                                 "taken, as '%s' does; keep one of them",
                                 one->ops->name, one[-1].ops->name);
        augment->n_box += stage == 0;
        augment->n_bytes += stage == 1;
    }
    return CO_OK;
}

co_status co_augment_read(co_augment *out, const co_value *value, co_config *config)
{
    const bool list = value && value->kind == CO_VALUE_LIST;

    *out = (co_augment){0};
    if (!value || value->kind == CO_VALUE_NULL)
        return CO_OK;
    out->n = list ? value->n : 1;
    if (out->n > AUGMENT_MAX)
        return co_value_fail(value, "augment: more than %d augmentations", AUGMENT_MAX);
    out->one = co_arena_alloc(co_config_arena(config), out->n, sizeof(*out->one));
    if (!out->one)
        return CO_E_NOMEM;
    for (size_t i = 0; i < out->n; i++)
        CO_TRY(augment_read_one(&out->one[i], list ? value->item[i] : value, config));
    return augment_check_order(out);
}

co_status co_augment_check(const co_augment *augment, const co_shape *shape)
{
    for (size_t i = 0; i < augment->n; i++) {
        const struct co_augment_one *one = &augment->one[i];

        if (one->ops->check)
            CO_TRY(co_value_place(one->ops->check(one->self, shape), one->value));
    }
    return CO_OK;
}

static uint32_t augment_stream(size_t i)
{
    return CO_RNG_AUGMENT | (uint32_t)i << 8;
}

static co_rng augment_rng(const co_augment_place *place, size_t i)
{
    return (co_rng){place->seed, augment_stream(i), place->epoch, (uint32_t)place->sample};
}

_Static_assert(AUGMENT_MAX <= CO_IMAGES_MAX_STEPS, "a device has room for all augmentations");

bool co_augment_describe(co_images_recipe *out, const char **name, const co_augment *augment)
{
    out->steps = (int32_t)augment->n;
    out->floats = (int32_t)(augment->n_box + augment->n_bytes);
    for (size_t i = 0; i < augment->n; i++) {
        const struct co_augment_one *one = &augment->one[i];

        *name = one->ops->name;
        if (!one->ops->describe)
            return false;
        one->ops->describe(one->self, &out->step[i]);
        out->step[i].stream = augment_stream(i);
    }
    return true;
}

void co_augment_box(const co_augment *augment, co_image_box *out, int64_t height, int64_t width,
                    const co_augment_place *place)
{
    const co_rng rng = augment_rng(place, 0);

    augment->one[0].ops->box(augment->one[0].self, out, height, width, &rng);
}

size_t co_augment_mirrors(bool *mirror, const co_augment *augment, const co_augment_place *place)
{
    size_t k = 0;

    *mirror = false;
    for (; k < augment->n_bytes; k++) {
        const struct co_augment_one *one = &augment->one[augment->n_box + k];
        const co_rng rng = augment_rng(place, augment->n_box + k);

        if (!one->ops->mirrors)
            break;
        *mirror ^= one->ops->mirrors(one->self, &rng);
    }
    return k;
}

const uint8_t *co_augment_bytes(const co_augment *augment, const uint8_t *in, uint8_t *block[2],
                                const co_shape *shape, const co_augment_place *place, size_t skip)
{
    const size_t end = augment->n_box + augment->n_bytes;

    for (size_t i = augment->n_box + skip; i < end; i++) {
        const struct co_augment_one *one = &augment->one[i];
        const co_rng rng = augment_rng(place, i);
        uint8_t *out = in == block[0] ? block[1] : block[0];

        if (one->ops->bytes(one->self, out, in, shape, &rng))
            in = out;
    }
    return in;
}

void co_augment_floats(const co_augment *augment, float *inout, const co_shape *shape,
                       const co_augment_place *place)
{
    for (size_t i = augment->n_box + augment->n_bytes; i < augment->n; i++) {
        const co_rng rng = augment_rng(place, i);

        augment->one[i].ops->floats(augment->one[i].self, inout, shape, &rng);
    }
}
