/* stored.h - the form that a parameter has in files of weights. */
#ifndef CO_GRAPH_STORED_H
#define CO_GRAPH_STORED_H

#include <cohort/safetensors.h>

#include "graph/graph.h"

/* Shape of its tensor in files. */
co_shape co_param_stored_shape(const co_param *param);
/* Elements of memory that co_param_stored needs: 0 if a file has the values as they are. */
size_t co_param_stored_room(const co_param *param);
/* The tensor of a file, named like the parameter, for its values; its data are these, or a copy in
   `room` in the order of files. */
co_named_tensor co_param_stored(const co_param *param, const float *values, float *room);
/* Values of a parameter, `to`, from those of its tensor in a file. */
void co_param_unstore(float *to, const co_param *param, const float *stored);

#endif
