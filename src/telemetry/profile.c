/*
 * profile.c - rows of a profile compared with the roofline, and written as lines of JSON.
 */
#include "telemetry/profile.h"

#include <string.h>

#include "telemetry/profile_json.h"

double co_profile_reached(const char **bound, const co_profile *profile, const co_profile_row *row)
{
    const double least =
        co_roof_seconds(bound, &profile->roof, row->flops, row->bytes, (co_dtype)row->factors);

    return row->kind == CO_PROFILE_OTHER || row->seconds <= 0 ? 0 : least / row->seconds;
}

double co_profile_kernel_seconds(const co_profile *profile)
{
    double seconds = 0;

    for (size_t i = 0; i < profile->n_row; i++)
        if (profile->row[i].kind != CO_PROFILE_OTHER)
            seconds += profile->row[i].seconds;
    return seconds;
}

double co_profile_flops(const co_profile *profile)
{
    double flops = 0;

    for (size_t i = 0; i < profile->n_row; i++)
        flops += profile->row[i].flops;
    return flops;
}

double co_profile_step_reached(const co_profile *profile)
{
    double least = 0;

    for (size_t i = 0; i < profile->n_row; i++)
        least += co_profile_reached(NULL, profile, &profile->row[i]) * profile->row[i].seconds;
    return profile->step_seconds > 0 ? least / profile->step_seconds : 0;
}

static json_t *profile_shape(const co_shape *shape)
{
    json_t *list = json_array();

    for (int i = 0; i < shape->ndim; i++)
        (void)json_array_append_new(list, json_integer(shape->dim[i]));
    return list;
}

static int profile_put_kernel(json_t *object, const co_profile *profile, const co_profile_row *row)
{
    const double seconds = row->seconds > 0 ? row->seconds : 1e-12;
    const char *bound;
    const double reached = co_profile_reached(&bound, profile, row);

    return json_put_text(object, "backend", row->backend) |
           (row->kernel[0] ? json_put_text(object, "kernel", row->kernel) : 0) |
           json_object_set_new(object, "shape", profile_shape(&row->shape)) |
           json_put_real(object, "flops", row->flops) | json_put_real(object, "bytes", row->bytes) |
           json_put_real(object, "gflop_per_s", row->flops / seconds * 1e-9) |
           json_put_real(object, "gb_per_s", row->bytes / seconds * 1e-9) |
           json_put_real(object, "roof_share", reached) | json_put_text(object, "bound", bound);
}

json_t *co_profile_row_json(const co_profile *profile, const co_profile_row *row)
{
    static const char *const pass[] = {"forward", "backward", "none"};
    json_t *object = json_object();
    int bad = json_put_text(object, "name", row->name);

    if (row->kind != CO_PROFILE_OTHER)
        bad |= json_put_text(object, "op", row->op);
    bad |= json_put_text(object, "pass", pass[row->kind]) |
           json_put_count(object, "calls", row->calls) |
           json_put_real(object, "time_us", row->seconds * 1e6) |
           json_put_real(object, "time_us_min", row->min_seconds * 1e6);
    if (row->kind != CO_PROFILE_OTHER)
        bad |= profile_put_kernel(object, profile, row);
    if (!bad)
        return object;
    json_decref(object);
    return NULL;
}

json_t *co_profile_roof_json(const co_roof *roof)
{
    const struct {
        const char *name;
        double flops_per_second;
    } units[] = {{"tf32_gflop_per_s", roof->tf32_flops_per_second},
                 {"bf16_gflop_per_s", roof->bf16_flops_per_second},
                 {"f16_gflop_per_s", roof->f16_flops_per_second}};
    json_t *object = json_object(), *list = json_array();
    int bad = roof->threads ? json_put_count(object, "threads", (uint64_t)roof->threads)
                            : json_put_text(object, "gpu", roof->gpu);

    bad |= json_put_real(object, "gflop_per_s", roof->flops_per_second * 1e-9);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (units[i].flops_per_second > 0)
            bad |= json_put_real(object, units[i].name, units[i].flops_per_second * 1e-9);
    for (int i = 0; i < CO_ROOF_LEVELS && *roof->level[i].name; i++) {
        const co_roof_level *level = &roof->level[i];
        json_t *item = json_object();

        bad |= json_put_text(item, "level", level->name) |
               json_put_real(item, "gb_per_s", level->bytes_per_second * 1e-9);
        if (level->capacity < CO_ROOF_ALL)
            bad |= json_put_real(item, "bytes", level->capacity);
        bad |= json_array_append_new(list, item);
    }
    bad |= json_object_set_new(object, "memory", list);
    if (!bad)
        return object;
    json_decref(object);
    return NULL;
}

static co_status profile_line(FILE *out, json_t *object, const char *head)
{
    char *text = object ? json_dumps(object, JSON_STYLE) : NULL;
    bool bad = !text || fprintf(out, "{%s, %s\n", head, text + 1) < 0;

    free(text);
    json_decref(object);
    return bad ? co_fail(text ? CO_E_IO : CO_E_NOMEM, "cannot write the profile") : CO_OK;
}

co_status co_profile_print_lines(FILE *out, const co_profile *profile, const char *head)
{
    json_t *object;

    for (size_t i = 0; i < profile->n_row; i++)
        CO_TRY(profile_line(out, co_profile_row_json(profile, &profile->row[i]), head));
    object = json_object();
    if (json_put_real(object, "step_us", profile->step_seconds * 1e6) |
        json_put_real(object, "kernels_us", co_profile_kernel_seconds(profile) * 1e6) |
        json_put_real(object, "flops", co_profile_flops(profile)) |
        json_put_real(object, "roof_share", co_profile_step_reached(profile)) |
        json_object_set_new(object, "roof", co_profile_roof_json(&profile->roof))) {
        json_decref(object);
        object = NULL;
    }
    return profile_line(out, object, head);
}
