/*
 * arrays.c - training on a program's own arrays, and scores for new samples: arrays [RANKS]
 * A small network learns which points lie in a diamond; each rank draws points of its own.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cohort.h>

#define POINTS 32 /* of a rank in a step */

/* From -1.5 to 1.5. */
static float draw(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (float)(*state >> 8) * (3.0f / 16777216.0f) - 1.5f;
}

/* Inside a diamond, |x| + |y| < 1, or outside. */
static int32_t is_outside(const float point[2])
{
    const float x = point[0] < 0 ? -point[0] : point[0], y = point[1] < 0 ? -point[1] : point[1];

    return x + y > 1;
}

static co_status rank_main(co_comm *world, void *arg)
{
    const float asked[4][2] = {{0, 0}, {-0.3f, 0.3f}, {0.9f, 0.9f}, {0, -1.4f}};
    float point[POINTS][2], score[4][2];
    const int rank = co_comm_rank(world), size = co_comm_size(world);
    uint32_t state = 1 + (uint32_t)rank;
    int32_t label[POINTS];
    uint32_t sample[POINTS];
    co_distributed *optimizer;
    co_model *model;

    (void)arg;
    CO_TRY(co_model_create(&model, &(co_model_options){.model = "{name: mlp, hidden: [16]}",
                                                       .sample = {3, {1, 1, 2}},
                                                       .classes = 2,
                                                       .seed = 1234}));
    CO_TRY(co_distributed_create(
        &optimizer, &(co_distributed_options){
                        .model = model, .comm = world, .optimizer = "{name: adam, lr: 0.02}"}));
    for (uint64_t step = 0; step < 500; step++) {
        const co_batch batch = {.step = step,
                                .count = POINTS,
                                .local = POINTS,
                                .global = POINTS * (uint64_t)size,
                                .sample = sample,
                                .field = {{CO_FIELD_INPUT, CO_F32, {1, {2}}, point[0]},
                                          {CO_FIELD_LABEL, CO_I32, {0}, label}}};
        co_result result;

        for (int i = 0; i < POINTS; i++) {
            point[i][0] = draw(&state);
            point[i][1] = draw(&state);
            label[i] = is_outside(point[i]);
            sample[i] = (uint32_t)(rank * POINTS + i); /* a number of its own, for dropout */
        }
        CO_TRY(co_model_forward(&result, model, &batch));
        CO_TRY(co_distributed_backward(optimizer, &batch, false));
        CO_TRY(co_distributed_step(optimizer));
    }
    CO_TRY(co_distributed_finish(optimizer));
    CO_TRY(co_model_predict(score[0], model, asked[0], 4));
    for (int i = 0; rank == 0 && i < 4; i++)
        printf("(%4.1f, %4.1f) lies %s\n", asked[i][0], asked[i][1],
               score[i][1] > score[i][0] ? "outside" : "inside");
    co_distributed_destroy(optimizer);
    co_model_destroy(model);
    return CO_OK;
}

int main(int argc, char **argv)
{
    const int ranks = argc > 1 ? atoi(argv[1]) : co_launch_under_mpi() ? 0 : 2;
    co_status st = co_launch(&(co_launch_options){.ranks = ranks}, rank_main, NULL);

    if (st != CO_OK)
        fprintf(stderr, "arrays: %s\n", co_error_message());
    return co_exit_code(st);
}
