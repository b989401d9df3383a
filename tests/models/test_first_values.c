/* test_first_values.c - initial weights have the distributions of the same networks in PyTorch. */
#include "models/models_test.h"

#include <math.h>

static const co_shape medium = {3, {3, 64, 64}};

/* Initial values in torchvision and, for resnet9, in the course's code: U(-scale, scale), N(0,
   scale^2), or a constant `scale`. `squared` is scale^2. */
typedef struct first_values {
    const char *model, *param;
    enum { UNIFORM, NORMAL, CONSTANT } kind;
    double squared;
} first_values;

static const first_values first[] = {
    {"model: resnet18", "conv1.weight", NORMAL, 2.0 / (64 * 49)},
    {"model: resnet18", "layer2.0.conv1.weight", NORMAL, 2.0 / (128 * 9)},
    {"model: resnet18", "layer2.0.downsample.0.weight", NORMAL, 2.0 / 128},
    {"model: resnet18", "layer2.0.bn2.weight", CONSTANT, 1},
    {"model: resnet18", "layer2.0.bn2.bias", CONSTANT, 0},
    {"model: resnet18", "fc.weight", UNIFORM, 1.0 / 512},
    {"model: resnet18", "fc.bias", UNIFORM, 1.0 / 512},
    {"model: {name: resnet18, zero_init_residual: true}", "layer2.0.bn2.weight", CONSTANT, 0},
    {"model: {name: resnet18, zero_init_residual: true}", "layer2.0.bn1.weight", CONSTANT, 1},
    {"model: {name: resnet18, zero_init_residual: true}", "layer2.0.downsample.1.weight", CONSTANT,
     1},
    {"model: {name: resnet50, zero_init_residual: true}", "layer1.1.bn3.weight", CONSTANT, 0},
    {"model: {name: resnet50, zero_init_residual: true}", "layer1.1.bn2.weight", CONSTANT, 1},
    {"model: vgg11-bn", "features.4.weight", NORMAL, 2.0 / (128 * 9)},
    {"model: vgg11-bn", "features.4.bias", CONSTANT, 0},
    {"model: vgg11-bn", "classifier.6.weight", NORMAL, 1e-4},
    {"model: vgg11-bn", "classifier.6.bias", CONSTANT, 0},
    {"model: alexnet", "features.3.weight", UNIFORM, 1.0 / (64 * 25)},
    {"model: alexnet", "classifier.6.bias", UNIFORM, 1.0 / 4096},
    {"model: resnet9", "cb6.conv.weight", UNIFORM, 6.0 / (64 * 9)},
    {"model: resnet9", "cb6.conv.bias", UNIFORM, 1.0 / (64 * 9)},
    {"model: resnet9", "linear1.weight", UNIFORM, 6.0 / 512},
    {"model: resnet9", "linear2.bias", UNIFORM, 6.0 / 100},
    {"model: mnist-example", "fc1.weight", UNIFORM, 1.0 / (64 * 30 * 30)},
};

static co_param *find_param(const co_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_param; i++)
        if (strcmp(graph->param[i].name, name) == 0)
            return &graph->param[i];
    fail_msg("there is no %s", name);
    return NULL;
}

/* The fourth moment distinguishes a normal distribution (3) from a uniform one (1.8). */
static void check_first_values(const first_values *want, const float *value, size_t count)
{
    const double n = (double)count;
    const double variance = want->kind == UNIFORM ? want->squared / 3 : want->squared;
    const double kurtosis = want->kind == UNIFORM ? 1.8 : 3;
    double sum = 0, squares = 0, fourth = 0;

    for (size_t e = 0; e < count; e++) {
        const double v = (double)value[e];

        if (want->kind == CONSTANT)
            assert_true(v == want->squared);
        if (want->kind == UNIFORM)
            assert_true(v * v <= want->squared * (1 + 1e-6));
        sum += v;
        squares += v * v;
        fourth += v * v * v * v;
    }
    if (want->kind == CONSTANT)
        return;
    /* Five standard deviations of each. */
    assert_true(fabs(sum / n) < 5 * sqrt(variance / n));
    assert_true(fabs(squares / n - variance) < 5 * variance * sqrt((kurtosis - 1) / n));
    if (n > 5000)
        assert_true(fabs(fourth / n / (variance * variance) - kurtosis) < 50 / sqrt(n));
}

static void initial_values_follow_torchvision(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(first) / sizeof(first[0]); c++) {
        models_test t = models_test_make(first[c].model, &medium, 100);
        co_param *param = find_param(t.graph, first[c].param);
        co_store *store = NULL;

        /* All of VGG would take 0.5 GB: only the wanted tensor is initialised. */
        for (int i = 0; i < t.graph->n_param; i++) {
            t.graph->param[i].count = &t.graph->param[i] == param ? param->count : 0;
            t.graph->param[i].offset = 0;
        }
        assert_int_equal(co_store_create(&store, param->count, 1), CO_OK);
        co_graph_init(t.graph, store, 1234);
        check_first_values(&first[c], store->param, param->count);
        co_store_destroy(store);
        models_test_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_values_follow_torchvision),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
