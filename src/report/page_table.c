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

/* Of the rows [begin, end), those in which column `by` is lowest and highest. */
static void page_table_keep_span(co_page_table *table, size_t *kept, size_t begin, size_t end,
                                 size_t by)
{
    size_t low = begin, high = begin;

    for (size_t i = begin; i < end; i++) {
        const double v = table->value[i * table->columns + by];

        if (!isnan(v) && !(v >= table->value[low * table->columns + by]))
            low = i;
        else if (isnan(v) || v > table->value[high * table->columns + by])
            high = i; /* a loss that is none is worth seeing */
    }
    page_table_keep(table, kept, low < high ? low : high);
    if (low != high)
        page_table_keep(table, kept, low < high ? high : low);
}

void co_page_table_thin(co_page_table *table, size_t most, size_t by)
{
    const size_t spans = most / 2, all = table->rows;
    size_t kept = 0;

    if (all <= most)
        return;
    for (size_t s = 0; s < spans; s++)
        page_table_keep_span(table, &kept, s * all / spans, (s + 1) * all / spans, by);
    table->rows = kept;
}

/* Which of so many spans, of equally many steps from `first` to `last`, a row is in. */
static size_t page_table_span(const double *row, double first, double last, size_t spans)
{
    const double at = (*row - first) / (last - first);

    return at > 0 && at < 1 ? (size_t)(at * (double)spans) : at >= 1 ? spans - 1 : 0;
}

void co_page_table_thin_even(co_page_table *table, size_t most, size_t by)
{
    const size_t spans = most / 2, all = table->rows, columns = table->columns;
    size_t kept = 0, begin = 0, span = 0;
    double first, last;

    if (all <= most)
        return;
    first = table->value[0];
    last = table->value[(all - 1) * columns];
    for (size_t i = 1; i <= all; i++) {
        const size_t at =
            i < all ? page_table_span(table->value + i * columns, first, last, spans) : spans;

        if (at == span)
            continue;
        page_table_keep_span(table, &kept, begin, i, by);
        begin = i;
        span = at;
    }
    table->rows = kept;
    co_page_table_thin(table, most, by); /* steps that do not ascend make more spans */
}

static json_t *page_table_column(const co_page_table *table, size_t first, size_t c, bool *any)
{
    json_t *list = json_array();
    int bad = 0;

    *any = false;
    for (size_t i = first; i < table->rows; i++) {
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

json_t *co_page_table_json(const co_page_table *table, size_t first)
{
    json_t *object = json_object();
    int bad = 0;

    for (size_t c = 0; c < table->columns && !bad; c++) {
        bool any;
        json_t *list = page_table_column(table, first, c, &any);

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

size_t co_page_table_count(const co_page_table *table, size_t column)
{
    size_t n = 0;

    for (size_t i = 0; i < table->rows && column < table->columns; i++)
        n += isfinite(table->value[i * table->columns + column]) != 0;
    return n;
}

size_t co_page_table_find(const co_page_table *table, const char *name)
{
    size_t c = 0;

    while (c < table->columns && strcmp(table->name[c], name) != 0)
        c++;
    return c;
}

void co_page_table_free(co_page_table *table)
{
    co_free(table->value);
    table->value = NULL;
}
