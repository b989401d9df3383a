/*
 * driver.h - what the programs of fuzz targets without libFuzzer are made of.
 */
#ifndef FUZZ_DRIVER_H
#define FUZZ_DRIVER_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is done with a file, in a block of exactly its size that `use` takes over. 0, or -1. */
typedef int driver_use(void *context, uint8_t *data, size_t size);

/* Every file below `path`, in the order of names; those that begin with "." are left out. */
int driver_files(const char *path, driver_use *use, void *context);

/* `PROGRAM --mutations NAME FILES SEED SECONDS FOLDER CORPUS`: mutations.c. */
int driver_mutations(int argc, char **argv);

#endif
