/*
 * mock_optim.c - optimizers of the mock device: a worker runs the host's update with copied
 * arguments, unless the step turns out to be skipped.
 */
#include <cohort/ext/optim.h>

#include "device/mock_vector.h"

#define MOCK_STATES (MOCK_CALL_POINTERS - 3)

static void run_update(const mock_call *c)
{
    float *state[MOCK_STATES];
    const co_update update = {.param = c->p[0],
                              .grad = c->p[1],
                              .values = c->p[2],
                              .state = state,
                              .n = c->n,
                              .decay = c->a,
                              .kind = c->kind,
                              .missed = c->missed};

    for (int i = 0; i < MOCK_STATES; i++)
        state[i] = c->p[3 + i];
    if (!update.values->found_inf)
        c->optimizer->update(c->self, &update);
}

static void mock_update(const co_optimizer_ops *ops, const void *self, const co_update *u)
{
    const int n = ops->states ? ops->states(self) : 0;
    mock_call call = {.run = run_update,
                      .p = {u->param, (void *)u->grad, (void *)u->values},
                      .n = u->n,
                      .a = u->decay,
                      .kind = u->kind,
                      .missed = u->missed,
                      .optimizer = ops,
                      .self = self};

    for (int i = 0; i < n; i++)
        call.p[3 + i] = u->state[i];
    mock_call_on(u->queue, &call);
}

/* All but adadelta, so that one is missing. */
const co_device_optimizer mock_optimizers[] = {
    {"sgd", mock_update},  {"adam", mock_update}, {"adamw", mock_update},
    {"lars", mock_update}, {"lamb", mock_update}, {NULL, NULL},
};
