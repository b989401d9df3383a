/* sample_lists.h - a text that lists each rank's samples. */
#ifndef CO_DATA_SAMPLE_LISTS_H
#define CO_DATA_SAMPLE_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

/*
 * Line r of `text` has the samples of rank r: whole numbers and ranges (10-19: both ends
 * belong to it), parted by blanks or commas. An empty line is a rank without samples; a line that
 * begins with # is a comment and no rank. No sample may come twice.
 *
 * `order` (room for `count`) becomes rank 0's samples, then rank 1's, ..., and size[r] their
 * numbers. Errors name `name` and the line: CO_E_DATA, or CO_E_USAGE when the lines are not as
 * many as the ranks.
 */
co_status co_indices_parse(uint32_t *order, uint64_t *size, const uint8_t *text, size_t n,
                           uint64_t count, int ranks, const char *name);

#endif
