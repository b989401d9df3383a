/* files.c - see files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/files.h"

static char files_folder[] = "/tmp/cohort-data-XXXXXX";

int files_setup(void **state)
{
    (void)state;
    return mkdtemp(files_folder) ? 0 : -1;
}

int files_teardown(void **state)
{
    DIR *folder = opendir(files_folder);
    struct dirent *entry;

    (void)state;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            files_remove(entry->d_name);
    if (folder)
        closedir(folder);
    return rmdir(files_folder);
}

const char *files_path(const char *name)
{
    static char path[2][512];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", files_folder, name);
    return path[turn];
}

void files_write(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(files_path(name), "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void files_remove(const char *name)
{
    (void)remove(files_path(name));
}

static size_t files_put_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
    return 4;
}

size_t files_idx(uint8_t *out, int ndim, const uint32_t *dim, uint8_t (*fill)(size_t i))
{
    size_t used = files_put_u32(out, 0x800 + (uint32_t)ndim), count = 1;

    for (int i = 0; i < ndim; i++) {
        used += files_put_u32(out + used, dim[i]);
        count *= dim[i];
    }
    for (size_t i = 0; i < count; i++)
        out[used++] = fill(i);
    return used;
}

size_t files_gzip(uint8_t *out, const uint8_t *bytes, size_t size)
{
    struct libdeflate_compressor *gzip = libdeflate_alloc_compressor(6);
    size_t packed;

    assert_non_null(gzip);
    packed = libdeflate_gzip_compress(gzip, bytes, size, out, size + 100);
    libdeflate_free_compressor(gzip);
    assert_true(packed > 0);
    return packed;
}

const char *files_real(const char *name)
{
    static char path[1024];
    const char *root = getenv("COHORT_DATA");
    struct stat info;

    snprintf(path, sizeof(path), "%s/%s", root ? root : FILES_SOURCE_DIR "/../shared/data", name);
    return stat(path, &info) == 0 ? path : NULL;
}
