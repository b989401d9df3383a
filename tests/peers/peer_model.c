/*
 * peer_model.c - Cohort's side of check_models.py: all results of one network on one batch.
 *
 *   peer_model auto|direct|dropping[,PRECISION] MODEL LOSS WEIGHTS BATCH OUT
 *
 * The first word is the config's key `convolution`, then `precision`; with `dropping` there is
 * dropout, of samples 0, 1, ... at step 0 with the seed 0. MODEL and LOSS are config text. BATCH
 * holds `input` (N, ...), values or tokens (int32), and `label` (N, or N, T; int32) or `target` (N,
 * ...). OUT gets `eval.output`, computed first, with the running statistics of WEIGHTS; then, of
 * one training step, `output`, `loss` (N), `grad.<parameter>` of the mean loss, and the running
 * statistics after it, in the form of files of weights.
 */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "graph/stored.h"
#include "model/model.h"
#include "ops/ops.h"

typedef struct peer {
    const char *const *argument;
    co_safetensors *file; /* owned: the batch */
    co_model *model;      /* owned */
    co_arena *arena;      /* owned: names, and copies of what a later step overwrites */
    co_batch batch;
    co_named_tensor *out; /* in the arena */
    size_t n_out;
} peer;

/* Disables dropout, as PyTorch draws other masks. */
static void peer_drop_nothing(const co_graph *graph)
{
    for (int i = 0; i < graph->n_node; i++) {
        void *attr = (void *)graph->node[i].attr;

        if (graph->node[i].op == &co_op_dropout || graph->node[i].op == &co_op_dropout2d)
            ((co_dropout_attr *)attr)->p = 0;
        if (graph->node[i].op == &co_op_attention)
            ((co_attention_attr *)attr)->dropout = 0;
    }
}

/* The shape of a sample. */
static co_shape peer_sample(const co_named_tensor *tensor)
{
    co_shape shape = tensor->shape;

    shape.ndim--;
    memmove(shape.dim, shape.dim + 1, (size_t)shape.ndim * sizeof(shape.dim[0]));
    return shape;
}

static co_status peer_open(peer *p)
{
    const co_named_tensor *input, *label, *target;
    const bool direct = strncmp(p->argument[0], "direct", 6) == 0;
    const char *comma = strchr(p->argument[0], ',');
    co_model_options options = {.direct_convolution = direct,
                                .precision = comma ? comma + 1 : NULL,
                                .model = p->argument[1],
                                .loss = p->argument[2],
                                .threads = 2};
    uint32_t *sample;

    CO_TRY(co_safetensors_open(&p->file, p->argument[4]));
    input = co_safetensors_find(p->file, "input");
    label = co_safetensors_find(p->file, "label");
    target = co_safetensors_find(p->file, "target");
    if (!input || (!label && !target))
        return co_fail(CO_E_DATA, "%s: no input, or no label and no target", p->argument[4]);
    options.sample = peer_sample(input);
    options.classes = 1;
    CO_TRY(co_model_create(&p->model, &options));
    p->model->whole_logits = true;
    if (strncmp(p->argument[0], "dropping", 8) != 0)
        peer_drop_nothing(p->model->graph);
    CO_TRY(co_model_load(p->model, p->argument[3]));
    p->arena = co_arena_create();
    if (!p->arena)
        return CO_E_NOMEM;
    sample = co_arena_alloc(p->arena, (size_t)input->shape.dim[0], sizeof(*sample));
    p->out = co_arena_alloc(p->arena, (size_t)p->model->graph->n_param + 3, sizeof(*p->out));
    if (!sample || !p->out)
        return CO_E_NOMEM;
    for (uint32_t n = 0; n < (uint32_t)input->shape.dim[0]; n++)
        sample[n] = n;
    p->batch = (co_batch){.count = (uint64_t)input->shape.dim[0],
                          .global = (uint64_t)input->shape.dim[0],
                          .local = (uint64_t)input->shape.dim[0],
                          .sample = sample,
                          .field = {{CO_FIELD_INPUT, input->dtype, options.sample, input->data}}};
    if (label)
        p->batch.field[1] = (co_field){CO_FIELD_LABEL, CO_I32, peer_sample(label), label->data};
    else
        p->batch.field[1] = (co_field){CO_FIELD_TARGET, CO_F32, peer_sample(target), target->data};
    return CO_OK;
}

static co_status peer_keep(peer *p, const char *name, const co_shape *shape, const float *data)
{
    const size_t bytes = (size_t)co_shape_count(shape) * sizeof(float);
    float *copy = co_arena_alloc(p->arena, bytes, 1);

    if (!copy || !name)
        return CO_E_NOMEM;
    memcpy(copy, data, bytes);
    p->out[p->n_out++] = (co_named_tensor){
        .name = name, .dtype = CO_F32, .shape = *shape, .data = copy, .bytes = bytes};
    return CO_OK;
}

static co_status peer_run(peer *p)
{
    const co_graph *graph = p->model->graph;
    const co_store *store = p->model->store;
    const co_shape scores = {2,
                             {(int64_t)co_model_rows(p->model, p->batch.count), p->model->classes}};
    const co_shape losses = {1, {(int64_t)p->batch.count}};
    co_result result;

    CO_TRY(co_model_evaluate(&result, p->model, &p->batch));
    CO_TRY(peer_keep(p, "eval.output", &scores, co_plan_output(p->model->plans[0]->plan)));
    CO_TRY(co_model_forward(&result, p->model, &p->batch));
    CO_TRY(peer_keep(p, "output", &scores, co_plan_output(p->model->last)));
    CO_TRY(peer_keep(p, "loss", &losses, co_plan_loss(p->model->last)));
    CO_TRY(co_model_backward(p->model, &p->batch, false, NULL, NULL));
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        const bool buffer = param->spec.buffer;
        const char *name = buffer ? param->name : co_arena_printf(p->arena, "grad.%s", param->name);
        float *room = co_arena_alloc(p->arena, param->count, sizeof(*room));
        co_named_tensor tensor;

        if (!room)
            return CO_E_NOMEM;
        tensor =
            co_param_stored(param, (buffer ? store->buffer : store->grad) + param->offset, room);
        CO_TRY(peer_keep(p, name, &tensor.shape, tensor.data));
    }
    return co_safetensors_write(p->argument[5], p->out, p->n_out, NULL);
}

int main(int argc, char **argv)
{
    peer p = {.argument = (const char *const *)argv + 1};
    co_status st = CO_E_USAGE;

    if (argc == 7)
        st = peer_open(&p);
    if (st == CO_OK)
        st = peer_run(&p);
    if (st != CO_OK)
        fprintf(stderr, "%s\n", argc == 7 ? co_error_message() : "six arguments");
    co_model_destroy(p.model);
    co_safetensors_close(p.file);
    co_arena_destroy(p.arena);
    return co_exit_code(st);
}
