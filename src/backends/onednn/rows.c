/*
 * rows.c - a step of a program that is not a primitive of oneDNN: reorders a convolution's weight
 * gradient from blocks to the rows of the flat store, where there are loops for this machine.
 */

#include "backends/onednn/onednn.h"
#include "core/parallel.h"
#include "kernels/weights/weights.h"

bool onednn_find_rows(onednn_rows *out, onednn_self *self, const_dnnl_memory_desc_t from,
                      const_dnnl_memory_desc_t to)
{
#ifdef CO_KERNELS_X86
    const onednn_dims x = onednn_dims_of(from);
    const int64_t *dim = x.dim;

    if (x.ndims != 4 || onednn_dims_of(to).ndims != 4 || x.type != dnnl_f32 ||
        dim[0] % WEIGHTS_BLOCK || dim[1] % WEIGHTS_BLOCK || !onednn_has(CO_ISA_AVX512))
        return false;
    *out = (onednn_rows){.blocks = dim[0] / WEIGHTS_BLOCK, .in = dim[1], .taps = dim[2] * dim[3]};
    return onednn_same(from, onednn_desc_of_tag(&self->descs, dnnl_f32, 4, dim, dnnl_ABcd16b16a)) &&
           onednn_same(to, onednn_plain(self, CO_F32, 4, dim));
#else
    (void)out;
    (void)self;
    (void)from;
    (void)to;
    return false;
#endif
}

void onednn_run_rows(const onednn_rows *rows, float *to, const float *from, bool add, int threads)
{
#ifdef CO_KERNELS_X86
    const int64_t block = WEIGHTS_BLOCK * rows->in * rows->taps;

    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < rows->blocks; b++)
        weights_to_rows_avx512(to + b * block, from + b * block, rows->in, rows->taps, add);
#else
    (void)rows;
    (void)to;
    (void)from;
    (void)add;
    (void)threads;
#endif
}
