/*
 * data_shard.c - `cohort data shard`: writes a data set of images as shards.
 *
 * Options, progress and messages; shards.c writes the folder.
 */
#include <unistd.h>

#include "cli/shards.h"
#include "core/clock.h"
#include "core/plural.h"
#include "core/text.h"
#include "data/shard_index.h"
#include "telemetry/format.h"

#define DATA_SHARD_TICK_NS UINT64_C(200000000)

typedef struct data_shard_options {
    cli_list set, plugins;
    int64_t shards, resize, quality;
    bool quiet;
} data_shard_options;

static const data_shard_options data_shard_defaults = {.shards = 16, .quality = 90};

static const cli_argument data_shard_arguments[] = {
    {"SRC", false, "a config file, or its data value: 'cifar10', '{name: imagefolder, path: DIR}'"},
    {"DST", false, "the folder to write"},
    {NULL, false, NULL},
};

static const cli_option data_shard_option_table[] = {
    {"shards", 0, CLI_COUNT, offsetof(data_shard_options, shards), "N", 1, CO_SHARD_MAX_SHARDS,
     "files of each split, at most one for each sample; default: 16"},
    {"resize", 0, CLI_COUNT, offsetof(data_shard_options, resize), "SIDE", 1, 65500,
     "store images whose longer side is larger as JPEGs of that side"},
    {"quality", 0, CLI_COUNT, offsetof(data_shard_options, quality), "Q", 1, 100,
     "of those JPEGs; default: 90"},
    {"set", 's', CLI_LIST, offsetof(data_shard_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. data.path=DIR; repeatable"},
    {"quiet", 'q', CLI_FLAG, offsetof(data_shard_options, quiet), NULL, 0, 0,
     "no progress, no summary"},
    CLI_PLUGIN_OPTION(data_shard_options),
    CLI_OPTIONS_END,
};

typedef struct data_shard {
    const data_shard_options *options;
    const char *target;
    uint64_t done, total;
    uint64_t start_ns, shown_ns;
    co_child_guard guard;
    bool terminal;
} data_shard;

/* Ctrl-C leaves nothing. */
static co_status data_shard_tick(void *arg)
{
    data_shard *d = arg;
    const uint64_t now = co_clock_ns();
    const double seconds = co_clock_seconds(d->start_ns, now);
    char done[32], total[32];

    d->done++;
    CO_TRY(cli_check_signal(&d->guard));
    if (!d->terminal || now - d->shown_ns < DATA_SHARD_TICK_NS)
        return CO_OK;
    d->shown_ns = now;
    fprintf(stderr, "\r\033[K%s of %s (%.0f%%)  %.0f samples/s",
            co_format_count(done, sizeof(done), d->done),
            co_format_count(total, sizeof(total), d->total),
            100 * (double)d->done / (double)d->total, seconds > 0 ? (double)d->done / seconds : 0);
    return CO_OK;
}

static void data_shard_print(const data_shard *d, const cli_shards *shards)
{
    const double seconds = co_clock_seconds(d->start_ns, co_clock_ns());
    char count[32], before[32], after[32], time[32];

    if (d->options->quiet)
        return;
    printf("%s: %s sample%s, %s from %s, in %s\n", CO_SHOW(d->target),
           co_format_count(count, sizeof(count), d->done), co_plural(d->done),
           co_format_bytes(after, sizeof(after), shards->bytes_out),
           co_format_bytes(before, sizeof(before), shards->bytes_in),
           co_format_seconds(time, sizeof(time), seconds));
}

static co_status data_shard_all(data_shard *d, const cli_data *source)
{
    const data_shard_options *o = d->options;
    co_dataset *data[2] = {NULL};
    cli_shards shards = {.target = d->target,
                         .data = data,
                         .shards = (uint32_t)o->shards,
                         .options = {.resize = o->resize, .quality = o->quality},
                         .tick = data_shard_tick,
                         .arg = d};
    co_status st = CO_OK;

    for (int s = 0; s < 2 && st == CO_OK; s++) {
        st = co_dataset_open_value(&data[s], source->value, source->config, (co_split)s);
        d->total += st == CO_OK ? co_dataset_count(data[s]) : 0;
    }
    if (st == CO_OK)
        st = cli_shards_write(&shards);
    if (d->terminal)
        fputs("\r\033[K", stderr);
    if (st == CO_OK)
        data_shard_print(d, &shards);
    for (int s = 0; s < 2; s++)
        co_dataset_destroy(data[s]);
    return st;
}

static co_status data_shard_run(const void *options, int n, const char *const *argument)
{
    data_shard d = {.options = options, .target = argument[1], .start_ns = co_clock_ns()};
    cli_data source;
    co_status st;

    (void)n;
    d.terminal = !d.options->quiet && isatty(STDERR_FILENO);
    CO_TRY(cli_shards_check(d.target));
    CO_TRY(cli_data_open(&source, argument[0], &d.options->set));
    co_child_guard_enter(&d.guard);
    st = data_shard_all(&d, &source);
    co_child_guard_leave(&d.guard);
    cli_data_close(&source);
    return st;
}

const co_command co_command_data_shard = {
    .name = "data shard",
    .summary = "write images as tar files with an index: `data: {name: tar, path: DST}`",
    .about =
        "Makes DST/train and DST/val with as many tar files each, in WebDataset's convention\n"
        "(NUMBER.jpg or .png, NUMBER.cls), and an index with place, label and checksum of every\n"
        "sample. Image files are stored as they are, unless --resize says otherwise; pixels, as "
        "of\n"
        "cifar10, become PNG files. The order is that of SRC, so that training on the shards "
        "gives\n"
        "the bits of training on SRC. DST appears when it is complete, and must not be there.",
    .example =
        "  cohort data shard '{name: imagefolder, path: imagenet}' imagenet-shards --shards 128\n"
        "  cohort data shard cifar10 cifar10-shards",
    .arguments = data_shard_arguments,
    .options = data_shard_option_table,
    .options_size = sizeof(data_shard_options),
    .defaults = &data_shard_defaults,
    .run = data_shard_run,
};
