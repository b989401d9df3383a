/* parts.c - when the logits of a language model are not all in memory at once (graph/parts.c), and
   what its forward pass then has to know. */
#include "device/device.h"
#include "model/model.h"
#include "tensor/values.h"

/* Of so many classes the logits are not all in memory at once: PARTS_PART of them, or those of
   PARTS_LEAST positions, with fewer of which products take longer. */
#define PARTS_LARGE 8192
#define PARTS_PART  (1 << 24)
#define PARTS_LEAST 64
#define PARTS_MOST  512

bool co_model_has_parts(const co_model *model)
{
    const co_metric_set *set = model->metrics;

    for (int i = 0; set && i < set->n; i++)
        if (!set->metric[i]->sequences) /* may read logits */
            return false;
    return model->positions && model->classes >= PARTS_LARGE && !model->decode &&
           !model->whole_logits && !model->confusion && !model->logits &&
           co_device_is_host(model->store->device);
}

int64_t co_model_logit_rows(const co_model *model)
{
    const int64_t rows = PARTS_PART / model->classes;

    if (!co_model_has_parts(model))
        return 0;
    return rows < PARTS_LEAST ? PARTS_LEAST : rows > PARTS_MOST ? PARTS_MOST : rows;
}

void co_model_announce(co_model *model, const co_batch *batch, bool accumulate)
{
    model->backward_next = true;
    model->backward_adds = accumulate;
    model->backward_samples = batch->global;
}

co_status co_model_pass_on(co_model *model, co_plan *plan)
{
    if (!model->backward_next)
        return CO_OK;
    model->backward_next = false;
    co_values_given(model->store)->samples = model->backward_samples;
    CO_TRY(co_values_send(model->store));
    co_plan_announce(plan, model->backward_adds);
    return CO_OK;
}
