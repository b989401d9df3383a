/*
 * export.h - write a network and its weights to files for other programs.
 */
#ifndef CO_EXPORT_EXPORT_H
#define CO_EXPORT_EXPORT_H

#include "graph/graph.h"

typedef struct co_export {
    const co_graph *graph; /* borrowed */
    co_store *store;       /* borrowed; only read */
    const char *name;      /* of the model */
    /* {key, value, ..., NULL}, stored in the file; NULL: none */
    const char *const *metadata;
} co_export;

/* Write safetensors with the names and number of tensors of torchvision's models: parameters,
   running statistics, and for each batch norm PyTorch's `num_batches_tracked`, which is 0 here. */
co_status co_export_torch(const char *path, const co_export *export);

/* Version of ONNX's operators that is written: old enough for every runtime of the last years. */
#define CO_EXPORT_OPSET 13

/* Write ONNX for inference: input "input" (batch, C, H, W) with any batch, output "output"
   (batch, F), initializers under the parameters' names, batch norm with its running statistics,
   no dropout, no loss. CO_E_UNSUPPORTED, naming the op, for one without a writer, and in a build
   without ONNX. */
co_status co_export_onnx(const char *path, const co_export *export);
/* Whether this build has ONNX. */
bool co_export_has_onnx(void);

#endif
