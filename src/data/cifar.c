/*
 * cifar.c - read a CIFAR file, plain or gzip, whose bytes may be anything.
 *
 * Settles that it is whole records and that every label is one. Must not know which files make a
 * split: that is cifar_format.c's.
 */
#include "data/cifar.h"

const co_cifar_layout co_cifar10_layout = {
    .owner = "cifar10",
    .labels = 1,
    .kind = {"label"},
    .classes = {10},
    .names = {"batches.meta.txt"},
    .files = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
               "data_batch_5.bin"},
              {"test_batch.bin"}},
    .folder = "cifar-10-batches-bin",
    .archive = "cifar-10-binary.tar.gz",
    .pickled = {"cifar-10-batches-py", "data_batch_1"},
};

const co_cifar_layout co_cifar100_layout = {
    .owner = "cifar100",
    .labels = 2,
    .kind = {"coarse label", "fine label"},
    .classes = {20, 100},
    .names = {"coarse_label_names.txt", "fine_label_names.txt"},
    .files = {{"train.bin"}, {"test.bin"}},
    .folder = "cifar-100-binary",
    .archive = "cifar-100-binary.tar.gz",
    .pickled = {"cifar-100-python", "train"},
};

static co_status cifar_check_labels(const co_cifar *cifar, const co_cifar_layout *layout,
                                    const char *name)
{
    for (size_t i = 0; i < cifar->count; i++)
        for (size_t k = 0; k < layout->labels; k++) {
            const uint8_t label = cifar->file.data[i * cifar->record + k];

            if (label >= layout->classes[k])
                return co_fail(CO_E_DATA,
                               "%s: record %zu has %s %u, %s has 0 to %d; is it a file of %s, "
                               "undamaged?",
                               name, i, layout->kind[k], label, layout->owner,
                               layout->classes[k] - 1, layout->archive);
        }
    return CO_OK;
}

static co_status cifar_take(co_cifar *cifar, co_status st, const co_cifar_layout *layout,
                            const char *name)
{
    cifar->record = layout->labels + CO_CIFAR_IMAGE;
    cifar->count = cifar->file.size / cifar->record;
    if (st == CO_OK && cifar->file.size % cifar->record != 0)
        st =
            co_fail(CO_E_DATA,
                    "%s: %zu bytes are no whole number of %s's records of %zu bytes: cut short, or "
                    "no file of %s; fetch it again",
                    name, cifar->file.size, layout->owner, cifar->record, layout->archive);
    if (st == CO_OK)
        st = cifar_check_labels(cifar, layout, name);
    if (st != CO_OK)
        co_cifar_close(cifar);
    return st;
}

co_status co_cifar_open(co_cifar *out, const char *path, const co_cifar_layout *layout)
{
    co_status st = co_file_open(&out->file, path, "a file of CIFAR's binary version");

    return cifar_take(out, st, layout, path);
}

co_status co_cifar_parse(co_cifar *out, const uint8_t *bytes, size_t size,
                         const co_cifar_layout *layout, const char *name)
{
    co_status st = co_file_borrow(&out->file, bytes, size, name);

    return cifar_take(out, st, layout, name);
}

void co_cifar_close(co_cifar *cifar)
{
    co_file_close(&cifar->file);
    *cifar = (co_cifar){0};
}
