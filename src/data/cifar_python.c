/*
 * cifar_python.c - a file of CIFAR's Python version: a pickled dictionary of labels and pixels.
 *
 * Row-major pixels are used in place; labels become one byte each. Opcodes are pickle.c's.
 */
#include <string.h>

#include "core/mem.h"
#include "data/cifar.h"
#include "data/pickle.h"

bool co_cifar_is_pickle(const uint8_t *bytes, size_t size)
{
    return size > 0 && bytes[0] == 0x80; /* above any label, the first byte of a binary record */
}

/* Copy a column-major array to rows. */
static co_status python_transpose(co_cifar *cifar, const co_pickle_array *array)
{
    uint8_t *rows = co_calloc(array->rows, array->columns);

    if (!rows)
        return CO_E_NOMEM;
    for (uint64_t c = 0; c < array->columns; c++)
        for (uint64_t r = 0; r < array->rows; r++)
            rows[r * array->columns + c] = array->at[c * array->rows + r];
    cifar->transposed = rows;
    cifar->image = rows;
    return CO_OK;
}

static co_status python_take_images(co_cifar *cifar, const co_pickle *pickle, const char *name)
{
    const co_pickle_array *array = co_pickle_get_array(pickle, "data");

    if (!array)
        return co_fail(CO_E_DATA, "%s: its dictionary has no array 'data' of uint8; fetch it again",
                       name);
    if (array->columns != CO_CIFAR_IMAGE)
        return co_fail(CO_E_DATA, "%s: images of %llu bytes; those of CIFAR have %zu", name,
                       (unsigned long long)array->columns, CO_CIFAR_IMAGE);
    cifar->count = (size_t)array->rows;
    cifar->image = array->at;
    cifar->image_step = CO_CIFAR_IMAGE;
    return array->fortran ? python_transpose(cifar, array) : CO_OK;
}

static co_status python_take_labels(co_cifar *cifar, const co_pickle *pickle,
                                    const co_cifar_layout *layout, const char *name)
{
    const size_t step = layout->labels;
    uint8_t *labels = co_calloc(cifar->count, step);

    if (!labels)
        return CO_E_NOMEM;
    cifar->labels = labels;
    cifar->label = labels;
    cifar->label_step = step;
    for (size_t k = 0; k < step; k++) {
        const co_pickle_values *list = co_pickle_list(pickle, layout->python.labels[k]);

        if (!list || list->n != cifar->count)
            return co_fail(CO_E_DATA,
                           "%s: %zu images and %zu of '%s'; is it a file of %s's version for "
                           "Python?",
                           name, cifar->count, list ? list->n : 0, layout->python.labels[k],
                           layout->dataset);
        for (size_t i = 0; i < list->n; i++) {
            const co_pickle_value *label = &list->at[i];

            if (label->kind != CO_PICKLE_INT || label->number < 0 || label->number > UINT8_MAX)
                return co_fail(CO_E_DATA, "%s: '%s' of image %zu is no label", name,
                               layout->python.labels[k], i);
            labels[i * step + k] = (uint8_t)label->number;
        }
    }
    return CO_OK;
}

co_status co_cifar_take_pickle(co_cifar *cifar, const co_cifar_layout *layout, const char *name)
{
    co_pickle pickle;
    co_status st;

    CO_TRY(co_pickle_parse(&pickle, cifar->file.data, cifar->file.size, name));
    st = python_take_images(cifar, &pickle, name);
    if (st == CO_OK)
        st = python_take_labels(cifar, &pickle, layout, name);
    co_pickle_free(&pickle);
    return st;
}

/* One name per line. */
static co_status python_write_names(char **out, const co_pickle_values *list)
{
    size_t size = 1, used = 0;

    for (size_t i = 0; i < list->n; i++)
        size += list->at[i].n + 1;
    *out = co_calloc(size, 1);
    if (!*out)
        return CO_E_NOMEM;
    for (size_t i = 0; i < list->n; i++) {
        memcpy(*out + used, list->at[i].at, list->at[i].n);
        used += list->at[i].n;
        (*out)[used++] = '\n';
    }
    return CO_OK;
}

co_status co_cifar_python_names(char **out, const uint8_t *bytes, size_t size, const char *key,
                                size_t classes, const char *name)
{
    const co_pickle_values *list;
    bool names;
    co_pickle pickle;
    co_status st = CO_OK;

    *out = NULL;
    CO_TRY(co_pickle_parse(&pickle, bytes, size, name));
    list = co_pickle_list(&pickle, key);
    names = list && list->n == classes;
    for (size_t i = 0; names && i < classes; i++)
        names = list->at[i].kind == CO_PICKLE_STRING && list->at[i].n > 0 &&
                !memchr(list->at[i].at, '\0', list->at[i].n);
    if (names)
        st = python_write_names(out, list);
    co_pickle_free(&pickle);
    return st;
}
