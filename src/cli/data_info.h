/* data_info.h - parts of `cohort data info`. */
#ifndef CO_CLI_DATA_INFO_H
#define CO_CLI_DATA_INFO_H

#include <stdbool.h>

#include <cohort/data.h>

#define DATA_INFO_MAX_ROWS 100 /* of a table */

/* Of a field of floats over every `stride`-th sample. */
typedef struct cli_field_moments {
    uint64_t samples;
    double mean, std;        /* of finite values */
    uint64_t bad, first_bad; /* other samples, and the first of them */
    bool binary;             /* all are 0 or 1 */
} cli_field_moments;

co_status cli_data_info_field(cli_field_moments *out, const co_dataset *data, int k,
                              uint64_t stride);

/* Whether `path` is a folder with files of tokens that can be recognized: one has llm.c's header,
   or a tokenizer is beside them. */
bool cli_data_info_is_tokens(const char *path);
/* Print what is in such a folder; reads all tokens. CO_E_DATA: a damaged file, or a token that the
   tokenizer has not. */
co_status cli_data_info_tokens(const char *folder);

#endif
