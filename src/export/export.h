/*
 * export.h - a network and its weights as files that other programs read.
 */
#ifndef CO_EXPORT_EXPORT_H
#define CO_EXPORT_EXPORT_H

#include "graph/graph.h"

typedef struct co_export {
    const co_graph *graph; /* borrowed */
    co_store *store;       /* borrowed; only read */
    const char *name;      /* of the model */
    /* {key, value, ..., NULL}: what a reader of the file should know; NULL: nothing */
    const char *const *metadata;
} co_export;

/* safetensors as torchvision's models name and count their tensors: parameters, running statistics,
   and for each batch norm the `num_batches_tracked` that PyTorch keeps, 0 here. */
co_status co_export_torch(const char *path, const co_export *export);

/* The version of ONNX's operators that co_export_onnx writes: old enough for every runtime of the
   last years. */
#define CO_EXPORT_OPSET 13

/* ONNX for inference: input "input" (batch, C, H, W) with any batch, output "output" (batch, F),
   initializers under the parameters' names, batch norm with its running statistics, no dropout, no
   loss. CO_E_UNSUPPORTED names an op that has no writer, and a build without ONNX. */
co_status co_export_onnx(const char *path, const co_export *export);
/* Whether this build has ONNX. */
bool co_export_has_onnx(void);

#endif
