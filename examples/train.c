/*
 * train.c - data-parallel training in a plain loop: train [RANKS] [EPOCHS] [DATA].
 * The same program joins the world when mpiexec starts it.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cohort.h>

typedef struct options {
    int ranks, epochs;
    const char *data;
} options;

/* What every rank runs. A failure ends the program, so nothing is freed on that way out. */
static co_status rank_main(co_comm *world, void *arg)
{
    const options *o = arg;
    co_dataset *data;
    co_sampler *sampler;
    co_loader *loader;
    co_model *model;
    co_distributed *optimizer;

    CO_TRY(co_dataset_open(&data, o->data, CO_SPLIT_TRAIN));
    CO_TRY(co_sampler_create(&sampler, &(co_sampler_options){.count = co_dataset_count(data),
                                                             .batch = 128,
                                                             .ranks = co_comm_size(world),
                                                             .seed = 1234}));
    CO_TRY(co_loader_create(&loader, &(co_loader_options){.dataset = data,
                                                          .sampler = sampler,
                                                          .rank = co_comm_rank(world),
                                                          .threads = 1}));
    CO_TRY(co_model_create(&model, &(co_model_options){.model = "mnist-net",
                                                       .sample = *co_dataset_shape(data),
                                                       .classes = co_dataset_classes(data),
                                                       .seed = 1234}));
    CO_TRY(co_model_broadcast(model, world, 0));
    CO_TRY(co_distributed_create(
        &optimizer,
        &(co_distributed_options){
            .model = model, .comm = world, .optimizer = "{name: sgd, lr: 0.05, momentum: 0.5}"}));
    for (int epoch = 0; epoch < o->epochs; epoch++) {
        double loss = 0, correct = 0, count = 0; /* of this rank's samples */

        for (uint64_t step = 0; step < co_sampler_steps(sampler); step++) {
            co_batch batch;
            co_result result;

            CO_TRY(co_loader_next(&batch, loader));
            CO_TRY(co_model_forward(&result, model, &batch));
            CO_TRY(co_distributed_backward(optimizer, &batch, false));
            CO_TRY(co_distributed_step(optimizer));
            loss += result.loss_sum;
            correct += (double)result.correct;
            count += (double)result.count;
        }
        printf("rank %d  epoch %d  loss %.3f  accuracy %.3f\n", co_comm_rank(world), epoch + 1,
               loss / count, correct / count);
    }
    CO_TRY(co_distributed_finish(optimizer));
    co_distributed_destroy(optimizer);
    co_model_destroy(model);
    co_loader_destroy(loader);
    co_sampler_destroy(sampler);
    co_dataset_destroy(data);
    return CO_OK;
}

int main(int argc, char **argv)
{
    options o = {.ranks = argc > 1 ? atoi(argv[1]) : 0,
                 .epochs = argc > 2 ? atoi(argv[2]) : 1,
                 .data = argc > 3 ? argv[3] : "fashion-mnist"};
    co_status st = co_launch(&(co_launch_options){.ranks = o.ranks, .bind = true}, rank_main, &o);

    if (st != CO_OK)
        fprintf(stderr, "train: %s\n", co_error_message());
    return co_exit_code(st);
}
