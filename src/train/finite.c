/* finite.c - looks for numbers of the data that are not finite. */
#include "train/finite.h"

#include <math.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define FINITE_NAME  1024
#define FINITE_SHARE 4 /* part of the time that ranks wait for each other */

/* Whether the network has this input, and its values are floats. */
static bool finite_reads(const co_finite *finite, const co_field *field)
{
    return field->dtype == CO_F32 && co_graph_find_input(finite->graph, field->name) >= 0;
}

co_status co_finite_open(co_finite *out, const co_dataset *dataset, const co_graph *graph)
{
    const co_field *field = co_dataset_fields(dataset);
    size_t most = 0;

    *out = (co_finite){.dataset = dataset, .graph = graph};
    if (co_dataset_has_images(dataset))
        return CO_OK;
    for (int k = 0; k < CO_MAX_FIELDS && field[k].name; k++) {
        const size_t n = (size_t)co_shape_count(&field[k].shape);

        most = finite_reads(out, &field[k]) && n > most ? n : most;
    }
    if (most > 0)
        out->value = co_calloc(most, sizeof(*out->value));
    return most == 0 || out->value ? CO_OK : CO_E_NOMEM;
}

void co_finite_close(co_finite *finite)
{
    co_free(finite->value);
    finite->value = NULL;
}

static co_status finite_check_field(const co_finite *finite, int k, uint64_t sample,
                                    const co_augment_place *place, const char *so)
{
    const co_field *field = &co_dataset_fields(finite->dataset)[k];
    const size_t n = (size_t)co_shape_count(&field->shape);
    char name[FINITE_NAME];

    if (place)
        CO_TRY(co_dataset_draw_field(finite->dataset, finite->value, k, place));
    else
        CO_TRY(co_dataset_read_field(finite->dataset, finite->value, k, sample));
    for (size_t i = 0; i < n; i++) {
        if (isfinite(finite->value[i]))
            continue;
        co_dataset_sample_name(finite->dataset, name, sizeof(name), sample);
        return co_fail(CO_E_DATA,
                       "%s: value %zu of its field '%s' is %s, so %s; correct it, or leave the "
                       "sample out",
                       name, i, field->name, isnan(finite->value[i]) ? "nan" : "infinite", so);
    }
    return CO_OK;
}

co_status co_finite_check(const co_finite *finite, uint64_t sample, const co_augment_place *place,
                          const char *so)
{
    const co_field *field = co_dataset_fields(finite->dataset);

    for (int k = 0; finite->value && k < CO_MAX_FIELDS && field[k].name; k++)
        if (finite_reads(finite, &field[k]))
            CO_TRY(finite_check_field(finite, k, sample, place, so));
    return CO_OK;
}

co_status co_finite_check_all(const co_finite *finite, const char *so, double seconds)
{
    const uint64_t n = finite->value ? co_dataset_count(finite->dataset) : 0;
    const uint64_t start = co_clock_ns();

    for (uint64_t i = 0; i < n && co_clock_seconds(start, co_clock_ns()) < seconds; i++)
        CO_TRY(co_finite_check(finite, i, NULL, so));
    return CO_OK;
}

co_status co_finite_explain(const co_result *tested, const co_dataset *test, const co_graph *graph,
                            const co_spec *spec)
{
    const char *so =
        isnan(tested->loss_sum) ? "the test loss is not a number" : "the test loss is infinite";
    co_finite finite;
    co_status st;

    if (isfinite(tested->loss_sum))
        return CO_OK;
    CO_TRY(co_finite_open(&finite, test, graph));
    st = co_finite_check_all(&finite, so, co_finite_seconds(spec));
    co_finite_close(&finite);
    if (st == CO_OK)
        co_log(CO_LOG_WARN, "%s: what the network gives for some test samples overflows", so);
    return st;
}

double co_finite_seconds(const co_spec *spec)
{
    return (double)spec->timeout_s / FINITE_SHARE;
}
