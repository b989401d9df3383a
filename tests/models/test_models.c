/* test_models.c - the models by name: their tensors are those of the same networks in PyTorch. */
#include "models/models_test.h"

#include <math.h>

#include "transformers.h"

static const co_shape mnist = {3, {1, 28, 28}}, padded = {3, {1, 32, 32}}, color = {3, {3, 8, 8}};
static const co_shape tokens = {1, {8}}, tokens_1024 = {1, {1024}};
static const co_shape cifar = {3, {3, 32, 32}}, imagenet = {3, {3, 224, 224}};

static const tensor mnist_net[] = {
    {"conv1.weight", {4, {10, 1, 5, 5}}, false},
    {"conv1.bias", {1, {10}}, false},
    {"conv2.weight", {4, {20, 10, 5, 5}}, false},
    {"conv2.bias", {1, {20}}, false},
    {"fc1.weight", {2, {50, 320}}, false},
    {"fc1.bias", {1, {50}}, false},
    {"fc2.weight", {2, {10, 50}}, false},
    {"fc2.bias", {1, {10}}, false},
    {NULL, {0}, false},
};

static const tensor mnist_net_bn[] = {
    {"conv1.weight", {4, {10, 1, 5, 5}}, false},
    {"bn1.weight", {1, {10}}, false},
    {"bn1.bias", {1, {10}}, false},
    {"bn1.running_mean", {1, {10}}, true},
    {"bn1.running_var", {1, {10}}, true},
    {"conv2.weight", {4, {20, 10, 5, 5}}, false},
    {"bn2.weight", {1, {20}}, false},
    {"bn2.bias", {1, {20}}, false},
    {"bn2.running_mean", {1, {20}}, true},
    {"bn2.running_var", {1, {20}}, true},
    {"fc1.weight", {2, {50, 320}}, false},
    {"fc1.bias", {1, {50}}, false},
    {"fc2.weight", {2, {10, 50}}, false},
    {"fc2.bias", {1, {10}}, false},
    {NULL, {0}, false},
};

static const tensor lenet5_28[] = {
    {"conv1.weight", {4, {6, 1, 5, 5}}, false},
    {"conv1.bias", {1, {6}}, false},
    {"conv2.weight", {4, {16, 6, 5, 5}}, false},
    {"conv2.bias", {1, {16}}, false},
    {"fc1.weight", {2, {120, 256}}, false},
    {"fc1.bias", {1, {120}}, false},
    {"fc2.weight", {2, {84, 120}}, false},
    {"fc2.bias", {1, {84}}, false},
    {"fc3.weight", {2, {10, 84}}, false},
    {"fc3.bias", {1, {10}}, false},
    {NULL, {0}, false},
};

static const tensor psgd_cnn[] = {
    {"conv1.weight", {4, {16, 1, 5, 5}}, false},
    {"conv1.bias", {1, {16}}, false},
    {"conv2.weight", {4, {32, 16, 5, 5}}, false},
    {"conv2.bias", {1, {32}}, false},
    {"FC1.weight", {2, {512, 128}}, false},
    {"FC1.bias", {1, {512}}, false},
    {"FC2.weight", {2, {256, 512}}, false},
    {"FC2.bias", {1, {256}}, false},
    {"Output.weight", {2, {10, 256}}, false},
    {"Output.bias", {1, {10}}, false},
    {NULL, {0}, false},
};

static const tensor mlp_two[] = {
    {"fc1.weight", {2, {32, 192}}, false},
    {"fc1.bias", {1, {32}}, false},
    {"fc2.weight", {2, {16, 32}}, false},
    {"fc2.bias", {1, {16}}, false},
    {"fc3.weight", {2, {4, 16}}, false},
    {"fc3.bias", {1, {4}}, false},
    {NULL, {0}, false},
};

/* Of torchvision's state_dict, without num_batches_tracked. */
static const tensor resnet50_first[] = {
    {"conv1.weight", {4, {64, 3, 7, 7}}, false},
    {"bn1.weight", {1, {64}}, false},
    {"bn1.bias", {1, {64}}, false},
    {"bn1.running_mean", {1, {64}}, true},
    {"bn1.running_var", {1, {64}}, true},
    {"layer1.0.conv1.weight", {4, {64, 64, 1, 1}}, false},
    {"layer1.0.bn1.weight", {1, {64}}, false},
    {"layer1.0.bn1.bias", {1, {64}}, false},
    {"layer1.0.bn1.running_mean", {1, {64}}, true},
    {"layer1.0.bn1.running_var", {1, {64}}, true},
    {"layer1.0.conv2.weight", {4, {64, 64, 3, 3}}, false},
    {"layer1.0.bn2.weight", {1, {64}}, false},
    {"layer1.0.bn2.bias", {1, {64}}, false},
    {"layer1.0.bn2.running_mean", {1, {64}}, true},
    {"layer1.0.bn2.running_var", {1, {64}}, true},
    {"layer1.0.conv3.weight", {4, {256, 64, 1, 1}}, false},
    {"layer1.0.bn3.weight", {1, {256}}, false},
    {"layer1.0.bn3.bias", {1, {256}}, false},
    {"layer1.0.bn3.running_mean", {1, {256}}, true},
    {"layer1.0.bn3.running_var", {1, {256}}, true},
    {"layer1.0.downsample.0.weight", {4, {256, 64, 1, 1}}, false},
    {"layer1.0.downsample.1.weight", {1, {256}}, false},
    {MORE, {0}, false},
};

static const tensor alexnet[] = {
    {"features.0.weight", {4, {64, 3, 11, 11}}, false},
    {"features.0.bias", {1, {64}}, false},
    {"features.3.weight", {4, {192, 64, 5, 5}}, false},
    {"features.3.bias", {1, {192}}, false},
    {"features.6.weight", {4, {384, 192, 3, 3}}, false},
    {"features.6.bias", {1, {384}}, false},
    {"features.8.weight", {4, {256, 384, 3, 3}}, false},
    {"features.8.bias", {1, {256}}, false},
    {"features.10.weight", {4, {256, 256, 3, 3}}, false},
    {"features.10.bias", {1, {256}}, false},
    {"classifier.1.weight", {2, {4096, 9216}}, false},
    {"classifier.1.bias", {1, {4096}}, false},
    {"classifier.4.weight", {2, {4096, 4096}}, false},
    {"classifier.4.bias", {1, {4096}}, false},
    {"classifier.6.weight", {2, {1000, 4096}}, false},
    {"classifier.6.bias", {1, {1000}}, false},
    {NULL, {0}, false},
};

static const tensor vgg11_bn_first[] = {
    {"features.0.weight", {4, {64, 3, 3, 3}}, false},
    {"features.0.bias", {1, {64}}, false},
    {"features.1.weight", {1, {64}}, false},
    {"features.1.bias", {1, {64}}, false},
    {"features.1.running_mean", {1, {64}}, true},
    {"features.1.running_var", {1, {64}}, true},
    {"features.4.weight", {4, {128, 64, 3, 3}}, false},
    {MORE, {0}, false},
};

static const struct {
    const char *text;
    const co_shape *sample;
    int64_t classes;
    const char *loss;
    size_t count;
    const tensor *tensors; /* NULL: only counted */
} cases[] = {
    {"model: mnist-net", &mnist, 10, "nll_loss", 21840, mnist_net},
    {"model: {name: mnist-net, batch_norm: true}", &mnist, 10, "nll_loss", 21870, mnist_net_bn},
    {"model: mnist-net", &mnist, 7, "nll_loss", 21840 - 3 * 51, NULL},
    {"model: {name: mnist-net, classes: 12}", &mnist, 10, "nll_loss", 21840 + 2 * 51, NULL},
    {"model: lenet5", &mnist, 10, "nll_loss", 44426, lenet5_28},
    {"model: lenet5", &padded, 10, "nll_loss", 61706, NULL},
    {"model: {name: lenet5, padding: 2}", &mnist, 10, "nll_loss", 61706, NULL},
    {"model: psgd-cnn", &padded, 10, "nll_loss", 213194, psgd_cnn},
    {"model: {name: gpt2, layers: 1, heads: 3, width: 12}", &tokens, 50, "cross_entropy",
     50 * 12 + 8 * 12 + 4 * 12 + 13 * (36 + 12 + 48) + 49 * 12 + 2 * 12, gpt2_first},
    {"model: {name: llama, layers: 1, heads: 4, kv_heads: 2, width: 24}", &tokens, 50,
     "cross_entropy", 2 * 50 * 24 + 3 * 24 + 24 * (48 + 24 + 3 * 64), llama_first},
    {"model: {name: llama, layers: 22, heads: 32, kv_heads: 4, width: 2048, hidden: 5632}",
     &tokens_1024, 32000, "cross_entropy", 1100048384, NULL},
    {"model: {name: llama, layers: 1, heads: 4, width: 24, tie: true, vocab: 60}", &tokens, 50,
     "cross_entropy", 60 * 24 + 3 * 24 + 24 * (96 + 3 * 64), NULL},
    {"model: {name: vit-s16, layers: 1, heads: 3, width: 12, hidden: 20, patch: 4}", &color, 5,
     "cross_entropy", 13 * 5 + 12 * (48 + 1 + 5 + 6 + 36 + 12 + 20 + 20) + 60 + 20 + 12, vit_first},
    {"model: vit-s16", &imagenet, 1000, "cross_entropy", 22050664, NULL},
    {"model: {name: vit-s16, heads: 12, width: 768}", &imagenet, 1000, "cross_entropy", 86567656,
     NULL},
    {"model: gpt2", &tokens_1024, 50257, "cross_entropy", 124439808, NULL},
    {"model: {name: gpt2, layers: 1, heads: 3, width: 12, context: 9, vocab: 60, tie: false}",
     &tokens, 50, "cross_entropy",
     60 * 12 + 9 * 12 + 4 * 12 + 13 * (36 + 12 + 48) + 49 * 12 + 2 * 12 + 60 * 12, NULL},
    {"model: {name: mlp, hidden: [32, 16]}", &color, 4, "cross_entropy", 6772, mlp_two},
    {"model: mlp", &mnist, 10, "cross_entropy", 785 * 128 + 129 * 10, NULL},
    {"model: {name: mlp, hidden: []}", &mnist, 10, "cross_entropy", 7850, NULL},
    {"model: {name: mlp, dropout: 0.5}", &mnist, 10, "cross_entropy", 785 * 128 + 1290, NULL},
    {"model: mnist-net\nloss: {name: cross_entropy, label_smoothing: 0.1}", &mnist, 10,
     "cross_entropy", 21840, mnist_net},
    {"model: mnist-example", &mnist, 10, "nll_loss", 1199882, NULL},
    {"model: resnet9", &cifar, 10, "cross_entropy", 431946, NULL},
    {"model: resnet9-wide", &cifar, 10, "cross_entropy", 6573120, NULL},
    {"model: {name: resnet9-wide, width: 32, logit_scale: 1}", &cifar, 10, "cross_entropy", 1646112,
     NULL},
    {"model: resnet18", &imagenet, 1000, "cross_entropy", 11689512, NULL},
    {"model: resnet34", &imagenet, 1000, "cross_entropy", 21797672, NULL},
    {"model: resnet50", &imagenet, 1000, "cross_entropy", 25557032, resnet50_first},
    {"model: resnet101", &imagenet, 1000, "cross_entropy", 44549160, NULL},
    {"model: resnet152", &imagenet, 1000, "cross_entropy", 60192808, NULL},
    {"model: {name: resnet18, stem: cifar}", &cifar, 10, "cross_entropy", 11173962, NULL},
    {"model: {name: resnet18, stem: cifar, width: 32}", &cifar, 10, "cross_entropy", 2797610, NULL},
    {"model: alexnet", &imagenet, 1000, "cross_entropy", 61100840, alexnet},
    {"model: vgg11", &imagenet, 1000, "cross_entropy", 132863336, NULL},
    {"model: vgg11-bn", &imagenet, 1000, "cross_entropy", 132868840, vgg11_bn_first},
    {"model: vgg13", &imagenet, 1000, "cross_entropy", 133047848, NULL},
    {"model: vgg13-bn", &imagenet, 1000, "cross_entropy", 133053736, NULL},
    {"model: vgg16", &imagenet, 1000, "cross_entropy", 138357544, NULL},
    {"model: vgg16-bn", &imagenet, 1000, "cross_entropy", 138365992, NULL},
    {"model: vgg19", &imagenet, 1000, "cross_entropy", 143667240, NULL},
    {"model: vgg19-bn", &imagenet, 1000, "cross_entropy", 143678248, NULL},
    {"model: vgg11", &cifar, 1000, "cross_entropy", 132863336, NULL},
};

static void check_tensors(const co_graph *graph, const tensor *expected)
{
    int n = 0;

    for (; expected[n].name && strcmp(expected[n].name, MORE) != 0; n++) {
        assert_true(n < graph->n_param);
        assert_string_equal(graph->param[n].name, expected[n].name);
        assert_true(co_shape_equal(&graph->param[n].spec.shape, &expected[n].shape));
        assert_int_equal(graph->param[n].spec.buffer, expected[n].buffer);
    }
    if (!expected[n].name)
        assert_int_equal(n, graph->n_param);
}

static void models_tensors_equal_pytorch(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        models_test t = models_test_make(cases[c].text, cases[c].sample, cases[c].classes);
        const co_var *output = &t.graph->var[t.graph->output];
        const co_node *loss = &t.graph->node[t.graph->var[t.graph->loss].producer];

        assert_int_equal(co_graph_param_count(t.graph), cases[c].count);
        assert_int_equal(output->shape.ndim, cases[c].sample->ndim == 1 ? 3 : 2);
        assert_true(output->shape.dim[output->shape.ndim - 1] >= cases[c].classes);
        assert_string_equal(loss->op->name, cases[c].loss);
        if (cases[c].tensors)
            check_tensors(t.graph, cases[c].tensors);
        models_test_free(&t);
    }
}

static void assert_order(const char *text, const co_shape *sample, const char *const *order)
{
    models_test t = models_test_make(text, sample, 10);

    for (int i = 0; i < t.graph->n_node; i++)
        assert_string_equal(order[i] ? order[i] : "the end", t.graph->node[i].op->name);
    assert_null(order[t.graph->n_node]);
    models_test_free(&t);
}

static void models_layers_are_in_published_order(void **state)
{
    static const char *const mnist_net_order[] = {
        "conv2d",    "batchnorm", "maxpool",     "relu",     "conv2d", "batchnorm",
        "dropout2d", "maxpool",   "relu",        "flatten",  "linear", "relu",
        "dropout",   "linear",    "log_softmax", "nll_loss", NULL};
    static const char *const psgd_cnn_order[] = {
        "conv2d",  "maxpool", "relu", "conv2d", "maxpool", "relu",        "dropout",  "maxpool",
        "flatten", "linear",  "relu", "linear", "linear",  "log_softmax", "nll_loss", NULL};

    (void)state;
    assert_order("model: {name: mnist-net, batch_norm: true}", &mnist, mnist_net_order);
    assert_order("model: psgd-cnn", &padded, psgd_cnn_order);
}

/* PyTorch's kaiming_uniform(a = sqrt(5)) for weights and U(+-1 / sqrt(fan_in)) for biases are the
   same range, with standard deviation 1 / sqrt(3 fan_in). */
static void initial_weights_have_range_of_pytorch(void **state)
{
    models_test t = models_test_make("model: mnist-net", &mnist, 10);
    co_store *store = NULL;

    (void)state;
    assert_int_equal(co_store_create(&store, t.graph->n_store, t.graph->n_buffer), CO_OK);
    co_graph_init(t.graph, store, 1234);
    for (int i = 0; i < t.graph->n_param; i++) {
        const co_param *p = &t.graph->param[i], *w = &t.graph->param[i / 2 * 2];
        const double fan_in = (double)w->count / (double)w->spec.shape.dim[0];
        const double bound = 1 / sqrt(fan_in), n = (double)p->count;
        double sum = 0, squares = 0;

        for (size_t e = 0; e < p->count; e++) {
            const double value = (double)store->param[p->offset + e];

            assert_true(fabs(value) <= bound * (1 + 1e-6));
            sum += value;
            squares += value * value;
        }
        /* Five standard deviations of a mean of n. */
        assert_true(fabs(sum / n) < 5 * bound / sqrt(3 * n));
        assert_true(fabs(squares / n - bound * bound / 3) < 5 * bound * bound * 0.3 / sqrt(n));
    }
    co_store_destroy(store);
    models_test_free(&t);
}

static const struct {
    const char *text;
    co_shape sample;
    int64_t classes;
    const char *message;
} bad_models[] = {
    {"model: lenet",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:8: unknown model 'lenet'; did you mean 'lenet5'?"},
    {"model: {batch_norm: true}",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:8: model: expected a name, or {name: ..., key: value}"},
    {"model: {name: mnist-net, batchnorm: true}",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:37: model mnist-net: unknown key 'batchnorm'; did you mean 'batch_norm'?"},
    {"model: {name: mnist-net, batch_norm: 3}",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:38: model mnist-net: key 'batch_norm': expected true or false, got '3'"},
    {"model: {name: lenet5, padding: -1}",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:32: model lenet5: key 'padding': expected a whole number from 0 to 16, got "
     "'-1'"},
    {"model: {name: gpt2, heads: 5}",
     {1, {8}},
     10,
     "net.yaml:1:8: model gpt2: 5 heads do not divide the width of 768"},
    {"model: {name: vit-s16, heads: 5}",
     {3, {3, 32, 32}},
     10,
     "net.yaml:1:8: model vit-s16: 5 heads do not divide the width of 384"},
    {"model: vit-s16",
     {3, {3, 32, 40}},
     10,
     "net.yaml:1:8: model vit-s16: patches of 16 do not divide images of 32x40; set `patch`, or "
     "the data's `resize`"},
    {"model: vit-s16", {1, {8}}, 10, "net.yaml:1:8: model vit-s16: takes images (C, H, W)"},
    {"model: {name: llama, heads: 4, width: 36}",
     {1, {8}},
     10,
     "net.yaml:1:8: model llama: 4 heads do not divide the width of 36 into parts of an even "
     "length"},
    {"model: {name: llama, kv_heads: 5}",
     {1, {8}},
     10,
     "net.yaml:1:8: model llama: 12 heads are no multiple of kv_heads, 5"},
    {"model: {name: llama, context: 7}",
     {1, {8}},
     10,
     "net.yaml:1:8: model llama: sequences of 8 positions, and it is for 7; make `context` larger, "
     "or the data's `context` smaller"},
    {"model: {name: gpt2, context: 7}",
     {1, {8}},
     10,
     "net.yaml:1:8: layer wpe: sequences of 8 positions, and rows for 7; make `length` larger, or "
     "the data's `context` smaller"},
    {"model: gpt2",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:8: layer wte: needs sequences of tokens (N, T) but gets (N, 1, 28, 28)"},
    {"model: {name: mlp, hidden: [16, 0]}",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:33: model mlp: key 'hidden': expected a whole number or a list of them from "
     "1 to 1048576, got '0'"},
    {"model: {name: lenet5, classes: 5}",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:8: the network gives 5 logits for each sample, but the data has 10 classes"},
    {"model: {name: mlp, classes: 5}\nloss: mse_loss",
     {3, {1, 28, 28}},
     10,
     "net.yaml:1:8: the network gives 5 values for each sample, but the data has targets of 10 "
     "values"},
    {"model: {name: resnet18, stem: small}",
     {3, {3, 32, 32}},
     10,
     "net.yaml:1:31: model resnet18: key 'stem': expected one of imagenet, cifar, got 'small'"},
    {"model: vgg11",
     {3, {3, 16, 16}},
     10,
     "net.yaml:1:8: layer maxpool20: a kernel that spans 2 does not fit the height of 1 with 0 "
     "of padding on both sides"},
    {"model: lenet5",
     {3, {1, 8, 8}},
     10,
     "net.yaml:1:8: layer conv2: a kernel that spans 5 does not fit the height of 2 with 0 of "
     "padding on both sides"},
    {"model: mnist-net",
     {1, {784}},
     10,
     "net.yaml:1:8: layer conv1: needs images (N, C, H, W) but gets (N, 784); put it before "
     "flatten"},
    {"model: mlp\nloss: nll_loss",
     {3, {1, 28, 28}},
     10,
     "net.yaml:2:7: nll_loss needs log-probabilities: end the network with log_softmax, or "
     "use cross_entropy"},
    {"model: mlp\nloss: {name: cross_entropy, label_smoothing: 2}",
     {3, {1, 28, 28}},
     10,
     "net.yaml:2:46: cross_entropy: key 'label_smoothing': expected a number from 0 to 1, got "
     "'2'"},
    {"model: mlp",
     {3, {1, 0, 28}},
     10,
     "a sample with a dimension of 0: each is at least 1, and their product at most 2^40"},
    {"model: mlp",
     {4, {1 << 20, 1 << 20, 1 << 20, 1 << 20}},
     10,
     "a sample with a dimension of 1048576: each is at least 1, and their product at most "
     "2^40"},
    {"model: mlp", {0, {0}}, 10, "a sample of a data set has 1 to 4 dimensions, not 0"},
    {"model: mlp", {5, {1, 1, 1, 1, 1}}, 10, "a sample of a data set has 1 to 4 dimensions, not 5"},
    {"model: mlp", {3, {1, 28, 28}}, 0, "0 classes: there is at least 1"},
};

static void models_unknown_loss_names_those_there_are(void **state)
{
    const co_shape sample = {3, {1, 28, 28}};
    models_test t = models_test_build("model: mlp\nloss: relu", &sample, 10);

    (void)state;
    assert_int_equal(t.status, CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "net.yaml:2:7: unknown loss 'relu'; there are "
                                               "nll_loss, cross_entropy, mse_loss, "));
    models_test_free(&t);
}

static void models_bad_config_is_refused_at_its_line(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(bad_models) / sizeof(bad_models[0]); c++) {
        models_test t =
            models_test_build(bad_models[c].text, &bad_models[c].sample, bad_models[c].classes);

        assert_int_equal(t.status, CO_E_USAGE);
        assert_string_equal(co_error_message(), bad_models[c].message);
        assert_null(t.graph);
        models_test_free(&t);
    }
}

static void models_failed_allocation_is_an_error(void **state)
{
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_config *config = NULL;
        co_graph *graph = NULL;
        const char *text = "model: {name: mlp, hidden: [8, 8, 8], dropout: 0.1}";

        assert_int_equal(co_config_parse(&config, text, strlen(text), "net.yaml"), CO_OK);
        co_mem_fail_at(++k);
        st = co_model_build(&graph, co_value_get(co_config_root(config), "model"), NULL, NULL,
                            config, &mnist, 10);
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        co_graph_destroy(graph);
        co_config_destroy(config);
    } while (st != CO_OK);
    assert_true(k > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_tensors_equal_pytorch),
        cmocka_unit_test(models_layers_are_in_published_order),
        cmocka_unit_test(initial_weights_have_range_of_pytorch),
        cmocka_unit_test(models_unknown_loss_names_those_there_are),
        cmocka_unit_test(models_bad_config_is_refused_at_its_line),
        cmocka_unit_test(models_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
