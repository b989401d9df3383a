/* tiles_run_amx.c - operations on tiles with AMX, for test_tiles.c. */
#include <stddef.h>

#include "core/isa.h"

#ifdef CO_KERNELS_X86
#define TILES_RUN tiles_run
#include "tiles_run.h"

tiles_run_fn tiles_run_find_amx(void)
{
    return co_isa_has(CO_ISA_AMX) ? tiles_run : NULL;
}
#else
#include "tiles_run.h"

tiles_run_fn tiles_run_find_amx(void)
{
    return NULL;
}
#endif
