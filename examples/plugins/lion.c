/*
 * lion.c - an optimizer as a plugin: Lion (Chen et al., "Symbolic discovery of optimization
 * algorithms", arXiv:2302.06675). Each weight moves by the learning rate, whatever the size of its
 * gradient, in the direction of a moving average.
 *
 *   cc -shared -fPIC -O2 $(pkg-config --cflags cohort) lion.c -o lion.so
 *   cohort train CONFIG --plugin ./lion.so --set 'optimizer={name: lion, lr: 0.001}'
 */
#include <cohort/ext/optim.h>

typedef struct lion {
    double beta1, beta2;
} lion;

static const co_key lion_keys[] = {
    {"beta1", CO_KEY_REAL, offsetof(lion, beta1), "0.9", 0, 1, NULL,
     "how much of the average is in the direction of a step"},
    {"beta2", CO_KEY_REAL, offsetof(lion, beta2), "0.99", 0, 1, NULL,
     "how much of the average a step keeps"},
    CO_KEYS_END,
};

static const char *const lion_state_names[] = {"exp_avg", NULL};

static int lion_states(const void *self)
{
    (void)self;
    return 1;
}

static void lion_update(const void *self, const co_update *u)
{
    const lion *own = self;
    const float beta1 = (float)own->beta1, beta2 = (float)own->beta2;
    const float rate = (float)u->values->given.lr, decay = (float)(u->values->given.lr * u->decay);
    float *average = u->state[0];

    for (size_t i = 0; i < u->n; i++) {
        const float g = co_grad_use(u->grad[i], u->values->rule);
        const float c = beta1 * average[i] + (1 - beta1) * g;

        u->param[i] -= rate * (float)((c > 0) - (c < 0)) + decay * u->param[i];
        average[i] = beta2 * average[i] + (1 - beta2) * g;
    }
}

static const co_optimizer_ops lion_ops = {
    .name = "lion",
    .summary = "the sign of a moving average: every weight moves by the learning rate",
    .keys = lion_keys,
    .self_size = sizeof(lion),
    .default_lr = 1e-3,
    .states = lion_states,
    .state_names = lion_state_names,
    .update = lion_update,
};

CO_PLUGIN_ENTRY
{
    return CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &lion_ops);
}
