/*
 * driver.c - run a fuzz target over given files and folders, with any compiler.
 *
 * Stands in for libFuzzer's main, so that ctest replays each corpus in every build. A crash or a
 * sanitizer's report is the verdict; so is an argument that cannot be read, or no input at all.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int driver_path(const char *path, unsigned *count);

/* A block of exactly the file's size, so that the address sanitizer sees a read past its end. */
static int driver_file(const char *path, size_t size, unsigned *count)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1);
    int status = -1;

    if (file != NULL && data != NULL && fread(data, 1, size, file) == size) {
        (void)LLVMFuzzerTestOneInput(data, size);
        *count += 1;
        status = 0;
    } else {
        fprintf(stderr, "driver: %s: %s\n", path, strerror(errno));
    }
    free(data);
    if (file != NULL)
        (void)fclose(file);
    return status;
}

static int driver_folder(const char *path, unsigned *count)
{
    struct dirent **entry = NULL;
    char name[4096];
    int n = scandir(path, &entry, NULL, alphasort);
    int status = n < 0 ? -1 : 0;

    for (int i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.') {
            (void)snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
            if (driver_path(name, count) != 0)
                status = -1;
        }
        free(entry[i]);
    }
    free(entry);
    return status;
}

static int driver_path(const char *path, unsigned *count)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        fprintf(stderr, "driver: %s: %s\n", path, strerror(errno));
        return -1;
    }
    if (S_ISDIR(info.st_mode))
        return driver_folder(path, count);
    return driver_file(path, (size_t)info.st_size, count);
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    int status = 0;

    for (int i = 1; i < argc; i++) {
        if (driver_path(argv[i], &count) != 0)
            status = 1;
    }
    printf("%s: %u inputs\n", argv[0], count);
    return count == 0 ? 1 : status;
}
