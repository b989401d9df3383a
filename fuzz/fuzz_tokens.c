/*
 * fuzz_tokens.c - the reader of files of tokens over any bytes.
 *
 * What it accepts must hold as many tokens as it says, and each window must be in it.
 */
#include <stdlib.h>

#include "data/token_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_windows(co_token_sequence *sequence, co_split split)
{
    int32_t token[4];
    co_token_windows windows = {.sequence = sequence,
                                .n = 1,
                                .context = sizeof(token) / sizeof(token[0]),
                                .vocabulary = INT32_MAX,
                                .split = split};
    co_dataset_info info = {0};

    if (co_token_windows_describe(&windows, &info) != CO_OK)
        return;
    for (uint64_t i = 0; i < info.count; i++)
        for (int k = 0; k < 2; k++) {
            (void)co_token_windows_read(&windows, token, k, i);
            if (split == CO_SPLIT_TRAIN)
                (void)co_token_windows_draw(&windows, token, k, i, 1, i);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int bare = 2; bare <= 4; bare += 2) {
        co_token_sequence sequence;

        if (co_token_file_parse(&sequence, data, size, bare, "input") != CO_OK)
            continue;
        (void)co_token_highest(&sequence);
        check_windows(&sequence, CO_SPLIT_TRAIN);
        check_windows(&sequence, CO_SPLIT_TEST);
    }
    return 0;
}
