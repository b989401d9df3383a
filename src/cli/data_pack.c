/*
 * data_pack.c - `cohort data pack`: converts a data set of any format into one file, or into
 * shards.
 *
 * Options, progress and messages; pack_convert.c makes the records, pack_write.c the file.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/shards.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"
#include "data/shard_index.h"
#include "launch/child.h"
#include "telemetry/format.h"

#define DATA_PACK_TICK_NS UINT64_C(200000000)

typedef struct data_pack_options {
    cli_list set, plugins;
    int64_t resize, quality, decode, shards;
    const char *only;
    bool quiet;
} data_pack_options;

static const data_pack_options data_pack_defaults = {.quality = 90};

static const cli_argument data_pack_arguments[] = {
    {"SRC", false, "a config file, or its data value: 'cifar10', '{name: imagefolder, path: DIR}'"},
    {"DST", false, "the file to write, with --shards the folder"},
    {NULL, false, NULL},
};

static const cli_option data_pack_option_table[] = {
    {"resize", 0, CLI_COUNT, offsetof(data_pack_options, resize), "SIDE", 1, 65500,
     "store images whose longer side is larger as JPEGs of that side"},
    {"quality", 0, CLI_COUNT, offsetof(data_pack_options, quality), "Q", 1, 100,
     "of those JPEGs; default: 90"},
    {"decode", 0, CLI_COUNT, offsetof(data_pack_options, decode), "SIDE", 1, 16384,
     "store pixels: the shorter side becomes SIDE, the middle square is kept"},
    {"shards", 0, CLI_COUNT, offsetof(data_pack_options, shards), "N", 1, CO_SHARD_MAX_SHARDS,
     "write N files of each split with an index, at most one for each sample, not one of all"},
    {"only", 0, CLI_TEXT, offsetof(data_pack_options, only), "SPLIT", 0, 0,
     "train or test; default: both"},
    {"set", 's', CLI_LIST, offsetof(data_pack_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. data.path=DIR; repeatable"},
    {"quiet", 'q', CLI_FLAG, offsetof(data_pack_options, quiet), NULL, 0, 0,
     "no progress, no summary"},
    CLI_PLUGIN_OPTION(data_pack_options),
    CLI_OPTIONS_END,
};

typedef struct data_pack {
    const data_pack_options *options;
    const char *target;
    co_dataset *data[CO_PACK_SPLITS]; /* owned; NULL: split is left out */
    co_pack_writer *writer;           /* owned */
    uint64_t done, total, bytes_in;
    uint64_t start_ns, shown_ns;
    co_child_guard guard;
    bool terminal;
} data_pack;

static void data_pack_show(data_pack *p)
{
    const uint64_t now = co_clock_ns();
    const double seconds = co_clock_seconds(p->start_ns, now);
    const double rate = seconds > 0 ? (double)p->done / seconds : 0;
    char done[32], total[32], left[32];

    if (!p->terminal || now - p->shown_ns < DATA_PACK_TICK_NS)
        return;
    p->shown_ns = now;
    fprintf(
        stderr, "\r\033[K%s of %s (%.0f%%)  %.0f samples/s  %s left",
        co_format_count(done, sizeof(done), p->done),
        co_format_count(total, sizeof(total), p->total), 100 * (double)p->done / (double)p->total,
        rate,
        co_format_seconds(left, sizeof(left), rate > 0 ? (double)(p->total - p->done) / rate : 0));
}

/* Ctrl-C leaves no partial file. */
static co_status data_pack_tick(void *arg)
{
    data_pack *p = arg;

    p->done++;
    data_pack_show(p);
    return cli_check_signal(&p->guard);
}

static co_status data_pack_split(data_pack *p, co_pack_converter *converter, co_split split)
{
    for (uint64_t i = 0; i < co_dataset_count(p->data[split]); i++) {
        co_bytes record;
        int32_t label;

        CO_TRY(co_dataset_take_label(&label, p->data[split], i));
        CO_TRY(co_pack_convert(&record, converter, i));
        CO_TRY(co_pack_writer_add(p->writer, split, (uint32_t)label, &record));
        p->bytes_in += converter->read;
        CO_TRY(data_pack_tick(p));
    }
    return CO_OK;
}

static co_status data_pack_names(const char ***out, const co_dataset *data)
{
    const size_t classes = (size_t)co_dataset_classes(data);
    const char **names;

    *out = NULL;
    if (!co_dataset_class_name(data, 0))
        return CO_OK;
    names = co_calloc(classes, sizeof(*names));
    if (!names)
        return CO_E_NOMEM;
    for (size_t c = 0; c < classes; c++)
        names[c] = co_dataset_class_name(data, (int32_t)c);
    *out = names;
    return CO_OK;
}

static co_status data_pack_check_splits(const data_pack *p)
{
    const co_dataset *train = p->data[CO_SPLIT_TRAIN], *test = p->data[CO_SPLIT_TEST];
    const co_dataset_info *a, *b;

    if (!train || !test)
        return CO_OK;
    a = co_dataset_stored(train);
    b = co_dataset_stored(test);
    if (a->encoded == b->encoded && co_shape_equal(&a->shape, &b->shape) &&
        a->classes == b->classes)
        return CO_OK;
    return co_fail(CO_E_DATA,
                   "training and test samples differ in shape or classes; pack one with --only");
}

static co_status data_pack_open(data_pack *p, const cli_data *source)
{
    const char *only = p->options->only;

    if (only && strcmp(only, "train") != 0 && strcmp(only, "test") != 0)
        return co_fail(CO_E_USAGE, "--only takes train or test, not '%s'", only);
    if (!only || strcmp(only, "train") == 0)
        CO_TRY(co_dataset_open_value(&p->data[CO_SPLIT_TRAIN], source->value, source->config,
                                     CO_SPLIT_TRAIN));
    if (!only || strcmp(only, "test") == 0)
        CO_TRY(co_dataset_open_value(&p->data[CO_SPLIT_TEST], source->value, source->config,
                                     CO_SPLIT_TEST));
    for (size_t s = 0; s < CO_PACK_SPLITS; s++)
        p->total += p->data[s] ? co_dataset_count(p->data[s]) : 0;
    return data_pack_check_splits(p);
}

static co_status data_pack_open_writer(data_pack *p, const co_pack_head *head,
                                       const co_dataset *data)
{
    const char **names;
    co_status st;

    CO_TRY(data_pack_names(&names, data));
    st = co_pack_writer_open(&p->writer, p->target, head, names);
    co_free(names);
    return st;
}

static co_pack_options data_pack_conversion(const data_pack *p)
{
    return (co_pack_options){p->options->resize, p->options->quality, p->options->decode};
}

static co_status data_pack_write_splits(data_pack *p)
{
    const co_pack_options options = data_pack_conversion(p);
    co_status st = CO_OK;

    for (int s = 0; s < CO_PACK_SPLITS && st == CO_OK; s++) {
        co_pack_converter converter = {0};
        co_pack_head head;

        if (!p->data[s])
            continue;
        st = co_pack_converter_open(&converter, &head, p->data[s], &options);
        if (st == CO_OK && !p->writer)
            st = data_pack_open_writer(p, &head, p->data[s]);
        if (st == CO_OK)
            st = data_pack_split(p, &converter, (co_split)s);
        co_pack_converter_close(&converter);
    }
    return st;
}

static co_status data_pack_write_file(uint64_t *size, data_pack *p)
{
    co_pack_writer *writer;

    CO_TRY(data_pack_write_splits(p));
    writer = p->writer;
    p->writer = NULL;
    return co_pack_writer_commit(size, writer);
}

static co_status data_pack_write_shards(uint64_t *size, data_pack *p)
{
    cli_shards shards = {.target = p->target,
                         .data = p->data,
                         .shards = (uint32_t)p->options->shards,
                         .packed = true,
                         .options = data_pack_conversion(p),
                         .tick = data_pack_tick,
                         .arg = p};

    CO_TRY(cli_shards_write(&shards));
    p->bytes_in = shards.bytes_in;
    *size = shards.bytes_out;
    return CO_OK;
}

static void data_pack_print(const data_pack *p, uint64_t size)
{
    const double seconds = co_clock_seconds(p->start_ns, co_clock_ns());
    char count[32], before[32], after[32], time[32];

    if (p->options->quiet)
        return;
    printf("%s: %s sample%s, %s from %s, in %s\n", CO_SHOW(p->target),
           co_format_count(count, sizeof(count), p->done), co_plural(p->done),
           co_format_bytes(after, sizeof(after), size),
           co_format_bytes(before, sizeof(before), p->bytes_in),
           co_format_seconds(time, sizeof(time), seconds));
}

static co_status data_pack_all(data_pack *p, const cli_data *source)
{
    uint64_t size;
    co_status st = data_pack_open(p, source);

    if (st == CO_OK)
        st = p->options->shards ? data_pack_write_shards(&size, p) : data_pack_write_file(&size, p);
    if (p->terminal)
        fputs("\r\033[K", stderr);
    if (st == CO_OK)
        data_pack_print(p, size);
    co_pack_writer_discard(p->writer);
    for (size_t s = 0; s < CO_PACK_SPLITS; s++)
        co_dataset_destroy(p->data[s]);
    return st;
}

static co_status data_pack_check_target(const data_pack *p, const cli_data *source,
                                        const char *config)
{
    const co_value *path = co_value_get(source->value, "path");
    const char *inputs[] = {config, path && path->text ? path->text : config, NULL};

    if (p->options->shards)
        return cli_shards_check(p->target);
    return cli_check_output(p->target, CLI_PACK, inputs);
}

static co_status data_pack_run(const void *options, int n, const char *const *argument)
{
    data_pack p = {.options = options, .target = argument[1], .start_ns = co_clock_ns()};
    cli_data source;
    co_status st;

    (void)n;
    p.terminal = !p.options->quiet && isatty(STDERR_FILENO);
    CO_TRY(cli_data_open(&source, argument[0], &p.options->set));
    st = data_pack_check_target(&p, &source, argument[0]);
    if (st != CO_OK) {
        cli_data_close(&source);
        return st;
    }
    co_child_guard_enter(&p.guard);
    st = data_pack_all(&p, &source);
    co_child_guard_leave(&p.guard);
    cli_data_close(&source);
    return st;
}

const co_command co_command_data_pack = {
    .name = "data pack",
    .summary = "make a file or shards of data, read in place: `data: {name: pack, path: DST}`",
    .about =
        "Stores samples as they are, image files too, unless --resize or --decode says\n"
        "otherwise; both splits go into one file, with labels, names of classes and a checksum\n"
        "for each record. With --shards, DST is a folder: DST/train and DST/val have as many "
        "files\n"
        "each and an index, for a shared file system or a web server. Normalisation, resizing and\n"
        "augmentation stay in the config. What is written appears when it is complete; every "
        "sample\n"
        "that --resize or --decode touches is decoded, and a damaged one ends it.",
    .example =
        "  cohort data pack '{name: imagefolder, path: imagenet}' imagenet.pack --resize 500\n"
        "  cohort data pack '{name: imagefolder, path: small}' small.pack --decode 256\n"
        "  cohort data pack '{name: imagefolder, path: small}' small --decode 256 --shards 16\n"
        "  cohort data pack '{name: cifar10, path: cifar-10-batches-bin}' cifar10.pack",
    .arguments = data_pack_arguments,
    .options = data_pack_option_table,
    .options_size = sizeof(data_pack_options),
    .defaults = &data_pack_defaults,
    .run = data_pack_run,
};
