/* token_file.h - a file of tokens, mapped: with llm.c's header, or bare as nanoGPT writes it. */
#ifndef CO_DATA_TOKEN_FILE_H
#define CO_DATA_TOKEN_FILE_H

#include "data/windows.h"

/* llm.c's header: 256 little-endian numbers of 4 bytes: magic, version, count of tokens, 0 ... */
#define CO_TOKEN_HEADER      ((size_t)1024)
#define CO_TOKEN_MAGIC_U16   20240520u
#define CO_TOKEN_VERSION_U16 1u
#define CO_TOKEN_MAGIC_U32   20240801u
#define CO_TOKEN_VERSION_U32 7u

/* Zero is closed. */
typedef struct co_token_file {
    void *map; /* owned */
    size_t size;
} co_token_file;

/* Whether these bytes begin as llm.c's header does, whatever comes after that. */
bool co_token_file_has_magic(const uint8_t *bytes, size_t size);
/* Find the tokens of a file in memory; `bare` is the size of a token where there is no header, 2 or
   4. CO_E_DATA for a file that is empty, cut short, or has an unknown header. `path` is kept. */
co_status co_token_file_parse(co_token_sequence *out, const uint8_t *bytes, size_t size, int bare,
                              const char *path);
/* The same of a file, which is mapped. */
co_status co_token_file_open(co_token_file *out, co_token_sequence *sequence, const char *path,
                             int bare);
void co_token_file_close(co_token_file *file);
/* Whether a file of this name is of the test split, as llm.c and nanoGPT name them: it has the word
   `val` or `test`, between characters that are no letters. */
bool co_token_file_is_test(const char *name);

#endif
