/* page_table.c - events as columns of numbers, and fewer rows of them. */
#include "report/page_table.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/mem.h"

void co_page_table_init(co_page_table *table, const char *const *name)
{
    *table = (co_page_table){.name = name};
    while (name[table->columns])
        table->columns++;
}

co_status co_page_table_add(co_page_table *table, const json_t *event)
{
    double *row;

    if (table->rows == table->room) {
        const size_t room = table->room ? 2 * table->room : 256;
        double *grown = co_realloc(table->value, room, table->columns * sizeof(*grown));

        if (!grown)
            return CO_E_NOMEM;
        table->value = grown;
        table->room = room;
    }
    row = table->value + table->rows++ * table->columns;
    for (size_t c = 0; c < table->columns; c++) {
        const json_t *value = json_object_get(event, table->name[c]);

        row[c] = json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    return CO_OK;
}

static void page_table_keep(co_page_table *table, size_t *kept, size_t row)
{
    memmove(table->value + *kept * table->columns, table->value + row * table->columns,
            table->columns * sizeof(*table->value));
    ++*kept;
}

void co_page_table_thin(co_page_table *table, size_t most, size_t by)
{
    const size_t spans = most / 2, all = table->rows;
    size_t kept = 0;

    if (all <= most)
        return;
    for (size_t s = 0; s < spans; s++) {
        const size_t begin = s * all / spans, end = (s + 1) * all / spans;
        size_t low = begin, high = begin;

        for (size_t i = begin; i < end; i++) {
            const double v = table->value[i * table->columns + by];

            if (isnan(v)) /* a loss that is none is worth seeing */
                high = i;
            else if (v < table->value[low * table->columns + by])
                low = i;
            else if (v > table->value[high * table->columns + by])
                high = i;
        }
        page_table_keep(table, &kept, low < high ? low : high);
        if (low != high)
            page_table_keep(table, &kept, low < high ? high : low);
    }
    table->rows = kept;
}

static json_t *page_table_column(const co_page_table *table, size_t c, bool *any)
{
    json_t *list = json_array();
    int bad = 0;

    *any = false;
    for (size_t i = 0; i < table->rows; i++) {
        const double v = table->value[i * table->columns + c];
        const bool whole = isfinite(v) && v == floor(v) && fabs(v) < 1e15;

        *any |= isfinite(v);
        bad |= json_array_append_new(list, whole         ? json_integer((json_int_t)v)
                                           : isfinite(v) ? json_real(v)
                                                         : json_null());
    }
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *co_page_table_json(const co_page_table *table)
{
    json_t *object = json_object();
    int bad = 0;

    for (size_t c = 0; c < table->columns && !bad; c++) {
        bool any;
        json_t *list = page_table_column(table, c, &any);

        if (any || c == 0)
            bad = json_object_set_new(object, table->name[c], list);
        else
            json_decref(list);
    }
    if (bad) {
        json_decref(object);
        return NULL;
    }
    return object;
}

void co_page_table_free(co_page_table *table)
{
    co_free(table->value);
    table->value = NULL;
}
