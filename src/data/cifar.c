/*
 * cifar.c - open a CIFAR file of the binary or the Python version, plain or gzip. Untrusted input.
 *
 * Checks that the file is a whole number of records or a pickle of them, and every label. Which
 * files make a split is up to cifar_format.c.
 */
#include "data/cifar.h"

#include "core/mem.h"

const co_cifar_layout co_cifar10_layout = {
    .dataset = "cifar10",
    .labels = 1,
    .kind = {"label"},
    .classes = {10},
    .names = {"batches.meta.txt"},
    .files = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
               "data_batch_5.bin"},
              {"test_batch.bin"}},
    .folder = "cifar-10-batches-bin",
    .archive = "cifar-10-binary.tar.gz",
    .python = {.files = {{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                          "data_batch_5"},
                         {"test_batch"}},
               .folder = "cifar-10-batches-py",
               .archive = "cifar-10-python.tar.gz",
               .meta = "batches.meta",
               .labels = {"labels"},
               .names = {"label_names"}},
};

const co_cifar_layout co_cifar100_layout = {
    .dataset = "cifar100",
    .labels = 2,
    .kind = {"coarse label", "fine label"},
    .classes = {20, 100},
    .names = {"coarse_label_names.txt", "fine_label_names.txt"},
    .files = {{"train.bin"}, {"test.bin"}},
    .folder = "cifar-100-binary",
    .archive = "cifar-100-binary.tar.gz",
    .python = {.files = {{"train"}, {"test"}},
               .folder = "cifar-100-python",
               .archive = "cifar-100-python.tar.gz",
               .meta = "meta",
               .labels = {"coarse_labels", "fine_labels"},
               .names = {"coarse_label_names", "fine_label_names"}},
};

static co_status cifar_check_labels(const co_cifar *cifar, const co_cifar_layout *layout,
                                    const char *name)
{
    for (size_t i = 0; i < cifar->count; i++)
        for (size_t k = 0; k < layout->labels; k++) {
            const uint8_t label = cifar->label[i * cifar->label_step + k];

            if (label >= layout->classes[k])
                return co_fail(CO_E_DATA,
                               "%s: record %zu has %s %u, %s has 0 to %d; is it a file of %s, "
                               "undamaged?",
                               name, i, layout->kind[k], label, layout->dataset,
                               layout->classes[k] - 1, layout->archive);
        }
    return CO_OK;
}

static co_status cifar_take_records(co_cifar *cifar, const co_cifar_layout *layout,
                                    const char *name)
{
    const size_t record = layout->labels + CO_CIFAR_IMAGE;

    if (cifar->file.size % record != 0)
        return co_fail(CO_E_DATA,
                       "%s: %zu bytes are no whole number of %s's records of %zu bytes: cut short, "
                       "or no file of %s; fetch it again",
                       name, cifar->file.size, layout->dataset, record, layout->archive);
    cifar->count = cifar->file.size / record;
    cifar->label = cifar->file.data;
    cifar->image = cifar->file.data + layout->labels;
    cifar->label_step = cifar->image_step = record;
    return CO_OK;
}

static co_status cifar_take(co_cifar *cifar, co_status st, const co_cifar_layout *layout,
                            const char *name)
{
    if (st == CO_OK && co_cifar_is_pickle(cifar->file.data, cifar->file.size))
        st = co_cifar_take_pickle(cifar, layout, name);
    else if (st == CO_OK)
        st = cifar_take_records(cifar, layout, name);
    if (st == CO_OK)
        st = cifar_check_labels(cifar, layout, name);
    if (st != CO_OK)
        co_cifar_close(cifar);
    return st;
}

co_status co_cifar_open(co_cifar *out, const char *path, const co_cifar_layout *layout)
{
    co_status st;

    *out = (co_cifar){.count = 0};
    st = co_file_open(&out->file, path, "a file of CIFAR");
    return cifar_take(out, st, layout, path);
}

co_status co_cifar_parse(co_cifar *out, const uint8_t *bytes, size_t size,
                         const co_cifar_layout *layout, const char *name)
{
    co_status st;

    *out = (co_cifar){.count = 0};
    st = co_file_borrow(&out->file, bytes, size, name);
    return cifar_take(out, st, layout, name);
}

void co_cifar_close(co_cifar *cifar)
{
    co_file_close(&cifar->file);
    co_free(cifar->labels);
    co_free(cifar->transposed);
    *cifar = (co_cifar){0};
}
