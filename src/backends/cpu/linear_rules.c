/*
 * linear_rules.c - which linear layers our own loops are the fixed choice for, before oneDNN's:
 * tables from measurements (`cohort bench kernels` with one thread, docs/kernels.md).
 */
#include "backends/cpu/linear.h"
#include "core/isa.h"

/* A layer fits a row of the table if its CPU has at least the level, its inputs are at least as
   many, and its outputs and samples at most; 0: any number. */
static const struct {
    co_isa level;
    int64_t least_in, most_out, most_samples;
} linear_rules[] = {
    /* long rows: oneDNN brings weights into blocks, and their gradients back, at every step, which
       only many samples make up for */
    {CO_ISA_BASE, 192, 0, 192},
    /* short rows: it does so in 10 to 40 us whatever the size */
    {CO_ISA_AVX2, 32, 0, 32},
    {CO_ISA_AVX512, 32, 0, 128},
    /* a network's last layer: its blocks of outputs are mostly padding; here 0.5 of the time */
    {CO_ISA_AVX2, 32, 16, 192},
};

/* Where both factors in blocks are faster than either, at the level and not above: with rows as
   long, weights as large and samples as many at least, and weights at most so large; 0: any. */
static const struct {
    co_isa level, above;
    int64_t least_in, least_weight, most_weight, least_samples;
} linear_blocks[] = {
    /* forward 0.75 to 0.95 of the time, backward even */
    {CO_ISA_AVX2, CO_ISA_AVX512, 128, 24576, 0, 64},
    /* forward 0.72 to 0.96, backward 0.89 to 0.98; with 64 samples and 50 outputs 1.3 times as
       long; larger weights were not measured */
    {CO_ISA_AVX512, CO_ISA_LEVELS, 64, 8192, 131072, 96},
};

bool linear_suits_blocks(int64_t samples, int64_t in, int64_t out)
{
    for (size_t i = 0; i < sizeof(linear_blocks) / sizeof(linear_blocks[0]); i++)
        if (co_isa_has(linear_blocks[i].level) && !co_isa_has(linear_blocks[i].above) &&
            in >= linear_blocks[i].least_in && in * out >= linear_blocks[i].least_weight &&
            (!linear_blocks[i].most_weight || in * out <= linear_blocks[i].most_weight) &&
            samples >= linear_blocks[i].least_samples)
            return true;
    return false;
}

bool linear_suits(int64_t samples, int64_t in, int64_t out, const char **why)
{
    for (size_t i = 0; i < sizeof(linear_rules) / sizeof(linear_rules[0]); i++)
        if (co_isa_has(linear_rules[i].level) && in >= linear_rules[i].least_in &&
            (!linear_rules[i].most_out || out <= linear_rules[i].most_out) &&
            samples <= linear_rules[i].most_samples)
            return true;
    *why = "its samples are many, or its rows are short";
    return false;
}
