/* roof_flops.h - loops of multiply-adds for roof.c to time. */
#ifndef CO_CORE_ROOF_FLOPS_H
#define CO_CORE_ROOF_FLOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some tens of microseconds of multiply-adds; returns how many operations, two for each. What it
   reads from and adds to *sink keeps the loop from being left out. */
typedef double (*co_roof_flops_fn)(float *sink);

/* In floats, for the widest vectors of this CPU. */
co_roof_flops_fn co_roof_find_flops(void);
/* Products of BF16, added up in floats: by AMX, else AVX-512. NULL: this CPU has no units. */
co_roof_flops_fn co_roof_find_bf16_flops(void);

#endif
