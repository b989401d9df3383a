/* kernels.h - the kernels of src/kernels/cuda, and launching them. */
#ifndef CO_DEVICE_CUDA_KERNELS_H
#define CO_DEVICE_CUDA_KERNELS_H

#include <stddef.h>

#include <cohort/ext/device.h>

/* Each file, and each kernel with the file that has it. */
#define CUDA_FILES(X)                                                                              \
    X(vector)                                                                                      \
    X(squares)                                                                                     \
    X(matrix)                                                                                      \
    X(update)                                                                                      \
    X(pointwise)                                                                                   \
    X(pool)                                                                                        \
    X(rows)                                                                                        \
    X(sums)                                                                                        \
    X(batchnorm)                                                                                   \
    X(norm)                                                                                        \
    X(gemm)                                                                                        \
    X(layout)                                                                                      \
    X(attention)                                                                                   \
    X(attention_mma)                                                                               \
    X(embedding)                                                                                   \
    X(heads)                                                                                       \
    X(count)                                                                                       \
    X(roof)                                                                                        \
    X(images)

#define CUDA_KERNELS(X)                                                                            \
    X(vector, vector_swap)                                                                         \
    X(vector, vector_copy_if)                                                                      \
    X(vector, vector_copy_unless)                                                                  \
    X(vector, vector_add)                                                                          \
    X(vector, vector_scale)                                                                        \
    X(vector, vector_divide)                                                                       \
    X(vector, vector_axpby)                                                                        \
    X(vector, vector_add_difference)                                                               \
    X(vector, vector_average)                                                                      \
    X(vector, vector_drop_nonfinite)                                                               \
    X(vector, vector_max_abs)                                                                      \
    X(squares, squares_blocks)                                                                     \
    X(squares, squares_add)                                                                        \
    X(squares, squares_parts)                                                                      \
    X(squares, squares_join)                                                                       \
    X(vector, vector_round_nearest)                                                                \
    X(vector, vector_round_stochastic)                                                             \
    X(vector, vector_narrow)                                                                       \
    X(vector, vector_widen_sum)                                                                    \
    X(vector, vector_top_k)                                                                        \
    X(vector, vector_select_count)                                                                 \
    X(vector, vector_select_digit)                                                                 \
    X(vector, vector_select_parts)                                                                 \
    X(vector, vector_select_picks)                                                                 \
    X(vector, vector_gather)                                                                       \
    X(vector, vector_scatter)                                                                      \
    X(vector, vector_scatter_add)                                                                  \
    X(vector, vector_step)                                                                         \
    X(matrix, matrix_times)                                                                        \
    X(matrix, matrix_transposed_times)                                                             \
    X(matrix, matrix_add_outer)                                                                    \
    X(matrix, matrix_orthonormalize)                                                               \
    X(update, update_sgd)                                                                          \
    X(update, update_sgd_with_velocity)                                                            \
    X(update, update_moments)                                                                      \
    X(update, update_adadelta)                                                                     \
    X(update, update_lars)                                                                         \
    X(update, update_lamb_take)                                                                    \
    X(update, update_lamb_squares)                                                                 \
    X(update, update_lamb_move)                                                                    \
    X(pointwise, pointwise_add)                                                                    \
    X(pointwise, pointwise_scale)                                                                  \
    X(pointwise, pointwise_relu)                                                                   \
    X(pointwise, pointwise_relu_backward)                                                          \
    X(pointwise, pointwise_tanh)                                                                   \
    X(pointwise, pointwise_tanh_backward)                                                          \
    X(pointwise, pointwise_gelu)                                                                   \
    X(pointwise, pointwise_gelu_backward)                                                          \
    X(pointwise, pointwise_silu)                                                                   \
    X(pointwise, pointwise_silu_backward)                                                          \
    X(pointwise, pointwise_mul)                                                                    \
    X(pointwise, pointwise_dropout)                                                                \
    X(pointwise, pointwise_dropout_spans)                                                          \
    X(pointwise, pointwise_convert)                                                                \
    X(pool, pool_max)                                                                              \
    X(pool, pool_max_backward)                                                                     \
    X(pool, pool_mean)                                                                             \
    X(pool, pool_mean_backward)                                                                    \
    X(pool, pool_parts)                                                                            \
    X(pool, pool_parts_backward)                                                                   \
    X(rows, rows_log_softmax)                                                                      \
    X(rows, rows_log_softmax_backward)                                                             \
    X(rows, rows_cross_entropy)                                                                    \
    X(rows, rows_cross_entropy_backward)                                                           \
    X(rows, rows_nll)                                                                              \
    X(rows, rows_nll_backward)                                                                     \
    X(rows, rows_values)                                                                           \
    X(rows, rows_values_backward)                                                                  \
    X(sums, sums_of_channels)                                                                      \
    X(sums, sums_of_columns)                                                                       \
    X(sums, sums_totals)                                                                           \
    X(sums, sums_settle_moments)                                                                   \
    X(sums, sums_recall)                                                                           \
    X(sums, sums_settle_gradients)                                                                 \
    X(sums, sums_settle_means)                                                                     \
    X(batchnorm, batchnorm_forward)                                                                \
    X(batchnorm, batchnorm_backward)                                                               \
    X(norm, norm_layer)                                                                            \
    X(norm, norm_layer_backward)                                                                   \
    X(gemm, gemm_matrix)                                                                           \
    X(gemm, gemm_conv)                                                                             \
    X(gemm, gemm_conv_input)                                                                       \
    X(gemm, gemm_conv_weight)                                                                      \
    X(gemm, gemm_sum_parts)                                                                        \
    X(layout, layout_transpose)                                                                    \
    X(layout, layout_add_row)                                                                      \
    X(attention, attention_forward)                                                                \
    X(attention, attention_backward_queries)                                                       \
    X(attention, attention_backward_keys)                                                          \
    X(attention_mma, attention_mma_forward_bf16_64)                                                \
    X(attention_mma, attention_mma_forward_bf16_128)                                               \
    X(attention_mma, attention_mma_forward_f16_64)                                                 \
    X(attention_mma, attention_mma_forward_f16_128)                                                \
    X(attention_mma, attention_mma_backward_queries_bf16_64)                                       \
    X(attention_mma, attention_mma_backward_queries_bf16_128)                                      \
    X(attention_mma, attention_mma_backward_queries_f16_64)                                        \
    X(attention_mma, attention_mma_backward_queries_f16_128)                                       \
    X(attention_mma, attention_mma_backward_keys_bf16_64)                                          \
    X(attention_mma, attention_mma_backward_keys_bf16_128)                                         \
    X(attention_mma, attention_mma_backward_keys_f16_64)                                           \
    X(attention_mma, attention_mma_backward_keys_f16_128)                                          \
    X(embedding, embedding_rows)                                                                   \
    X(embedding, embedding_backward)                                                               \
    X(embedding, positions_add)                                                                    \
    X(embedding, positions_backward)                                                               \
    X(heads, heads_move)                                                                           \
    X(heads, heads_rotate)                                                                         \
    X(heads, heads_pad)                                                                            \
    X(rows, rows_mean)                                                                             \
    X(count, count_right)                                                                          \
    X(count, count_loss)                                                                           \
    X(count, count_metrics)                                                                        \
    X(roof, roof_draw)                                                                             \
    X(roof, roof_triad)                                                                            \
    X(roof, roof_multiply_add)                                                                     \
    X(images, images_draw)

#define CUDA_FILE_NUMBER(file) CUDA_IN_##file,
typedef enum cuda_file { CUDA_FILES(CUDA_FILE_NUMBER) CUDA_FILE_COUNT } cuda_file;

#define CUDA_KERNEL_NUMBER(file, name) CUDA_##name,
typedef enum cuda_kernel { CUDA_KERNELS(CUDA_KERNEL_NUMBER) CUDA_KERNEL_COUNT } cuda_kernel;

/* The GPU's compute capability: 90 is 9.0. */
int cuda_capability(const co_queue *queue);
/* `args` is the struct that the kernel takes, which is copied. For a kernel over `n` elements; 0:
   nothing. What fails is kept, and comes with the next fence. */
void cuda_launch(co_queue *queue, cuda_kernel kernel, size_t n, void *args);
/* The same with so many blocks, or as many as there can be; 0: nothing. */
void cuda_launch_blocks(co_queue *queue, cuda_kernel kernel, size_t blocks, void *args);

#endif
