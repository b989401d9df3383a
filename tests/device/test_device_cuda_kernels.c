/*
 * test_device_cuda_kernels.c - every kernel of src/kernels/cuda compiles, and compiled ones are
 * kept. Needs NVRTC, and no GPU.
 */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "core/mem.h"
#include "device/cuda/compile.h"
#include "folder.h"

/* Compute capabilities; with the argument `all` of every kind of GPU. */
static const int architectures[] = {75, 90, 80, 100, 120};
static size_t n_architecture = 2;

/* NULL: skipped. */
static const cuda_compiler *open_compiler(void)
{
    const cuda_compiler *rtc = NULL;

    if (cuda_open_compiler(&rtc, 13000) != CO_OK) {
        printf("skipped: %s\n", co_error_message());
        skip();
    }
    return rtc;
}

static bool is_kernels(const char *name)
{
    const char *end = strrchr(name, '.');

    return end && strcmp(end, ".cu") == 0;
}

/* Threads take files, one after another, until none is left or one has not compiled. */
typedef struct compiling {
    const cuda_compiler *rtc;
    pthread_mutex_t lock;
    /* Under the lock: */
    const cuda_source *next;
    int compiled;
    char failure[2048];
} compiling;

static const cuda_source *take_source(compiling *c)
{
    const cuda_source *source = NULL;

    pthread_mutex_lock(&c->lock);
    while (c->next->name && !source && !*c->failure) {
        source = is_kernels(c->next->name) ? c->next : NULL;
        c->next++;
    }
    pthread_mutex_unlock(&c->lock);
    return source;
}

static void *compile_sources(void *arg)
{
    const cuda_source *source;
    compiling *c = arg;

    while ((source = take_source(c)) != NULL)
        for (size_t a = 0; a < n_architecture; a++) {
            char *code = NULL;
            size_t size = 0;
            const co_status st = cuda_compile(&code, &size, c->rtc, source->name, architectures[a]);
            const bool good = st == CO_OK && size > 4 && memcmp(code, "\177ELF", 4) == 0;

            pthread_mutex_lock(&c->lock);
            c->compiled += good;
            if (!good && !*c->failure)
                snprintf(c->failure, sizeof(c->failure), "%s: %s", source->name,
                         st == CO_OK ? "its code is no ELF file" : co_error_message());
            pthread_mutex_unlock(&c->lock);
            co_free(code);
        }
    return NULL;
}

static void kernels_compile_for_architectures_without_error(void **state)
{
    compiling c = {.rtc = open_compiler(), .lock = PTHREAD_MUTEX_INITIALIZER, .next = cuda_sources};
    pthread_t other;

    (void)state;
    assert_int_equal(pthread_create(&other, NULL, compile_sources, &c), 0);
    compile_sources(&c);
    assert_int_equal(pthread_join(other, NULL), 0);
    if (*c.failure)
        fail_msg("%s", c.failure);
    assert_true(c.compiled >= 10 * (int)n_architecture && c.compiled % (int)n_architecture == 0);
}

static void kernels_for_unknown_architecture_are_refused(void **state)
{
    const cuda_compiler *rtc = open_compiler();
    char *code = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(cuda_compile(&code, &size, rtc, "kernels/cuda/vector.cu", 999), CO_E_FAILED);
    assert_non_null(strstr(co_error_message(), "sm_999"));
    assert_null(code);
}

/* The one file of the cache's folder. */
static void find_cached(char *path, size_t size)
{
    const struct dirent *entry;
    char folder_name[1000];
    struct stat st;
    DIR *dir;
    int n = 0;

    snprintf(folder_name, sizeof(folder_name), "%s/cohort", folder);
    assert_int_equal(stat(folder_name, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    dir = opendir(folder_name);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (*entry->d_name != '.') {
            snprintf(path, size, "%s/%s", folder_name, entry->d_name);
            n++;
        }
    closedir(dir);
    assert_int_equal(n, 1);
}

static void change_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_END), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_END), 0);
    fputc(byte ^ 1, file);
    fclose(file);
}

static void check_same(const char *want, size_t wanted, const cuda_compiler *rtc)
{
    char *code = NULL;
    size_t size = 0;

    assert_int_equal(cuda_compile_once(&code, &size, rtc, "kernels/cuda/matrix.cu", 90), CO_OK);
    assert_int_equal(size, wanted);
    assert_memory_equal(code, want, size);
    co_free(code);
}

static void kernels_cached_are_read_and_damaged_ones_compiled_again(void **state)
{
    const cuda_compiler *rtc = open_compiler();
    struct stat first, second;
    char path[1400], *code = NULL;
    size_t size = 0;

    (void)state;
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_int_equal(cuda_compile_once(&code, &size, rtc, "kernels/cuda/matrix.cu", 90), CO_OK);
    find_cached(path, sizeof(path));
    assert_int_equal(stat(path, &first), 0);
    check_same(code, size, rtc);
    assert_int_equal(stat(path, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino); /* read, not written anew */
    change_byte(path, -20);
    check_same(code, size, rtc);
    check_same(code, size, rtc);
    find_cached(path, sizeof(path));
    chmod(folder_path("cohort"), 0777); /* others could put code there */
    change_byte(path, -20);
    check_same(code, size, rtc);
    co_free(code);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_compile_for_architectures_without_error),
        cmocka_unit_test(kernels_for_unknown_architecture_are_refused),
        cmocka_unit_test_setup_teardown(kernels_cached_are_read_and_damaged_ones_compiled_again,
                                        folder_make, folder_remove),
    };

    if (argc > 1 && strcmp(argv[1], "all") == 0)
        n_architecture = sizeof(architectures) / sizeof(architectures[0]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
