/*
 * parts.c - the last linear layer of a language model and its loss, a part of the positions at a
 * time: logits and their gradient are in memory for one part, never for all positions of a batch.
 *
 *   for each part:  x of the part -> logits -> loss of each position, place of its label
 *                   -> gradient of the logits, over the logits -> gradients of x and of the weight
 *
 * The steps of a part are steps of the forward pass, which run once for each part; the calls are
 * those of the layers, on fewer positions. The gradient needs what the logits were, so it is
 * computed at once where the caller has announced the backward pass; else that pass computes the
 * logits again. The last part is padded with zeros whose label is -1.
 */
#include <math.h>
#include <string.h>

#include "core/parallel.h"
#include "device/device.h"
#include "graph/plan_internal.h"

#define PARTS_MULTIPLE 8 /* parts have nearly the same number of positions, a multiple of this */

static bool parts_reads_alone(const co_graph *graph, int var)
{
    int readers = 0;

    for (int i = 0; i < graph->n_node; i++)
        for (int k = 0; k < graph->node[i].op->n_in; k++)
            readers += graph->node[i].in[k] == var;
    return readers == 1;
}

/* Its result at a position depends on the values there and on its weights alone: dropout draws by
   the sample and the place, and has no parameter; an embedding reads tokens. */
static bool parts_takes_rows(const co_op *op, int n_param)
{
    return op->along == CO_ALONG_NONE && op->n_in == 1 && op->n_out == 1 && n_param > 0 &&
           !op->indices;
}

/* A loss of labels of positions, after a layer that sees each position alone. */
bool plan_has_parts(const co_plan *plan)
{
    const co_graph *graph = plan->graph;
    const co_node *loss = &graph->node[graph->n_node - 1], *last = loss - 1;

    return plan->options.logit_rows > 0 && co_device_is_host(plan->store->device) &&
           !plan->options.decode && graph->n_node > 1 && loss->op->is_loss &&
           loss->out[0] == graph->loss && loss->op->target == CO_TARGET_LABEL &&
           graph->var[loss->in[0]].shape.ndim == 3 && loss->in[0] == graph->output &&
           last->out[0] == graph->output && parts_takes_rows(last->op, last->n_param) &&
           !last->block && !loss->block && parts_reads_alone(graph, graph->output);
}

/* Tensors of all positions, and the size of a part. */
static co_status parts_take_tensors(co_plan *plan, const co_node *last, const co_node *loss)
{
    plan_parts *parts = plan->parts;
    const co_graph *graph = plan->graph;
    const co_shape *x = &graph->var[last->in[0]].shape, each = {2, {1, x->dim[1]}};
    const int64_t all = plan->options.batch * x->dim[1], most = plan->options.logit_rows;
    const int64_t n = (all + most - 1) / most;

    parts->all = all;
    parts->length = x->dim[1];
    parts->rows = ((all + n - 1) / n + PARTS_MULTIPLE - 1) / PARTS_MULTIPLE * PARTS_MULTIPLE;
    parts->x = plan->value[last->in[0]];
    CO_TRY(plan_make_readable(&parts->x, plan, NULL, NULL));
    parts->label = plan->value[loss->in[1]];
    parts->loss = plan_new_tensor(plan, &graph->var[graph->loss].shape, CO_F32);
    parts->row_loss = plan_new_tensor(plan, &each, CO_F32);
    parts->place = plan_new_tensor(plan, &each, CO_I32);
    if (!parts->loss || !parts->row_loss || !parts->place)
        return CO_E_NOMEM;
    parts->place->pinned = true;
    plan->value[graph->loss] = parts->loss;
    if (!plan->options.training || !plan->wanted[last->in[0]])
        return CO_OK;
    parts->dx = plan_new_tensor(plan, x, parts->x->tensor.dtype);
    return parts->dx ? CO_OK : CO_E_NOMEM;
}

/* The forward steps of a part; `linear` and `entropy` are the calls but for their tensors. */
static co_status parts_compile_forward(co_plan *plan, co_call *linear, co_dtype low,
                                       co_call *entropy)
{
    plan_parts *parts = plan->parts;
    const co_tensor *x = &parts->x->tensor;
    const int64_t classes = plan->graph->var[plan->graph->output].shape.dim[2];
    const co_shape rows = {3, {1, 1, x->shape.dim[2]}}, scores = {3, {1, 1, classes}};
    const co_shape label = {2, {1, 1}}, each = {1, {1}};
    plan_tensor *in = plan_new_tensor(plan, &rows, x->dtype);
    plan_tensor *logits = plan_new_tensor(plan, &scores, low);

    parts->part_x = in;
    parts->part_label = plan_new_tensor(plan, &label, CO_I32);
    parts->part_loss = plan_new_tensor(plan, &each, CO_F32);
    if (!in || !logits || !parts->part_label || !parts->part_loss)
        return CO_E_NOMEM;
    CO_TRY(plan_cast(&in, plan, low));
    linear->in[0] = &in->tensor;
    linear->out[0] = &logits->tensor;
    CO_TRY(plan_add_call(&plan->node_call[linear->node], plan, linear));
    CO_TRY(plan_cast(&logits, plan, CO_F32));
    CO_TRY(plan_make_readable(&logits, plan, NULL, NULL));
    parts->part_logits = logits;
    entropy->in[0] = &logits->tensor;
    entropy->in[1] = &parts->part_label->tensor;
    entropy->out[0] = &parts->part_loss->tensor;
    return plan_add_call(&plan->node_call[entropy->node], plan, entropy);
}

static co_status parts_add_backward(co_plan *plan, plan_call *pc)
{
    if (!pc->kernel->backward)
        return co_fail(CO_E_UNSUPPORTED, "layer %s: the %s kernel of %s has no backward",
                       pc->call.name, pc->backend->name, pc->call.op->name);
    if (pc->call.kernel->plan_backward)
        CO_TRY(pc->call.kernel->plan_backward(&pc->call));
    return plan_add_step(plan, pc, true, 0);
}

/* The backward steps of a part. The gradient of the logits is where they were: each element is
   computed from its own. */
static co_status parts_compile_backward(co_plan *plan, plan_call *linear, plan_call *entropy)
{
    plan_parts *parts = plan->parts;
    const co_tensor *in = linear->call.in[0];
    plan_tensor *grad = plan_new_tensor(plan, &parts->part_logits->tensor.shape, CO_F32);

    if (!grad)
        return CO_E_NOMEM;
    grad->alias = parts->part_logits;
    entropy->call.grad_in[0] = &grad->tensor;
    CO_TRY(parts_add_backward(plan, entropy));
    CO_TRY(plan_cast(&grad, plan, linear->call.out[0]->dtype));
    CO_TRY(plan_make_readable(&grad, plan, linear->kernel, linear->backend));
    linear->call.grad_out[0] = &grad->tensor;
    if (!parts->dx)
        return parts_add_backward(plan, linear);
    parts->part_dx = plan_new_tensor(plan, &in->shape, in->dtype);
    if (!parts->part_dx)
        return CO_E_NOMEM;
    linear->call.grad_in[0] = &parts->part_dx->tensor;
    CO_TRY(parts_add_backward(plan, linear));
    CO_TRY(plan_cast(&parts->part_dx, plan, parts->x->tensor.dtype));
    return plan_make_readable(&parts->part_dx, plan, NULL, NULL);
}

/* The steps of a part, of a plan that has so many samples of one position. */
static co_status parts_compile(co_plan *plan, co_call *linear, co_dtype low, co_call *entropy)
{
    plan_parts *parts = plan->parts;

    parts->first = plan->n_step;
    CO_TRY(parts_compile_forward(plan, linear, low, entropy));
    parts->backward = parts->end = plan->n_step;
    if (!plan->options.training || !plan->wanted[plan->graph->output])
        return CO_OK;
    CO_TRY(parts_compile_backward(plan, plan->node_call[linear->node],
                                  plan->node_call[entropy->node]));
    parts->end = plan->n_step;
    return CO_OK;
}

co_status plan_compile_parts(co_plan *plan)
{
    const int loss = plan->graph->n_node - 1, last = loss - 1;
    const int64_t batch = plan->options.batch;
    co_call linear, entropy;
    co_dtype low, wide;
    co_status st;

    plan->parts = co_arena_alloc(plan->arena, 1, sizeof(*plan->parts));
    if (!plan->parts)
        return CO_E_NOMEM;
    CO_TRY(parts_take_tensors(plan, &plan->graph->node[last], &plan->graph->node[loss]));
    linear = plan_describe_node(&low, plan, last);
    entropy = plan_describe_node(&wide, plan, loss); /* fp32: it is a loss */
    plan->options.batch = plan->parts->rows;
    st = parts_compile(plan, &linear, low, &entropy);
    plan->options.batch = batch;
    return st;
}

/* What is copied between parts is alive in all steps of a part. */
void plan_extend_parts(const co_plan *plan)
{
    const plan_parts *parts = plan->parts;
    plan_tensor *all[] = {parts->x,           parts->dx,        parts->row_loss,
                          parts->place,       parts->part_x,    parts->part_label,
                          parts->part_logits, parts->part_loss, parts->part_dx};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        plan_life *life = all[i] ? &all[i]->life : NULL;

        if (!life || all[i]->pinned)
            continue;
        life->first = life->first < 0 || life->first > parts->first ? parts->first : life->first;
        life->last = life->last < parts->end - 1 ? parts->end - 1 : life->last;
    }
}

/* --- running --- */

static size_t parts_row_bytes(const plan_parts *parts)
{
    return parts->x->tensor.bytes / (size_t)parts->all;
}

static int64_t parts_count(const plan_parts *parts, int64_t begin)
{
    return parts->all - begin < parts->rows ? parts->all - begin : parts->rows;
}

static void parts_take(const plan_parts *parts, int64_t begin)
{
    const int64_t n = parts_count(parts, begin);
    const size_t row = parts_row_bytes(parts), bytes = (size_t)n * row;
    const int32_t *label = parts->label->tensor.data;
    int32_t *part_label = parts->part_label->tensor.data;
    char *part = parts->part_x->tensor.data;

    memcpy(part, (const char *)parts->x->tensor.data + (size_t)begin * row, bytes);
    memset(part + bytes, 0, (size_t)(parts->rows - n) * row);
    for (int64_t i = 0; i < parts->rows; i++)
        part_label[i] = i < n ? label[begin + i] : -1;
}

/* How many logits are above that of the label, or equal and of an earlier class. */
static int32_t parts_find_place(const float *logit, int32_t label, int64_t classes)
{
    const float own = label < 0 ? 0 : logit[label];
    uint32_t higher = 0; /* as wide as a float, so that the loops run in vectors */

    if (label < 0)
        return -1;
    if (isnan(own))
        return (int32_t)classes;
    for (int64_t c = 0; c < label; c++)
        higher += logit[c] >= own;
    for (int64_t c = label + 1; c < classes; c++)
        higher += logit[c] > own;
    return (int32_t)higher;
}

static void parts_collect(const co_plan *plan, int64_t begin)
{
    const plan_parts *parts = plan->parts;
    const int64_t n = parts_count(parts, begin), classes = parts->part_logits->tensor.shape.dim[2];
    const int threads = co_parallel_threads(plan->options.threads);
    const int32_t *label = parts->part_label->tensor.data;
    const float *logit = parts->part_logits->tensor.data;
    int32_t *place = (int32_t *)parts->place->tensor.data + begin;

    memcpy((float *)parts->row_loss->tensor.data + begin, parts->part_loss->tensor.data,
           (size_t)n * sizeof(float));
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < n; i++)
        place[i] = parts_find_place(logit + i * classes, label[i], classes);
}

static void parts_sum_loss(const plan_parts *parts)
{
    const float *each = parts->row_loss->tensor.data;
    float *loss = parts->loss->tensor.data;

    for (int64_t n = 0; n < parts->all / parts->length; n++) {
        double sum = 0;

        for (int64_t t = 0; t < parts->length; t++)
            sum += (double)each[n * parts->length + t];
        loss[n] = (float)(sum / (double)parts->length);
    }
}

co_status plan_run_parts(co_plan *plan, const co_run *run, bool backward)
{
    const plan_parts *parts = plan->parts;
    const size_t row = parts_row_bytes(parts);
    co_step_values values = *run->values;
    co_run part = *run;

    values.grad_scale /= (float)parts->length;
    part.values = &values;
    for (int64_t begin = 0; begin < parts->all; begin += parts->rows) {
        parts_take(parts, begin);
        for (int s = parts->first; s < parts->backward; s++)
            CO_TRY(co_plan_run_step(plan, s, &part));
        parts_collect(plan, begin);
        for (int s = parts->backward; backward && s < parts->end; s++)
            CO_TRY(co_plan_run_step(plan, s, &part));
        part.accumulate = true;
        if (backward && parts->dx)
            memcpy((char *)parts->dx->tensor.data + (size_t)begin * row,
                   parts->part_dx->tensor.data, (size_t)parts_count(parts, begin) * row);
    }
    parts_sum_loss(parts);
    return CO_OK;
}
