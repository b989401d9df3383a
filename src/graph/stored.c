/* stored.c - parameters as files of weights have them: the same values, or a matrix transposed;
   with the same shape, or dimensions of 1 before it. */
#include "graph/stored.h"

#include <string.h>

#define STORED_TILE 16 /* floats of a line of cache */

co_shape co_param_stored_shape(const co_param *param)
{
    co_shape shape = param->spec.shape;

    if (param->transposed) {
        shape.dim[0] = param->spec.shape.dim[1];
        shape.dim[1] = param->spec.shape.dim[0];
    }
    for (int i = 0; i < param->ones; i++) {
        memmove(shape.dim + 1, shape.dim, (size_t)shape.ndim++ * sizeof(shape.dim[0]));
        shape.dim[0] = 1;
    }
    return shape;
}

size_t co_param_stored_room(const co_param *param)
{
    return param->transposed ? param->count : 0;
}

/* (rows, columns) to (columns, rows) */
static void stored_transpose(float *to, const float *from, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r += STORED_TILE)
        for (size_t c = 0; c < columns; c++)
            for (size_t i = r; i < rows && i < r + STORED_TILE; i++)
                to[c * rows + i] = from[i * columns + c];
}

co_named_tensor co_param_stored(const co_param *param, const float *values, float *room)
{
    const int64_t *dim = param->spec.shape.dim;

    if (param->transposed)
        stored_transpose(room, values, (size_t)dim[0], (size_t)dim[1]);
    return (co_named_tensor){.name = param->name,
                             .dtype = CO_F32,
                             .shape = co_param_stored_shape(param),
                             .data = param->transposed ? room : values,
                             .bytes = param->count * sizeof(float)};
}

void co_param_unstore(float *to, const co_param *param, const float *stored)
{
    const int64_t *dim = param->spec.shape.dim;

    if (param->transposed)
        stored_transpose(to, stored, (size_t)dim[1], (size_t)dim[0]);
    else
        memcpy(to, stored, param->count * sizeof(*to));
}
