/*
 * test_layers.c - networks defined in a config: each form of a layer, residuals, and rejected input
 * with its place.
 */
#include "models/models_test.h"

#include "backends/backends.h"
#include "graph/plan.h"
#include "ops/ops.h"

static const co_shape image = {3, {2, 8, 8}}, row = {1, {3}};

static void layers_equivalent_configs_build_same_graph(void **state)
{
    static const char *const texts[] = {
        "layers: [{conv2d: {name: c, out: 4, kernel: 3}}, {maxpool: 2}, relu, flatten, {linear: "
        "5}]",
        "layers:\n- conv2d:\n    name: c\n    kernel: [3, 3]\n    out: 4\n- maxpool: {kernel: [2, "
        "2]}\n- relu:\n- flatten: ~\n- linear: {out: 5, bias: true}\n",
        "layers:\n- conv2d: {name: c, out: 4, kernel: 3, stride: 1, groups: 1}\n- maxpool: [2, "
        "2]\n- relu: {}\n- flatten\n- linear: 5\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        models_test t = models_test_make(texts[i], &image, 5);

        assert_int_equal(t.graph->n_node, 6);
        assert_string_equal(t.graph->param[0].name, "c.weight");
        assert_string_equal(t.graph->param[2].name, "linear4.weight");
        assert_int_equal(co_graph_param_count(t.graph), 4 * (2 * 9 + 1) + 5 * (36 + 1));
        assert_string_equal(t.graph->node[5].op->name, "cross_entropy");
        models_test_free(&t);
    }
}

static void layers_log_softmax_takes_nll_loss(void **state)
{
    models_test t = models_test_make("layers: [linear: 5, log_softmax]\nloss: nll_loss", &row, 5);

    (void)state;
    assert_string_equal(t.graph->node[2].op->name, "nll_loss");
    models_test_free(&t);
}

/* Sets a tensor, by name, to 1, 2, 3, ... times `sign`. */
static void count_up(co_store *store, const co_graph *graph, const char *name, float sign)
{
    for (int i = 0; i < graph->n_param; i++)
        for (size_t e = 0; strcmp(graph->param[i].name, name) == 0 && e < graph->param[i].count;
             e++)
            store->param[graph->param[i].offset + e] = sign * (float)(e + 1);
}

static void forward(float out[2], models_test *t)
{
    static const uint32_t sample[1] = {0};
    static const co_backend *const ref[] = {&co_backend_ref, NULL};
    const co_plan_options options = {.batch = 1, .backends = ref};
    static const co_step_values values;
    const co_run run = {.sample = sample, .values = &values};
    co_store *store = NULL;
    co_plan *plan = NULL;

    assert_int_equal(co_store_create(&store, t->graph->n_store, t->graph->n_buffer), CO_OK);
    count_up(store, t->graph, "a.weight", 1);
    count_up(store, t->graph, "b.weight", -1);
    assert_int_equal(co_plan_create(&plan, t->graph, store, &options), CO_OK);
    memcpy(co_plan_input(plan, CO_FIELD_INPUT), (const float[]){1, 10, 100}, 3 * sizeof(float));
    *(int32_t *)co_plan_input(plan, CO_FIELD_LABEL) = 0;
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    memcpy(out, co_plan_output(plan), 2 * sizeof(float));
    co_plan_destroy(plan);
    co_store_destroy(store);
}

/* a = [1 2 3; 4 5 6], b = -[1 2; 3 4], and a x = (321, 654) for x = (1, 10, 100). */
static void residual_output_is_body_plus_shortcut(void **state)
{
    static const struct {
        const char *text;
        float out[2];
    } cases[] = {
        {"layers:\n- linear: {name: a, out: 2, bias: false}\n", {321, 654}},
        {"layers:\n- linear: {name: a, out: 2, bias: false}\n"
         "- residual: {body: [linear: {name: b, out: 2, bias: false}]}\n",
         {321 - 1629, 654 - 3579}},
        {"layers:\n- linear: {name: a, out: 2, bias: false}\n"
         "- residual:\n    body: [linear: {name: b, out: 2, bias: false}, relu]\n",
         {321, 654}},
        {"layers:\n- residual:\n    body:\n    - linear: {name: a, out: 2, bias: false}\n"
         "    - linear: {name: b, out: 2, bias: false}\n"
         "    shortcut: [linear: {name: c, out: 2, bias: false}]\n",
         {-1629, -3579}},
        {"layers:\n- linear: {name: a, out: 2, bias: false}\n"
         "- residual:\n    body:\n    - residual: {body: [relu]}\n",
         {3 * 321, 3 * 654}},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        models_test t = models_test_make(cases[c].text, &row, 2);
        float out[2];

        forward(out, &t);
        assert_true(out[0] == cases[c].out[0]);
        assert_true(out[1] == cases[c].out[1]);
        models_test_free(&t);
    }
}

/* Parameters are in the order of building: body, then shortcut, as in torchvision's blocks. */
static void residual_parameters_are_in_order_of_torchvision(void **state)
{
    static const char *const names[] = {"layer1.0.conv1.weight",
                                        "layer1.0.bn1.weight",
                                        "layer1.0.bn1.bias",
                                        "layer1.0.bn1.running_mean",
                                        "layer1.0.bn1.running_var",
                                        "layer1.0.downsample.0.weight",
                                        "fc.weight",
                                        "fc.bias"};
    models_test t = models_test_make(
        "layers:\n"
        "- residual:\n"
        "    body:\n"
        "    - conv2d: {name: layer1.0.conv1, out: 4, kernel: 3, padding: 1, bias: false}\n"
        "    - batchnorm: {name: layer1.0.bn1}\n"
        "    shortcut:\n"
        "    - conv2d: {name: layer1.0.downsample.0, out: 4, kernel: 1, bias: false}\n"
        "- relu\n"
        "- adaptive_avgpool: {size: 1}\n"
        "- flatten\n"
        "- linear: {name: fc, out: 10}\n",
        &image, 10);

    (void)state;
    assert_int_equal(t.graph->n_param, sizeof(names) / sizeof(names[0]));
    for (int i = 0; i < t.graph->n_param; i++)
        assert_string_equal(t.graph->param[i].name, names[i]);
    models_test_free(&t);
}

static const struct {
    const char *text, *message;
} bad_layers[] = {
    {"layers: 3", "net.yaml:1:9: expected a list of layers, such as [flatten, linear: 10]"},
    {"layers: []", "net.yaml:1:9: expected a list of layers, such as [flatten, linear: 10]"},
    {"layers: {conv2d: 3}",
     "net.yaml:1:9: expected a list of layers, such as [flatten, linear: 10]"},
    {"layers:\n- flaten\n", "net.yaml:2:3: unknown layer 'flaten'; did you mean 'flatten'?"},
    {"layers:\n- [relu]\n", "net.yaml:2:3: expected one layer: `- relu`, `- maxpool: 2` or `- "
                            "conv2d: {out: 10, kernel: 5}`"},
    {"layers:\n- {relu: ~, flatten: ~}\n",
     "net.yaml:2:3: expected one layer: `- relu`, `- maxpool: 2` or `- conv2d: {out: 10, "
     "kernel: 5}`"},
    {"layers:\n- ~\n", "net.yaml:2:3: expected one layer: `- relu`, `- maxpool: 2` or `- "
                       "conv2d: {out: 10, kernel: 5}`"},
    {"layers:\n- conv2d: {out: 4, kernal: 3}\n",
     "net.yaml:2:28: conv2d: unknown key 'kernal'; did you mean 'kernel'?"},
    {"layers:\n- conv2d: {kernel: 3}\n",
     "net.yaml:2:11: conv2d: the key 'out' is missing (output channels)"},
    {"layers:\n- conv2d\n", "net.yaml:2:3: conv2d: the key 'out' is missing (output channels)"},
    {"layers:\n- conv2d: 3\n", "net.yaml:2:11: conv2d: expected {key: value}"},
    {"layers:\n- conv2d: {out: -4, kernel: 3}\n",
     "net.yaml:2:17: conv2d: key 'out': expected a whole number from 1 to 1048576, got '-4'"},
    {"layers:\n- conv2d: {out: many, kernel: 3}\n",
     "net.yaml:2:17: conv2d: key 'out': expected a whole number from 1 to 1048576, got "
     "'many'"},
    {"layers:\n- conv2d: {out: 99999999999999999999, kernel: 3}\n",
     "net.yaml:2:17: conv2d: key 'out': expected a whole number from 1 to 1048576, got "
     "'99999999999999999999'"},
    {"layers:\n- conv2d: {out: 4, kernel: [3, 3, 3]}\n",
     "net.yaml:2:3: layer conv2d0: kernel takes one number or [height, width], not 3 numbers"},
    {"layers:\n- conv2d: {name: c, out: 4, kernel: 9}\n",
     "net.yaml:2:3: layer c: a kernel that spans 9 does not fit the height of 8 with 0 of "
     "padding on both sides"},
    {"layers:\n- conv2d: {out: 4, kernel: 3, groups: 3}\n",
     "net.yaml:2:3: layer conv2d0: groups must divide both the 2 input and the 4 output "
     "channels; 3 does not"},
    {"layers:\n- linear: 5\n", "net.yaml:2:3: layer linear0: needs rows (N, F) or sequences of "
                               "rows (N, T, F) but gets (N, 2, "
                               "8, 8); put flatten in front of it"},
    {"layers:\n- flatten\n- maxpool: 2\n",
     "net.yaml:3:3: layer maxpool1: needs images (N, C, H, W) but gets (N, 128); put it before "
     "flatten"},
    {"layers:\n- dropout: {p: 1.5}\n",
     "net.yaml:2:16: dropout: key 'p': expected a number from 0 to 1, got '1.5'"},
    {"layers:\n- relu: 0.1\n", "net.yaml:2:9: relu: expected {key: value}"},
    {"layers:\n- relu: {slope: 0.1}\n",
     "net.yaml:2:17: relu: unknown key 'slope'; it takes no keys"},
    {"layers:\n- relu: {name: r}\n- relu: {name: r}\n",
     "net.yaml:3:3: two layers have the name 'r'; give one another name"},
    {"layers:\n- relu: {name: a/b}\n",
     "net.yaml:2:16: a layer's name has 1 to 128 letters, digits, '_', '-' and '.'"},
    {"layers:\n- relu: {name: [a]}\n",
     "net.yaml:2:16: a layer's name has 1 to 128 letters, digits, '_', '-' and '.'"},
    {"layers:\n- residual: {shortcut: [relu]}\n",
     "net.yaml:2:13: residual: the key 'body' is missing (layers whose output is added to "
     "their input)"},
    {"layers:\n- residual\n", "net.yaml:2:3: residual: the key 'body' is missing (layers whose "
                              "output is added to their input)"},
    {"layers:\n- residual: {body: ~}\n", "net.yaml:2:3: residual: the body has no layers"},
    {"layers:\n- residual: {body: []}\n",
     "net.yaml:2:20: expected a list of layers, such as [flatten, linear: 10]"},
    {"layers:\n- residual: {body: [conv2d: {out: 3, kernel: 1}]}\n",
     "net.yaml:2:3: layer add1: cannot add (N, 3, 8, 8) and (N, 2, 8, 8): both sides need one "
     "shape"},
    {"layers:\n- relu\n- residual:\n    body:\n    - relu\n    - linear: 4\n",
     "net.yaml:6:7: layer linear2: needs rows (N, F) or sequences of rows (N, T, F) but gets (N, "
     "2, 8, 8); put flatten in "
     "front of it"},
    {"layers:\n- relu\n",
     "net.yaml:2:1: the network ends in images; end it with `flatten` and `linear: 10`"},
    {"layers:\n- flatten\n- linear: 9\n", "net.yaml:2:1: the network gives 9 logits for each "
                                          "sample, but the data has 10 classes"},
};

static void layers_bad_config_is_refused_at_its_line(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(bad_layers) / sizeof(bad_layers[0]); c++) {
        models_test t = models_test_build(bad_layers[c].text, &image, 10);

        assert_int_equal(t.status, CO_E_USAGE);
        if (strcmp(co_error_message(), bad_layers[c].message) != 0)
            print_error("case %zu\n", c);
        assert_string_equal(co_error_message(), bad_layers[c].message);
        models_test_free(&t);
    }
}

/* Neither the sum, which has two inputs, nor a loss is one. */
static void layers_op_that_is_no_layer_names_those_that_are(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"layers:\n- add\n", "net.yaml:2:3: unknown layer 'add'; there are residual, conv2d, "},
        {"layers:\n- flatten\n- cross_entropy\n",
         "net.yaml:3:3: unknown layer 'cross_entropy'; there are residual, conv2d, "},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(bad) / sizeof(bad[0]); c++) {
        models_test t = models_test_build(bad[c].text, &image, 10);
        const char *names = strstr(co_error_message(), "there are");

        assert_int_equal(t.status, CO_E_USAGE);
        assert_memory_equal(co_error_message(), bad[c].message, strlen(bad[c].message));
        assert_non_null(strstr(names, ", relu, "));
        assert_non_null(strstr(names, ", log_softmax"));
        assert_null(strstr(names, ", add"));
        assert_null(strstr(names, "_loss"));
        models_test_free(&t);
    }
}

static void layers_too_many_are_refused(void **state)
{
    static const char head[] = "layers:\n", layer[] = "- relu\n";
    static char text[sizeof(head) + 5000 * sizeof(layer)];
    char *end = stpcpy(text, head);
    models_test t;

    (void)state;
    for (int i = 0; i < 5000; i++)
        end = stpcpy(end, layer);
    t = models_test_build(text, &image, 10);
    assert_int_equal(t.status, CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "a network of more than 4096 layers"));
    models_test_free(&t);
}

static void layers_too_large_are_refused_before_allocation(void **state)
{
    static const char *const texts[] = {
        "layers: [flatten, linear: 1048576, linear: 1048576, linear: 10]",
        "layers: [conv2d: {out: 1048576, kernel: 1024, padding: 1024}, flatten, linear: 10]",
        "layers: [conv2d: {out: 64, kernel: 1, padding: 65536}, flatten, linear: 1048576]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        models_test t = models_test_build(texts[i], &image, 10);

        if (t.status == CO_OK)
            assert_true(t.graph->n_store < (size_t)1 << 44);
        else
            assert_non_null(strstr(co_error_message(), "more than 2^40 elements"));
        models_test_free(&t);
    }
}

static void layers_failed_allocation_is_an_error(void **state)
{
    static const char text[] = "layers:\n- conv2d: {name: c, out: 2, kernel: 3, padding: 1}\n"
                               "- residual: {body: [relu, maxpool: {kernel: 1}]}\n"
                               "- flatten\n- linear: 4\n";
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_config *config = NULL;
        co_graph *graph = NULL;

        assert_int_equal(co_config_parse(&config, text, sizeof(text) - 1, "net.yaml"), CO_OK);
        co_mem_fail_at(++k);
        st = co_model_build(&graph, NULL, co_value_get(co_config_root(config), "layers"), NULL,
                            config, &image, 4);
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
        cmocka_unit_test(layers_equivalent_configs_build_same_graph),
        cmocka_unit_test(layers_log_softmax_takes_nll_loss),
        cmocka_unit_test(residual_output_is_body_plus_shortcut),
        cmocka_unit_test(residual_parameters_are_in_order_of_torchvision),
        cmocka_unit_test(layers_bad_config_is_refused_at_its_line),
        cmocka_unit_test(layers_op_that_is_no_layer_names_those_that_are),
        cmocka_unit_test(layers_too_many_are_refused),
        cmocka_unit_test(layers_too_large_are_refused_before_allocation),
        cmocka_unit_test(layers_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
