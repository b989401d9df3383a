/* ops_laws.h - the operator table on any device, against the reference kernels on the host. */
#ifndef TESTS_DEVICE_OPS_LAWS_H
#define TESTS_DEVICE_OPS_LAWS_H

#include <cohort/ext/kernel.h>

#include "ops/cases.h"

typedef struct ops_way {
    const co_backend *const *backends; /* of the device, with kernels for the test ops in use */
    const char *loss;                  /* ends networks without a loss; NULL: the harness's */
    const char *const *with;           /* words of the only cases that are wanted; NULL: all */
    /* What is allowed, as a part of a tensor's largest value; 0: the same bits. */
    float tolerance, half_tolerance;
    bool all_half; /* every case with both types of 16 bits, and not only some with BF16 */
} ops_way;

/* Every case: outputs, losses, gradients added up over two passes, and running statistics, in
   evaluation, in training, and of some cases with tensors of 16 bits. Returns how many. */
int ops_check_table(co_device *device, const ops_way *way);
/* One of them, or of a test's own; `half`: with tensors of 16 bits, too. */
void ops_check_case(co_device *device, const ops_case *c, const ops_way *way, bool half);
/* The steps of its training with tensors of 16 bits, but for casts: "linear+gelu" where
   an op is fused, "linear<gelu" where the gradient goes through one that the call before has,
   "mse_loss of 16 bits" where the loss reads them. */
void ops_write_steps(char *out, size_t size, co_device *device, const ops_case *c,
                     const ops_way *way);
/* Whether one pass of it with BF16 leaves gradients of filters (parameters of four dimensions) that
   were rounded to it. */
bool ops_rounds_filters(co_device *device, const ops_case *c, const ops_way *way);
/* The kernel that the op gets there, of those of its backend. */
void ops_write_kernel(char *out, size_t size, co_device *device, const ops_case *c,
                      const ops_way *way, const char *op);

#endif
