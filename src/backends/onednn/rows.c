/*
 * rows.c - a step of a program that is not a primitive of oneDNN: reorders a convolution's weight
 * gradient from blocks to the rows of the flat store, where there are loops for this machine.
 */

#include "backends/onednn/onednn.h"
#include "core/parallel.h"
#include "kernels/weights/weights.h"

bool onednn_find_rows(onednn_rows *out, const dnnl_memory_desc_t *from,
                      const dnnl_memory_desc_t *to)
{
#ifdef CO_KERNELS_X86
    const dnnl_memory_desc_t plain = onednn_plain(CO_F32, 4, to->dims);
    const dnnl_dim_t *dim = from->dims;
    dnnl_memory_desc_t blocked;

    if (from->ndims != 4 || to->ndims != 4 || from->data_type != dnnl_f32 ||
        dim[0] % WEIGHTS_BLOCK || dim[1] % WEIGHTS_BLOCK || !onednn_has(CO_ISA_AVX512))
        return false;
    (void)dnnl_memory_desc_init_by_tag(&blocked, 4, dim, dnnl_f32, dnnl_ABcd16b16a);
    *out = (onednn_rows){.blocks = dim[0] / WEIGHTS_BLOCK, .in = dim[1], .taps = dim[2] * dim[3]};
    return onednn_same(from, &blocked) && onednn_same(to, &plain);
#else
    (void)out;
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
