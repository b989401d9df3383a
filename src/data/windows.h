/*
 * windows.h - samples of a sequence of tokens: windows of `context` positions, each with the token
 * that follows it.
 *
 * Field CO_FIELD_INPUT: I32 (context) tokens. Field CO_FIELD_LABEL: I32 (context), the token after
 * each position.
 *
 * Training: windows one after another, from an offset below `context` that is drawn for each epoch
 * by (seed, epoch, sequence), so that over the epochs each token is predicted after contexts of
 * every length. At most 2 * context tokens at the ends are left out of an epoch. Test: windows from
 * the first token on; the last one ends with the sequence, and has label CO_NO_LABEL at positions
 * that are in the window before it. So each token but the first is predicted exactly once.
 *
 * A sequence is a file, or the part of one that belongs to a split; no window is in two.
 */
#ifndef CO_DATA_WINDOWS_H
#define CO_DATA_WINDOWS_H

#include <cohort/ext/dataset.h>

#define CO_NO_LABEL    (-1)
#define CO_CONTEXT_MAX (1 << 20) /* positions of a window */

typedef struct co_token_sequence {
    const void *at;   /* borrowed: tokens as unsigned integers of the machine, at any address */
    int size;         /* bytes of a token: 1, 2 or 4 */
    uint64_t count;   /* tokens */
    uint64_t first;   /* tokens before it in its file, for messages */
    const char *path; /* borrowed, for messages */
    uint64_t windows; /* set by co_token_windows_describe */
} co_token_sequence;

typedef struct co_token_windows {
    co_token_sequence *sequence; /* borrowed: (n) */
    size_t n;
    int64_t context, vocabulary;
    co_split split;
} co_token_windows;

/* Check that each sequence is longer than the context, count the windows, and describe them to the
   loader. CO_E_DATA names the file. */
co_status co_token_windows_describe(co_token_windows *windows, co_dataset_info *info);

/* Field k of window i of the training split, with the offsets of an epoch; co_dataset_ops.draw. A
   token of the vocabulary's size or more is CO_E_DATA, with file and place. */
co_status co_token_windows_draw(const co_token_windows *windows, void *out, int k, uint64_t i,
                                uint64_t seed, uint64_t epoch);
/* The same with offset 0; co_dataset_ops.field. */
co_status co_token_windows_read(const co_token_windows *windows, void *out, int k, uint64_t i);

/* The highest token, as unsigned; reads them all. */
uint32_t co_token_highest(const co_token_sequence *sequence);

/* Write how often each token below `vocabulary` occurs to `count` (vocabulary), which is zeroed by
   the caller; others are not counted. */
void co_token_count(uint64_t *count, uint32_t vocabulary, const co_token_sequence *sequence);

/* Where the test split begins in a sequence of `count` tokens. */
static inline uint64_t co_token_split(uint64_t count, double test_fraction)
{
    return (uint64_t)((double)count * (1 - test_fraction));
}

#endif
