/* sample_lists.h - a text that lists each rank's samples. */
#ifndef CO_DATA_SAMPLE_LISTS_H
#define CO_DATA_SAMPLE_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

/*
 * Line r of `text` has the samples of rank r: numbers and inclusive ranges (10-19), separated by
 * blanks or commas. An empty line is a rank without samples; a line that begins with # is a comment
 * and does not count. No sample may occur twice.
 *
 * `order` (room for `count`) gets rank 0's samples, then rank 1's, ..., and size[r] the number of
 * each. Errors mention `name` and the line: CO_E_DATA, or CO_E_USAGE if there are not as many lines
 * as ranks.
 */
co_status co_indices_parse(uint32_t *order, uint64_t *size, const uint8_t *text, size_t n,
                           uint64_t count, int ranks, const char *name);

#endif
