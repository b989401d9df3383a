/* data_info.h - parts of `cohort data info`. */
#ifndef CO_CLI_DATA_INFO_H
#define CO_CLI_DATA_INFO_H

#include <stdbool.h>

#include <cohort/status.h>

#define DATA_INFO_MAX_ROWS 100 /* of a table */

/* Whether `path` is a folder with files of tokens that can be recognized: one has llm.c's header,
   or a tokenizer is beside them. */
bool cli_data_info_is_tokens(const char *path);
/* Print what is in such a folder; reads all tokens. CO_E_DATA: a damaged file, or a token that the
   tokenizer has not. */
co_status cli_data_info_tokens(const char *folder);

#endif
