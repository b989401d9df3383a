/*
 * versions.c RUN_DIR - passes every struct that is passed with its size, and checks that nothing is
 * written after returned ones. check_versions.sh compiles it with today's, older and newer headers;
 * with -DADDED it also sets the members that only the newer ones have, which must be refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cohort/launch.h>
#include <cohort/train.h>

#define DATA "{name: synthetic, shape: [1, 4, 4], classes: 3, samples: 32}"

static void expect(int right, const char *what)
{
    if (right)
        return;
    printf("FAILED: %s: %s\n", what, co_error_message());
    exit(1);
}

/* A struct with a guard after it. */
#define GUARDED(type)                                                                              \
    struct {                                                                                       \
        type is;                                                                                   \
        unsigned char guard[64];                                                                   \
    }
#define GUARD(at) memset(&(at), 0x5a, sizeof(at))

static void expect_guard(const unsigned char *guard, const char *what)
{
    for (int i = 0; i < 64; i++)
        expect(guard[i] == 0x5a, what);
}

#ifdef ADDED
#define ADD(options)  ((options).added = 1)
#define RETURNED(out) expect((out).added == 0, "added to what is returned")
/* The call is refused for the type, and succeeds when the member is 0 again. */
#define TRY(type, given, call)                                                                     \
    do {                                                                                           \
        ADD(given);                                                                                \
        expect((call) == CO_E_UNSUPPORTED && strstr(co_error_message(), type ": byte "), #call);   \
        (given).added = 0;                                                                         \
        expect((call) == CO_OK, #call);                                                            \
    } while (0)
#else
#define RETURNED(out)          ((void)(out))
#define TRY(type, given, call) expect((call) == CO_OK, #call)
#endif

static co_status rank_main(co_comm *world, void *arg)
{
    *(int *)arg = co_comm_size(world);
    return CO_OK;
}

static void use_launch(void)
{
    co_launch_options options = {.ranks = 2, .threads = true};
    int size = 0;

    TRY("co_launch_options", options, co_launch(&options, rank_main, &size));
    printf("%d ranks\n", size);
}

/* A loop of the program's own, one step of it. */
static void use_loop(void)
{
    co_sampler_options sampling = {.count = 32, .batch = 8, .ranks = 1, .seed = 1};
    co_loader_options loading = {.threads = 1};
    co_model_options network = {
        .model = "{name: mlp, hidden: [5]}", .sample = {3, {1, 4, 4}}, .classes = 3};
    co_distributed_options how = {.optimizer = "{name: sgd, lr: 0.1}"};
    co_distributed *distributed;
    GUARDED(co_batch) batch;
    co_sampler *sampler;
    co_dataset *data;
    co_loader *loader;
    co_result result;
    co_model *model;
    co_comm *comm;

    expect(co_comm_create_self(&comm) == CO_OK, "communicator");
    expect(co_dataset_open(&data, DATA, CO_SPLIT_TRAIN) == CO_OK, "data set");
    TRY("co_sampler_options", sampling, co_sampler_create(&sampler, &sampling));
    loading.dataset = data;
    loading.sampler = sampler;
    TRY("co_loader_options", loading, co_loader_create(&loader, &loading));
    TRY("co_model_options", network, co_model_create(&model, &network));
    how.model = model;
    how.comm = comm;
    TRY("co_distributed_options", how, co_distributed_create(&distributed, &how));
    GUARD(batch);
    expect(co_loader_next(&batch.is, loader) == CO_OK, "loader");
    expect_guard(batch.guard, "co_loader_next");
    RETURNED(batch.is);
    TRY("co_batch", batch.is, co_model_evaluate(&result, model, &batch.is));
    TRY("co_batch", batch.is, co_model_forward(&result, model, &batch.is));
    TRY("co_batch", batch.is, co_distributed_backward(distributed, &batch.is, false));
    expect(co_distributed_step(distributed) == CO_OK, "step");
    printf("loss %.6f of %d\n", result.loss_sum, (int)result.count);
    co_distributed_destroy(distributed);
    co_model_destroy(model);
    co_loader_destroy(loader);
    co_sampler_destroy(sampler);
    co_dataset_destroy(data);
    co_comm_destroy(comm);
}

static void use_runs(const char *run_dir)
{
    co_train_options options = {.config_text = "model: {name: mlp, hidden: [5]}\n"
                                               "data: " DATA "\n"
                                               "batch: 8\nepochs: 1\nmetrics: [f1_macro]\n",
                                .ranks = 1,
                                .run_dir = run_dir,
                                .quiet = true};
    GUARDED(co_train_summary) train;
    GUARDED(co_eval_summary) eval;
    GUARDED(co_bench_summary) bench;
    co_confusion confusion;
    char weights[1100];

    GUARD(train);
    TRY("co_train_options", options, co_train(&train.is, &options));
    expect_guard(train.guard, "co_train");
    RETURNED(train.is);
    printf("%d steps, %s\n", (int)train.is.steps, train.is.weights_sha256);
    snprintf(weights, sizeof(weights), "%s/final.safetensors", run_dir);
    GUARD(eval);
    TRY("co_train_options", options, co_evaluate(&eval.is, &options, weights));
    TRY("co_train_options", options, co_evaluate_classes(&eval.is, &confusion, &options, weights));
    expect_guard(eval.guard, "co_evaluate");
    RETURNED(eval.is);
    printf("loss %.6f, %d classes\n", eval.is.loss, (int)confusion.classes);
    co_confusion_free(&confusion);
    GUARD(bench);
    TRY("co_train_options", options, co_bench_train(&bench.is, &options, 1, 1, 1));
    expect_guard(bench.guard, "co_bench_train");
    RETURNED(bench.is);
    printf("%d rank timed\n", bench.is.ranks);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    use_launch();
    use_loop();
    use_runs(argv[1]);
    return 0;
}
