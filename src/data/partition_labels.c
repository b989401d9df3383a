/*
 * partition_labels.c - each rank owns some labels: the most extreme non-IID data.
 *
 * The samples of a label that several ranks own are dealt to them round-robin.
 */
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "data/data.h"
#include "data/partition.h"

typedef struct partition_labels {
    const co_value *labels;
} partition_labels;

static const co_key partition_labels_keys[] = {
    {"labels", CO_KEY_VALUE, offsetof(partition_labels, labels), NULL, 0, 0,
     CO_KEY_TAKES("a list of labels for each rank"),
     "labels of each rank, such as [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]; [] for none"},
    CO_KEYS_END,
};

/* Who owns which label. */
typedef struct labels_owners {
    size_t ranks, classes;
    uint8_t *owns;  /* owned: (classes, ranks) */
    uint32_t *turn; /* owned: (classes) rank that got the last sample of a label */
} labels_owners;

static co_status labels_read_one(size_t *out, const co_value *value, size_t classes)
{
    const char *text = value->kind == CO_VALUE_SCALAR ? value->text : "";
    const size_t n = strlen(text);

    if (n == 0 || n > 9 || value->quoted || strspn(text, "0123456789") != n)
        return co_value_fail(value, "partition labels: expected a list of labels for each rank, "
                                    "such as [[0, 1], [2, 3]]");
    *out = (size_t)strtoul(text, NULL, 10);
    if (*out >= classes)
        return co_value_fail(value,
                             "partition labels: there is no label %zu; the data set's are 0 to %zu",
                             *out, classes - 1);
    return CO_OK;
}

/* One rank's list; a single label needs no brackets. */
static co_status labels_read_rank(labels_owners *o, const co_value *value, size_t rank)
{
    const bool list = value->kind == CO_VALUE_LIST;

    for (size_t i = 0; i < (list ? value->n : 1); i++) {
        const co_value *item = list ? value->item[i] : value;
        size_t label = 0;

        CO_TRY(labels_read_one(&label, item, o->classes));
        if (o->owns[label * o->ranks + rank])
            return co_value_fail(item, "partition labels: rank %zu has label %zu twice", rank,
                                 label);
        o->owns[label * o->ranks + rank] = 1;
    }
    return CO_OK;
}

static co_status labels_open(labels_owners *o, const co_value *lists,
                             const co_sampler_options *options)
{
    size_t table;

    o->ranks = (size_t)options->ranks;
    o->classes = (size_t)co_dataset_classes(options->dataset);
    if (co_mul_size(&table, o->classes, o->ranks) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    o->owns = co_calloc(table, sizeof(*o->owns));
    o->turn = co_calloc(o->classes, sizeof(*o->turn));
    if (!o->owns || !o->turn)
        return CO_E_NOMEM;
    for (size_t c = 0; c < o->classes; c++)
        o->turn[c] = (uint32_t)o->ranks - 1;
    for (size_t r = 0; r < o->ranks; r++)
        CO_TRY(labels_read_rank(o, lists->item[r], r));
    return CO_OK;
}

/* The next owner of a label, round-robin. */
static co_status labels_take(uint32_t *out, labels_owners *o, size_t label)
{
    for (size_t k = 1; k <= o->ranks; k++) {
        const size_t rank = (o->turn[label] + k) % o->ranks;

        if (o->owns[label * o->ranks + rank]) {
            *out = o->turn[label] = (uint32_t)rank;
            return CO_OK;
        }
    }
    return co_fail(CO_E_USAGE,
                   "partition labels: the data set has samples of label %zu, which no rank owns; "
                   "put it into a rank's list",
                   label);
}

static co_status partition_labels_check(const void *state, int ranks)
{
    const co_value *lists = ((const partition_labels *)state)->labels;

    if (!lists || lists->kind != CO_VALUE_LIST)
        return co_value_fail(lists, "partition labels: expected a list of labels for each rank, "
                                    "such as [[0, 1], [2, 3]]");
    if (lists->n != (size_t)ranks)
        return co_value_fail(lists,
                             "partition labels: labels for %zu rank%s, but there are %d; give one "
                             "list per rank",
                             lists->n, co_plural(lists->n), ranks);
    return CO_OK;
}

static co_status partition_labels_cut(co_parts *out, const void *state,
                                      const co_sampler_options *options)
{
    const partition_labels *self = state;
    labels_owners o = {.owns = NULL};
    uint32_t *owner;
    co_status st;

    CO_TRY(co_partition_needs_labels("labels", options));
    owner = co_calloc(options->count, sizeof(*owner));
    st = owner ? labels_open(&o, self->labels, options) : CO_E_NOMEM;
    for (uint64_t i = 0; i < options->count && st == CO_OK; i++) {
        int32_t label;

        st = co_dataset_take_label(&label, options->dataset, i);
        if (st == CO_OK)
            st = labels_take(&owner[i], &o, (size_t)label);
    }
    if (st == CO_OK)
        co_parts_group(out, owner, options);
    co_free(o.turn);
    co_free(o.owns);
    co_free(owner);
    return st;
}

const co_partition_ops co_partition_labels = {
    .name = "labels",
    .summary = "each rank owns some labels; a label of several ranks goes to them in turn",
    .keys = partition_labels_keys,
    .self_size = sizeof(partition_labels),
    .check = partition_labels_check,
    .cut = partition_labels_cut,
    .any_ranks = true,
};
