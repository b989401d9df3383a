/* bench_data.c - `cohort bench data`: times the loader without a network. */
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/clock.h"
#include "core/open.h"
#include "core/sort.h"
#include "data/data.h"

#define BENCH_DATA_MAX_ROUNDS 100
#define BENCH_DATA_SAMPLES    20000 /* per round, unless an epoch has fewer */

typedef struct bench_data_options {
    cli_list set, plugins;
    int64_t threads, batch, rounds, samples;
    bool test;
} bench_data_options;

static const bench_data_options bench_data_defaults = {.threads = 1, .batch = 128, .rounds = 5};

static const cli_argument bench_data_arguments[] = {
    {"CONFIG|DATA", false, "a config file, or its data value: 'fashion-mnist', '{name: ...}'"},
    {NULL, false, NULL},
};

static const cli_option bench_data_option_table[] = {
    {"threads", 't', CLI_COUNT, offsetof(bench_data_options, threads), "N", 0, 1024,
     "threads that read; 0: the one that takes the batches; default: 1"},
    {"batch", 0, CLI_COUNT, offsetof(bench_data_options, batch), "B", 1, 65536,
     "samples of a batch; default: 128"},
    {"rounds", 0, CLI_COUNT, offsetof(bench_data_options, rounds), "R", 1, BENCH_DATA_MAX_ROUNDS,
     "rounds, after one that does not count; default: 5"},
    {"samples", 0, CLI_COUNT, offsetof(bench_data_options, samples), "K", 1, 100000000,
     "samples of a round; default: an epoch, or 20000"},
    {"test", 0, CLI_FLAG, offsetof(bench_data_options, test), NULL, 0, 0,
     "the test split instead of the training split"},
    {"set", 's', CLI_LIST, offsetof(bench_data_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. data.path=DIR; repeatable"},
    CLI_PLUGIN_OPTION(bench_data_options),
    CLI_OPTIONS_END,
};

typedef struct bench_data {
    const bench_data_options *options;
    co_dataset *data;    /* owned */
    co_sampler *sampler; /* owned */
    co_loader *loader;   /* owned */
    uint64_t samples;    /* minimum per round */
    double rate[BENCH_DATA_MAX_ROUNDS], core_rate[BENCH_DATA_MAX_ROUNDS];
    uint64_t resident[BENCH_DATA_MAX_ROUNDS]; /* bytes at the end of each round */
} bench_data;

static double bench_data_cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Resident memory; 0 if the kernel does not report it. */
static uint64_t bench_data_resident(void)
{
    FILE *file = co_open_system("/proc/self/statm");
    unsigned long long pages = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%*s %llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static co_status bench_data_open(bench_data *b, const cli_data *source)
{
    const bench_data_options *o = b->options;
    co_sampler_options sampling = {.batch = (uint64_t)o->batch, .ranks = 1, .seed = 1234};
    co_loader_options loading = {.threads = (int)o->threads};

    CO_TRY(co_dataset_open_value(&b->data, source->value, source->config,
                                 o->test ? CO_SPLIT_TEST : CO_SPLIT_TRAIN));
    sampling.count = co_dataset_count(b->data);
    sampling.dataset = b->data;
    sampling.sequential = o->test;
    CO_TRY(co_sampler_create(&b->sampler, &sampling));
    b->samples = sampling.count < BENCH_DATA_SAMPLES ? sampling.count : BENCH_DATA_SAMPLES;
    if (o->samples)
        b->samples = (uint64_t)o->samples;
    loading.dataset = b->data;
    loading.sampler = b->sampler;
    return co_loader_create(&b->loader, &loading);
}

static void bench_data_close(bench_data *b)
{
    co_loader_destroy(b->loader);
    co_sampler_destroy(b->sampler);
    co_dataset_destroy(b->data);
}

static co_status bench_data_round(bench_data *b, int round)
{
    const double cpu = bench_data_cpu_seconds();
    const uint64_t start = co_clock_ns();
    uint64_t taken = 0;

    while (taken < b->samples) {
        co_batch batch;

        CO_TRY(co_loader_next(&batch, b->loader));
        taken += batch.count;
    }
    b->rate[round] = (double)taken / co_clock_seconds(start, co_clock_ns());
    b->core_rate[round] = (double)taken / (bench_data_cpu_seconds() - cpu);
    b->resident[round] = bench_data_resident();
    return CO_OK;
}

static double bench_data_median(double *v, int n)
{
    co_sort_doubles(v, (size_t)n);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void bench_data_print(bench_data *b)
{
    const int n = (int)b->options->rounds;
    const double median = bench_data_median(b->rate, n);
    const double core = bench_data_median(b->core_rate, n);
    uint64_t most = 0;
    char shape[64];

    for (int i = 0; i < n; i++)
        most = b->resident[i] > most ? b->resident[i] : most;
    printf("{\"bench\": \"data\", \"data\": \"%s\", \"shape\": \"%s\", \"samples\": %" PRIu64
           ", \"threads\": %" PRId64 ", \"rounds\": %d, \"samples_per_second\": %.9g, "
           "\"samples_per_second_min\": %.9g, \"samples_per_second_max\": %.9g, "
           "\"samples_per_core_second\": %.9g, \"resident_bytes_first\": %" PRIu64
           ", \"resident_bytes_last\": %" PRIu64 ", \"resident_bytes_max\": %" PRIu64 "}\n",
           co_dataset_name(b->data),
           co_shape_format(shape, sizeof(shape), co_dataset_shape(b->data)), b->samples,
           b->options->threads, n, median, b->rate[0], b->rate[n - 1], core, b->resident[0],
           b->resident[n - 1], most);
}

static co_status bench_data_all(bench_data *b, const cli_data *source)
{
    CO_TRY(bench_data_open(b, source));
    for (int round = -1; round < (int)b->options->rounds; round++)
        CO_TRY(bench_data_round(b, round < 0 ? 0 : round)); /* the warm-up round is overwritten */
    bench_data_print(b);
    return CO_OK;
}

static co_status bench_data_run(const void *options, int n, const char *const *argument)
{
    const bench_data_options *o = options;
    bench_data b = {.options = o};
    cli_data source;
    co_status st;

    (void)n;
    CO_TRY(cli_data_open(&source, argument[0], &o->set));
    st = bench_data_all(&b, &source);
    bench_data_close(&b);
    cli_data_close(&source);
    return st;
}

const co_command co_command_bench_data = {
    .name = "bench data",
    .summary = "time the reading of a data set, augmentation included",
    .about =
        "Takes batches from the loader as training does, without a network. Prints one JSON\n"
        "object on one line: samples_per_second as the median over the rounds, with minimum and\n"
        "maximum; samples_per_core_second, by the processor time that was used, which is what\n"
        "one core gives, whatever else the machine does; and the resident memory after the\n"
        "first and the last round, and the most of any.",
    .example = "  cohort bench data '{name: imagefolder, path: DIR, resize: 224}' --threads 2\n"
               "  cohort bench data configs/resnet50-imagenet.yaml --threads 8 --samples 100000",
    .arguments = bench_data_arguments,
    .options = bench_data_option_table,
    .options_size = sizeof(bench_data_options),
    .defaults = &bench_data_defaults,
    .run = bench_data_run,
};
