/*
 * program.c - short programs of oneDNN primitives: written while a plan is made, bound once,
 * executed at every step.
 *
 * Does not know any op.
 */
#include <stdio.h>
#include <string.h>

#include "backends/onednn/onednn.h"

#define PROGRAM_ALIGN 64
/* Products that take one core some 30 microseconds; an element that is only read and written counts
   as much as PROGRAM_ELEMENT_WORK of them. */
#define PROGRAM_SMALL_WORK   (1 << 21)
#define PROGRAM_SMALL_LINEAR (1 << 19) /* of linear layers */
#define PROGRAM_ELEMENT_WORK 16

static bool program_is_small(const co_call *call)
{
    const co_shape *weight = &call->param[0].shape;
    const bool products = call->n_param > 0 && weight->ndim > 1;
    const int64_t each = products ? co_shape_count(weight) / weight->dim[0] : PROGRAM_ELEMENT_WORK;
    const int64_t most = products && weight->ndim == 2 ? PROGRAM_SMALL_LINEAR : PROGRAM_SMALL_WORK;

    return co_shape_count(&call->out[0]->shape) < most / each;
}

co_status onednn_begin(co_call *call)
{
    onednn_self *self = call->self;
    dnnl_status_t st;

    self->small = program_is_small(call);
    (void)onednn_use_threads(call);
    self->call = call;
    st = dnnl_engine_create(&self->engine, dnnl_cpu, 0);
    if (st == dnnl_success)
        st = dnnl_stream_create(&self->stream, self->engine, dnnl_stream_default_flags);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_create(&self->attr);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_set_scratchpad_mode(self->attr, dnnl_scratchpad_mode_user);
    return onednn_check(st, call, "start");
}

static dnnl_data_type_t program_type(co_dtype dtype)
{
    return dtype == CO_BF16 ? dnnl_bf16 : dtype == CO_F16 ? dnnl_f16 : dnnl_f32;
}

static dnnl_format_tag_t program_plain_tag(int ndim)
{
    static const dnnl_format_tag_t tag[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    return tag[ndim];
}

const_dnnl_memory_desc_t onednn_plain(onednn_self *self, co_dtype dtype, int ndim,
                                      const int64_t *dim)
{
    return onednn_desc_of_tag(&self->descs, program_type(dtype), ndim, dim,
                              program_plain_tag(ndim));
}

const_dnnl_memory_desc_t onednn_any(onednn_self *self, co_dtype dtype, int ndim, const int64_t *dim)
{
    return onednn_desc_of_tag(&self->descs, program_type(dtype), ndim, dim, dnnl_format_tag_any);
}

const_dnnl_memory_desc_t onednn_any_of(onednn_self *self, const co_tensor *tensor)
{
    return onednn_any(self, tensor->dtype, tensor->shape.ndim, tensor->shape.dim);
}

bool onednn_same(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b)
{
    return dnnl_memory_desc_equal(a, b) != 0;
}

/* oneDNN's names of our formats, for images. */
static const struct {
    co_layout layout;
    dnnl_format_tag_t tag;
} program_formats[] = {
    {{.format = CO_FORMAT_PLAIN}, dnnl_abcd},
    {{.format = CO_FORMAT_CHANNEL_BLOCKS, .block = 32}, dnnl_aBcd32b},
    {{.format = CO_FORMAT_CHANNEL_BLOCKS, .block = 16}, dnnl_aBcd16b},
    {{.format = CO_FORMAT_CHANNEL_BLOCKS, .block = 8}, dnnl_aBcd8b},
    {{.format = CO_FORMAT_CHANNELS_LAST}, dnnl_acdb},
};

#define PROGRAM_FORMATS (sizeof(program_formats) / sizeof(program_formats[0]))

/* Of the layout, which is no opaque one; all but images are plain. */
static const_dnnl_memory_desc_t program_named(onednn_self *self, const co_layout *layout,
                                              const onednn_dims *x)
{
    size_t f = 0;

    while (f < PROGRAM_FORMATS && !co_layout_same(&program_formats[f].layout, layout))
        f++;
    if (x->ndims == 4 && f == PROGRAM_FORMATS && self->descs.failure == CO_OK)
        self->descs.failure =
            co_fail(CO_E_FAILED, "layer %s: oneDNN reads no such layout", self->call->name);
    return onednn_desc_of_tag(&self->descs, x->type, x->ndims, x->dim,
                              x->ndims == 4 && f < PROGRAM_FORMATS ? program_formats[f].tag
                                                                   : program_plain_tag(x->ndims));
}

onednn_operand onednn_tensor(onednn_self *self, const co_tensor *tensor)
{
    const onednn_dims x = {program_type(tensor->dtype), tensor->shape.ndim, tensor->shape.dim};
    onednn_operand out = {.base = &tensor->data};

    /* Tensors of two types may share an opaque layout. */
    if (tensor->layout.format == CO_FORMAT_OPAQUE)
        out.md = onednn_desc_of_type(&self->descs, tensor->layout.descriptor, x.type);
    else
        out.md = program_named(self, &tensor->layout, &x);
    return out;
}

const_dnnl_memory_desc_t onednn_chosen(const_dnnl_primitive_desc_t pd, int arg)
{
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
}

void onednn_set_format(onednn_self *self, co_tensor *tensor, const_dnnl_memory_desc_t md)
{
    const onednn_dims x = onednn_dims_of(md);
    const size_t names = x.ndims == 4 ? PROGRAM_FORMATS : 1;

    tensor->bytes = dnnl_memory_desc_get_size(md);
    for (size_t f = 0; f < names; f++) {
        const co_layout *layout = &program_formats[f].layout;

        if (onednn_same(md, program_named(self, layout, &x))) {
            tensor->layout = *layout;
            return;
        }
    }
    tensor->layout =
        (co_layout){.format = CO_FORMAT_OPAQUE, .owner = &co_backend_onednn, .descriptor = md};
}

void onednn_like(co_tensor *tensor, const co_tensor *other)
{
    tensor->layout = other->layout;
    tensor->bytes = other->bytes;
}

dnnl_prop_kind_t onednn_direction(const co_call *call)
{
    return call->training ? dnnl_forward_training : dnnl_forward_inference;
}

co_status onednn_described(onednn_self *self, dnnl_status_t status, const dnnl_primitive_desc_t *pd)
{
    if (status == dnnl_success)
        status = onednn_desc_own(&self->descs, *pd);
    if (self->descs.failure != CO_OK)
        return self->descs.failure;
    return onednn_check(status, self->call, "describe a primitive");
}

onednn_operand onednn_scratch(onednn_self *self, onednn_program *program,
                              const_dnnl_memory_desc_t md)
{
    const size_t bytes = dnnl_memory_desc_get_size(md);
    onednn_operand x = {md, &self->call->scratch, program->scratch};

    program->scratch += (bytes + PROGRAM_ALIGN - 1) / PROGRAM_ALIGN * PROGRAM_ALIGN;
    if (self->call->scratch_bytes < program->scratch)
        self->call->scratch_bytes = program->scratch;
    return x;
}

/* The memory object is created without an address, which bind sets. */
static co_status program_add_arg(onednn_self *self, onednn_step *step, int id,
                                 const onednn_operand *x)
{
    dnnl_exec_arg_t *arg = &step->arg[step->n_arg];

    if (step->n_arg == ONEDNN_MAX_ARG)
        return co_fail(CO_E_FAILED, "layer %s: a primitive with too many operands",
                       self->call->name);
    CO_TRY(onednn_check(dnnl_memory_create(&arg->memory, x->md, self->engine, DNNL_MEMORY_NONE),
                        self->call, "make a memory object"));
    arg->arg = id;
    step->base[step->n_arg] = x->base;
    step->offset[step->n_arg] = x->offset;
    step->n_arg++;
    return CO_OK;
}

static co_status program_take_step(onednn_step **out, const onednn_self *self,
                                   onednn_program *program)
{
    if (program->n == ONEDNN_MAX_STEP)
        return co_fail(CO_E_FAILED, "layer %s: a program with too many steps", self->call->name);
    *out = &program->step[program->n++];
    return CO_OK;
}

co_status onednn_add_step(onednn_self *self, onednn_program *program, onednn_when when,
                          const_dnnl_primitive_desc_t pd, const onednn_arg *arg, int n_arg)
{
    const_dnnl_memory_desc_t pad = onednn_chosen(pd, DNNL_ARG_SCRATCHPAD);
    onednn_step *step = NULL;

    CO_TRY(self->descs.failure);
    CO_TRY(program_take_step(&step, self, program));
    step->when = when;
    CO_TRY(
        onednn_check(dnnl_primitive_create(&step->primitive, pd), self->call, "make a primitive"));
    for (int i = 0; i < n_arg; i++)
        CO_TRY(program_add_arg(self, step, arg[i].id, arg[i].operand));
    if (dnnl_memory_desc_get_size(pad) > 0) {
        const onednn_operand x = onednn_scratch(self, program, pad);

        CO_TRY(program_add_arg(self, step, DNNL_ARG_SCRATCHPAD, &x));
    }
    return CO_OK;
}

/* The primitive attributes of a reorder that adds to its destination. */
static dnnl_status_t program_sum_attr(dnnl_primitive_attr_t *out, const onednn_self *self)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st = dnnl_primitive_attr_clone(out, self->attr);

    if (st == dnnl_success)
        st = dnnl_post_ops_create(&ops);
    if (st == dnnl_success)
        st = onednn_append_sum(ops);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_set_post_ops(*out, ops);
    dnnl_post_ops_destroy(ops);
    return st;
}

co_status onednn_add_reorder(onednn_self *self, onednn_program *program, onednn_when when,
                             const onednn_operand *from, const onednn_operand *to, bool sum)
{
    const onednn_arg arg[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    dnnl_primitive_attr_t sum_attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st = dnnl_success;

    if (sum)
        st = program_sum_attr(&sum_attr, self);
    if (st == dnnl_success)
        st = dnnl_reorder_primitive_desc_create(&pd, from->md, self->engine, to->md, self->engine,
                                                sum ? sum_attr : self->attr);
    dnnl_primitive_attr_destroy(sum_attr);
    CO_TRY(onednn_described(self, st, &pd));
    return onednn_add_step(self, program, when, pd, arg, 2);
}

co_status onednn_convert(onednn_operand *x, onednn_self *self, onednn_program *program,
                         const_dnnl_memory_desc_t md)
{
    const onednn_operand from = *x;

    if (onednn_same(x->md, md))
        return CO_OK;
    *x = onednn_scratch(self, program, md);
    return onednn_add_reorder(self, program, ONEDNN_ALWAYS, &from, x, false);
}

onednn_operand onednn_gradient(onednn_self *self, onednn_when when, const onednn_operand *store,
                               const_dnnl_memory_desc_t md)
{
    if (when == ONEDNN_OVERWRITE && onednn_same(md, store->md))
        return *store;
    return onednn_scratch(self, &self->backward, md);
}

/* A step that is not a primitive. */
static co_status program_add_rows(onednn_self *self, onednn_when when, const onednn_rows *rows,
                                  const onednn_operand *from, const onednn_operand *to)
{
    onednn_step *step = NULL;

    CO_TRY(program_take_step(&step, self, &self->backward));
    *step = (onednn_step){.when = when,
                          .rows = *rows,
                          .base = {from->base, to->base},
                          .offset = {from->offset, to->offset}};
    return CO_OK;
}

co_status onednn_put_gradient(onednn_self *self, onednn_when when, const onednn_operand *work,
                              const onednn_operand *store)
{
    onednn_rows rows;

    if (work->base == store->base)
        return CO_OK;
    if (onednn_find_rows(&rows, self, work->md, store->md))
        return program_add_rows(self, when, &rows, work, store);
    return onednn_add_reorder(self, &self->backward, when, work, store, when == ONEDNN_ACCUMULATE);
}

static co_status program_bind(const onednn_self *self, const onednn_program *program)
{
    for (int s = 0; s < program->n; s++) {
        const onednn_step *step = &program->step[s];

        for (int i = 0; i < step->n_arg; i++) {
            char *data = *step->base[i];

            CO_TRY(onednn_check(
                dnnl_memory_set_data_handle(step->arg[i].memory, data + step->offset[i]),
                self->call, "bind memory"));
        }
    }
    return CO_OK;
}

co_status onednn_bind(co_call *call)
{
    const onednn_self *self = call->self;

    CO_TRY(program_bind(self, &self->forward));
    return program_bind(self, &self->backward);
}

static co_status program_run_step(const onednn_self *self, const onednn_step *step, int threads)
{
    if (step->primitive)
        return onednn_check(
            dnnl_primitive_execute(step->primitive, self->stream, step->n_arg, step->arg),
            self->call, "run a primitive");
    onednn_run_rows(&step->rows, (float *)((char *)*step->base[1] + step->offset[1]),
                    (const float *)((char *)*step->base[0] + step->offset[0]),
                    step->when == ONEDNN_ACCUMULATE, threads);
    return CO_OK;
}

static co_status program_run(const onednn_self *self, const onednn_program *program,
                             onednn_when when)
{
    const int threads = onednn_use_threads(self->call);

    for (int s = 0; s < program->n; s++) {
        const onednn_step *step = &program->step[s];

        if (step->when & when)
            CO_TRY(program_run_step(self, step, threads));
    }
    return CO_OK;
}

co_status onednn_forward(co_call *call, const co_run *run)
{
    const onednn_self *self = call->self;

    (void)run;
    return program_run(self, &self->forward, ONEDNN_ALWAYS);
}

co_status onednn_backward(co_call *call, const co_run *run)
{
    const onednn_self *self = call->self;

    return program_run(self, &self->backward,
                       run->accumulate ? ONEDNN_ACCUMULATE : ONEDNN_OVERWRITE);
}

static void program_destroy(onednn_program *program)
{
    for (int s = 0; s < program->n; s++) {
        onednn_step *step = &program->step[s];

        for (int i = 0; i < step->n_arg; i++)
            dnnl_memory_destroy(step->arg[i].memory);
        dnnl_primitive_destroy(step->primitive);
    }
}

void onednn_fini(co_call *call)
{
    onednn_self *self = call->self;

    program_destroy(&self->forward);
    program_destroy(&self->backward);
    onednn_descs_destroy(&self->descs);
    dnnl_primitive_attr_destroy(self->attr);
    dnnl_stream_destroy(self->stream);
    dnnl_engine_destroy(self->engine);
}

/* Primitives by the names of their implementations, reorders by their number. */
void onednn_describe_call(char *out, size_t size, const co_call *call, bool backward)
{
    const onednn_self *self = call->self;
    const onednn_program *program = backward ? &self->backward : &self->forward;
    const char *loops = backward && self->back_loops ? self->back_loops : self->loops;
    size_t used = (size_t)snprintf(out, size, "%s", loops ? loops : "");
    int reorders = 0;

    for (int s = 0; s < program->n; s++) {
        dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
        const_dnnl_primitive_desc_t pd;
        const char *name = "";

        if (!(program->step[s].when & ONEDNN_OVERWRITE))
            continue;
        if (!program->step[s].primitive) {
            reorders++;
            continue;
        }
        if (dnnl_primitive_get_primitive_desc(program->step[s].primitive, &pd) != dnnl_success)
            continue;
        dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind);
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
        reorders += kind == dnnl_reorder;
        if (kind != dnnl_reorder && !strstr(out, name) && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "+" : "", name);
    }
    if (reorders && used < size)
        snprintf(out + used, size - used, "%s%dreorder", used ? "+" : "", reorders);
}
