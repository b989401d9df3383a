/*
 * driver.c - run a fuzz target over given files and folders, with any compiler.
 *
 * Stands in for libFuzzer's main, so that ctest replays each corpus in every build. A crash or a
 * sanitizer's report is the verdict; so is an argument that cannot be read, or no input at all.
 * After --mutations the inputs are damaged files, and a crash is counted: mutations.c.
 */
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A block of exactly the file's size, so that the address sanitizer sees a read past its end. */
static int driver_file(const char *path, size_t size, driver_use *use, void *context)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1);
    int status = -1;

    if (file != NULL && data != NULL && fread(data, 1, size, file) == size) {
        status = use(context, data, size);
    } else {
        fprintf(stderr, "driver: %s: %s\n", path, strerror(errno));
        free(data);
    }
    if (file != NULL)
        (void)fclose(file);
    return status;
}

static int driver_folder(const char *path, driver_use *use, void *context)
{
    struct dirent **entry = NULL;
    char name[4096];
    int n = scandir(path, &entry, NULL, alphasort);
    int status = n < 0 ? -1 : 0;

    for (int i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.') {
            (void)snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
            if (driver_files(name, use, context) != 0)
                status = -1;
        }
        free(entry[i]);
    }
    free(entry);
    return status;
}

int driver_files(const char *path, driver_use *use, void *context)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        fprintf(stderr, "driver: %s: %s\n", path, strerror(errno));
        return -1;
    }
    if (S_ISDIR(info.st_mode))
        return driver_folder(path, use, context);
    return driver_file(path, (size_t)info.st_size, use, context);
}

static int driver_replay(void *context, uint8_t *data, size_t size)
{
    unsigned *count = context;

    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    *count += 1;
    return 0;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    int status = 0;

    if (argc > 1 && strcmp(argv[1], "--mutations") == 0)
        return driver_mutations(argc - 2, argv + 2);
    for (int i = 1; i < argc; i++) {
        if (driver_files(argv[i], driver_replay, &count) != 0)
            status = 1;
    }
    printf("%s: %u inputs\n", argv[0], count);
    return count == 0 ? 1 : status;
}
