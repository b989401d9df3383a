/* harness.c - the test ops, and building and running a network from text. */
#include "harness.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/rng.h"
#include "ops/ops.h"

/* --- source: y = x + value, value (N, ...) --- */

typedef struct harness_attr {
    harness *h; /* borrowed */
} harness_attr;

static co_status source_shape(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    *out = *in;
    return CO_OK;
}

static int source_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    out[0] = (co_param_spec){.name = "value", .shape = *in, .init = CO_INIT_ZERO};
    out[0].shape.dim[0] = ((const harness_attr *)attr)->h->batch;
    return 1;
}

static const co_op source_op = {
    .name = "source",
    .attr_size = sizeof(harness_attr),
    .n_in = 1,
    .n_out = 1,
    .shape = source_shape,
    .params = source_params,
};

static co_status source_forward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *x = call->in[0]->data, *value = call->param[0].data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] + value[i];
    return CO_OK;
}

static co_status source_backward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *dy = call->grad_out[0]->data;
    float *grad = call->grad_param[0].data;

    for (int64_t i = 0; i < count; i++)
        grad[i] = run->accumulate ? grad[i] + dy[i] : dy[i];
    return CO_OK;
}

static const co_kernel source_kernel = {
    .op = "source",
    .forward = source_forward,
    .backward = source_backward,
};

/* --- project: loss[n] = sum_e x[n][e] row[n][e] --- */

static co_status project_shape(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    *out = (co_shape){1, {in->dim[0]}};
    return CO_OK;
}

static const co_op project_op = {
    .name = "project",
    .attr_size = sizeof(harness_attr),
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .is_loss = true,
    .shape = project_shape,
};

static co_status project_plan(co_call *call)
{
    call->scratch_bytes = (size_t)co_shape_count(&call->in[0]->shape) * sizeof(float);
    return CO_OK;
}

/* The given rows, or random ones written to scratch. */
static const float *project_rows(const co_call *call)
{
    const harness *h = ((const harness_attr *)call->attr)->h;
    const co_rng rng = {.seed = 77, .stream = CO_RNG_TEST};
    const int64_t count = co_shape_count(&call->in[0]->shape);
    float *row = call->scratch;

    if (h->row)
        return h->row;
    co_rng_uniform(row, &rng, 0, (uint64_t)count);
    for (int64_t i = 0; i < count; i++)
        row[i] = 2 * row[i] - 1;
    return row;
}

static co_status project_forward(co_call *call, const co_run *run)
{
    harness *h = ((const harness_attr *)call->attr)->h;
    const int64_t rows = call->in[0]->shape.dim[0];
    const int64_t width = co_shape_count(&call->in[0]->shape) / rows;
    const float *x = call->in[0]->data, *row = project_rows(call);
    float *loss = call->out[0]->data;

    (void)run;
    h->projection = 0;
    for (int64_t n = 0; n < rows; n++) {
        double sum = 0;

        for (int64_t e = n * width; e < (n + 1) * width; e++)
            sum += (double)x[e] * (double)row[e];
        loss[n] = (float)sum;
        h->projection += sum;
    }
    return CO_OK;
}

static co_status project_backward(co_call *call, const co_run *run)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const float *row = project_rows(call);
    float *dx = call->grad_in[0]->data;

    for (int64_t i = 0; i < count; i++)
        dx[i] = co_run_grad_scale(run) * row[i];
    return CO_OK;
}

static const co_kernel project_kernel = {
    .op = "project",
    .plan = project_plan,
    .forward = project_forward,
    .backward = project_backward,
};

static const co_kernel *const harness_kernels[] = {&source_kernel, &project_kernel, NULL};
const co_backend harness_backend = {.name = "test", .kernels = harness_kernels};

/* --- building --- */

static co_status harness_add_layer(int *x, int *kept, harness *h, const char *word,
                                   const char *attrs)
{
    const co_op *op = co_op_find(word);
    const int in[3] = {*x, *kept, *kept};
    const co_value *value = NULL;
    co_arena *arena = co_config_arena(h->config);
    const char *name;
    void *attr;

    if (strcmp(word, "keep") == 0) {
        *kept = *x;
        return CO_OK;
    }
    if (strcmp(word, "data") == 0)
        return CO_OK;
    if (strcmp(word, "tie") == 0)
        return co_graph_tie(h->graph, "embedding1.weight");
    if (!op)
        return co_fail(CO_E_USAGE, "no op has the name '%s'", word);
    if (*attrs)
        CO_TRY(co_config_add_text(&value, h->config, attrs));
    attr = co_arena_alloc(arena, 1, op->attr_size ? op->attr_size : 1);
    name = co_arena_printf(arena, "%s%d", word, ++h->layers);
    if (!attr || !name)
        return CO_E_NOMEM;
    if (op->keys)
        CO_TRY(co_keys_read(attr, op->keys, value, word, arena));
    if (op->is_loss)
        return co_graph_add_loss(x, h->graph, op, name, attr, *x);
    return co_graph_add(x, h->graph, op, name, attr, in);
}

/* Cuts `text` at the first ';', trims the layer, and splits the op's name from its attributes.
   Returns the rest. */
static char *harness_next_layer(char **word, char **attrs, char *text)
{
    char *rest = strchr(text, ';'), *end;

    if (rest)
        *rest++ = '\0';
    while (isspace((unsigned char)*text))
        text++;
    *word = text;
    for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]); end--)
        end[-1] = '\0';
    *attrs = text + strcspn(text, " ");
    if (**attrs)
        *(*attrs)++ = '\0';
    return rest;
}

/* Elements of the output, over the batch. */
static size_t harness_outputs(const harness *h)
{
    return (size_t)(h->batch * co_shape_count(&h->graph->var[h->graph->output].shape));
}

/* Rows of it: samples, or positions of samples. */
static size_t harness_rows(const harness *h)
{
    const co_shape *shape = &h->graph->var[h->graph->output].shape;

    return harness_outputs(h) / (size_t)shape->dim[shape->ndim - 1];
}

/* Elements of the input, over the batch. */
static size_t harness_inputs(const harness *h)
{
    const int input = co_graph_find_input(h->graph, CO_FIELD_INPUT);

    return (size_t)(h->batch * co_shape_count(&h->graph->var[input].shape));
}

/* Whether the first layer's input has no gradient. */
static bool harness_is_data(const char *net)
{
    return strncmp(net, "data;", strlen("data;")) == 0;
}

static size_t harness_gcd(size_t a, size_t b)
{
    return b ? harness_gcd(b, a % b) : a;
}

/* Evenly spaced values in (-1, 1) without 0, each used once: visited with a stride coprime to their
   number. */
static void harness_fill_source(float *to, size_t count, uint64_t seed)
{
    size_t step = (size_t)((double)count * 0.618) + 1, at = (size_t)(seed % count);

    while (harness_gcd(step, count) != 1)
        step++;
    for (size_t i = 0; i < count; i++, at = (at + step) % count)
        to[i] = (2 * (float)at + 0.5f) / (float)count - 1;
}

/* Zeros, to which `source` adds; or the values themselves; or tokens, each several times. */
static void harness_set_input(const harness *h, const char *net)
{
    const int input = co_graph_find_input(h->graph, CO_FIELD_INPUT);
    const size_t limit = (size_t)co_graph_limit(h->graph, input);
    int32_t *token = h->input;

    if (harness_is_data(net))
        harness_fill_source(h->input, harness_inputs(h), 7);

    if (h->graph->var[input].dtype == CO_I32)
        for (size_t i = 0; i < harness_inputs(h); i++)
            token[i] = (int32_t)((5 * i + i / 3) % limit);
}

static co_status harness_build(harness *h, const co_shape *sample, const char *net)
{
    const harness_attr attr = {h};
    char *text, *word, *attrs;
    int x, kept;

    CO_TRY(co_config_parse(&h->config, "", 0, "case"));
    CO_TRY(co_graph_create(&h->graph));
    CO_TRY(co_graph_add_input(&x, h->graph, CO_FIELD_INPUT, sample, CO_F32));
    text = co_arena_strdup(co_config_arena(h->config), net);
    if (!text)
        return CO_E_NOMEM;
    if (strncmp(net, "embedding", strlen("embedding")) != 0 && !harness_is_data(net))
        CO_TRY(co_graph_add(&x, h->graph, &source_op, "source", &attr, &x));
    kept = x;
    while (text) {
        text = harness_next_layer(&word, &attrs, text);
        CO_TRY(harness_add_layer(&x, &kept, h, word, attrs));
    }
    if (h->graph->loss < 0)
        CO_TRY(co_graph_add_loss(&x, h->graph, &project_op, "project", &attr, x));
    CO_TRY(co_graph_finish(h->graph));
    h->target = co_calloc(harness_outputs(h), sizeof(*h->target));
    h->label = co_calloc(harness_rows(h), sizeof(*h->label));
    h->input = co_calloc(harness_inputs(h), sizeof(float));
    if (!h->target || !h->label || !h->input)
        return CO_E_NOMEM;
    harness_set_input(h, net);
    return co_store_create(&h->store, h->graph->n_store, h->graph->n_buffer);
}

co_status harness_create(harness **out, const co_shape *sample, int64_t batch, const char *net)
{
    harness *h = co_calloc(1, sizeof(*h));
    co_status st;

    if (!h)
        return CO_E_NOMEM;
    h->batch = batch;
    h->values = (co_step_values){.given.step = 9, .grad_scale = 1};
    h->sample = co_calloc((size_t)batch, sizeof(*h->sample));
    st = h->sample ? harness_build(h, sample, net) : CO_E_NOMEM;
    if (st != CO_OK) {
        harness_destroy(h);
        return st;
    }
    *out = h;
    return CO_OK;
}

void harness_destroy(harness *h)
{
    if (!h)
        return;
    co_store_destroy(h->store);
    co_graph_destroy(h->graph);
    co_config_destroy(h->config);
    co_free(h->target);
    co_free(h->label);
    co_free(h->input);
    co_free(h->sample);
    co_free(h);
}

/* --- values --- */

const co_param *harness_param(const harness *h, const char *name)
{
    for (int i = 0; i < h->graph->n_param; i++)
        if (strcmp(h->graph->param[i].name, name) == 0)
            return &h->graph->param[i];
    return NULL;
}

float *harness_values(const harness *h, const co_param *param)
{
    return (param->spec.buffer ? h->store->buffer : h->store->param) + param->offset;
}

float *harness_gradients(const harness *h, const co_param *param)
{
    return param->spec.buffer ? NULL : h->store->grad + param->offset;
}

void harness_fill(harness *h, uint64_t seed)
{
    const co_shape *scores = &h->graph->var[h->graph->output].shape;

    co_graph_init(h->graph, h->store, seed);
    for (int i = 0; i < h->graph->n_param; i++) {
        const co_param *param = &h->graph->param[i];
        const co_rng rng = {.seed = seed, .stream = CO_RNG_TEST, .item = (uint32_t)i + 1};
        float *to = harness_values(h, param);

        if (strcmp(param->name, "source.value") == 0) {
            harness_fill_source(to, param->count, seed);
        } else if (param->spec.init == CO_INIT_ZERO || param->spec.init == CO_INIT_ONE) {
            float centre = param->spec.init == CO_INIT_ONE ? 1 : 0;

            co_rng_uniform(to, &rng, 0, param->count);
            for (size_t e = 0; e < param->count; e++)
                to[e] += centre - 0.5f;
        }
    }
    for (int64_t n = 0; n < h->batch; n++)
        h->sample[n] = (uint32_t)(1000 + 13 * n);
    for (size_t i = 0; i < harness_rows(h); i++) /* of sequences some positions have no label */
        h->label[i] = scores->ndim == 3 && i % 5 == 4
                          ? -1
                          : (int32_t)((7 * (int64_t)i + 3) % scores->dim[scores->ndim - 1]);
    for (size_t e = 0; e < harness_outputs(h); e++)
        h->target[e] = (float)((5 * e + 3) % 9) / 8;
}

/* --- running --- */

co_status harness_plan(co_plan **out, harness *h, const harness_mode *mode)
{
    static const co_backend *const ref[] = {&co_backend_ref, NULL};
    const co_backend *const *from = mode->backends ? mode->backends : ref;
    const co_plan_options options = {.batch = h->batch,
                                     .training = mode->training,
                                     .backends = h->backend,
                                     .threads = mode->threads,
                                     .precision = mode->precision,
                                     .direct_convolution = mode->direct,
                                     .no_reuse = mode->no_reuse};
    size_t n = 0;

    while (from[n] && n < sizeof(h->backend) / sizeof(h->backend[0]) - 2) {
        h->backend[n] = from[n];
        n++;
    }
    h->backend[n++] = &harness_backend;
    h->backend[n] = NULL;
    return co_plan_create(out, h->graph, h->store, &options);
}

co_run harness_run(const harness *h)
{
    return (co_run){.seed = 5, .sample = h->sample, .values = &h->values};
}

co_status harness_forward(double *objective, harness *h, co_plan *plan)
{
    const co_run run = harness_run(h);
    void *label = co_plan_input(plan, CO_FIELD_LABEL);
    void *target = co_plan_input(plan, CO_FIELD_TARGET);
    double sum = 0;

    memcpy(co_plan_input(plan, CO_FIELD_INPUT), h->input, harness_inputs(h) * sizeof(float));
    if (label)
        memcpy(label, h->label, harness_rows(h) * sizeof(*h->label));
    if (target)
        memcpy(target, h->target, harness_outputs(h) * sizeof(*h->target));
    CO_TRY(co_plan_forward(plan, &run));
    for (int64_t n = 0; n < h->batch; n++)
        sum += co_plan_loss(plan)[n];
    if (objective)
        *objective = h->graph->node[h->graph->n_node - 1].op == &project_op ? h->projection : sum;
    return CO_OK;
}

static void harness_poison_gradients(const harness *h)
{
    for (int i = 0; i < h->graph->n_param; i++) {
        float *grad = harness_gradients(h, &h->graph->param[i]);

        for (size_t e = 0; grad && e < h->graph->param[i].count; e++)
            grad[e] = NAN;
    }
}

static float *harness_copy(const float *from, size_t n)
{
    float *to = co_calloc(n ? n : 1, sizeof(*to));

    if (to)
        memcpy(to, from, n * sizeof(*to));
    return to;
}

static co_status harness_execute(harness *h, co_plan *plan, bool training, bool twice)
{
    co_run run = harness_run(h);

    harness_poison_gradients(h);
    for (int i = 0; i < (twice ? 2 : 1); i++) {
        run.accumulate = i > 0;
        CO_TRY(harness_forward(NULL, h, plan));
        if (training)
            CO_TRY(co_plan_backward(plan, &run, NULL, NULL));
    }
    return CO_OK;
}

co_status harness_measure(harness_result *out, harness *h, const harness_mode *mode, bool twice)
{
    float *buffer = harness_copy(h->store->buffer, h->store->n_buffer);
    co_plan *plan = NULL;
    co_status st = buffer ? harness_plan(&plan, h, mode) : CO_E_NOMEM;

    memset(out, 0, sizeof(*out));
    if (st == CO_OK)
        st = harness_execute(h, plan, mode->training, twice);
    if (st == CO_OK) {
        out->n_out = harness_outputs(h);
        out->n_loss = (size_t)h->batch;
        out->n_grad = mode->training ? h->store->n : 0;
        out->n_buffer = h->store->n_buffer;
        out->out = harness_copy(co_plan_output(plan), out->n_out);
        out->loss = harness_copy(co_plan_loss(plan), out->n_loss);
        out->grad = harness_copy(h->store->grad, out->n_grad);
        out->buffer = harness_copy(h->store->buffer, out->n_buffer);
        if (!out->out || !out->loss || !out->grad || !out->buffer)
            st = CO_E_NOMEM;
        memcpy(h->store->buffer, buffer, h->store->n_buffer * sizeof(float));
    }
    co_plan_destroy(plan);
    co_free(buffer);
    return st;
}

void harness_result_free(harness_result *result)
{
    co_free(result->out);
    co_free(result->loss);
    co_free(result->grad);
    co_free(result->buffer);
    memset(result, 0, sizeof(*result));
}
