/* roof_flops.h - loops of multiply-adds for roof.c to time. */
#ifndef CO_CORE_ROOF_FLOPS_H
#define CO_CORE_ROOF_FLOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some tens of microseconds of multiply-adds; returns the number of operations, two for each.
   Its operands come from *sink, and results go there, which keeps the compiler from removing the
   loop. */
typedef double (*co_roof_flops_fn)(float *sink);

/* In fp32, for the widest vectors of this CPU. */
co_roof_flops_fn co_roof_find_flops(void);
/* Products of BF16, added up in fp32: by AMX, else AVX-512. NULL: this CPU has no units. */
co_roof_flops_fn co_roof_find_bf16_flops(void);

#endif
