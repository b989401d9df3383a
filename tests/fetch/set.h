/* set.h - the data set that tests fetch: one file of known bytes. */
#ifndef CO_TESTS_FETCH_SET_H
#define CO_TESTS_FETCH_SET_H

#include <stddef.h>
#include <stdint.h>

#include "fetch/get.h"

#define SET_SIZE 300000

extern uint8_t set_content[SET_SIZE];
extern co_catalog_file set_file; /* set.bin */
extern co_catalog_set set;
extern int set_ticks_left; /* an interrupt after so many; negative: never */

/* First of all: content and checksums. */
void set_make(void);
/* Other bytes are expected. */
void set_take_sums(const uint8_t *bytes, size_t n);
/* Its first `n` bytes as a file. */
void set_write(const char *path, size_t n);
/* To home/set. */
co_status set_fetch(const char *from);
co_status set_fetch_to(const char *to, const char *from);
size_t set_count(const char *folder);
void set_assert_none(void);
/* It is there, and nothing else; it is removed for the next. */
void set_assert_whole(void);
/* It is not, and one line says why. */
void set_assert_refused(const char *from, const char *words);

#endif
