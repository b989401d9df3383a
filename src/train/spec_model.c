/* spec_model.c - the network that a config describes. */
#include "model/model.h"
#include "train/spec.h"

co_status co_spec_create_model(co_model **out, const co_spec *spec, const co_shape *sample,
                               int64_t classes)
{
    const co_model_values values = {spec->model,           spec->layers, spec->loss,
                                    spec->precision_value, spec->config, spec->kernels.layers};
    const co_model_options options = {.backend = spec->backend,
                                      .direct_convolution =
                                          spec->convolution == CO_SPEC_CONVOLUTION_DIRECT,
                                      .recompute = spec->recompute,
                                      .sample = *sample,
                                      .classes = classes,
                                      .seed = (uint64_t)spec->seed};

    return co_model_create_from(out, &values, &options);
}
