/* test_fs.c - files are read and written whole or not at all; the byte reader stays in bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "folder.h"

static int remove_strictly(void **state)
{
    (void)state;
    return folder_remove_with("f");
}

static co_status write_text(const char *path, const char *text)
{
    co_atomic_file *file = NULL;

    CO_TRY(co_atomic_open(&file, path));
    fputs(text, co_atomic_stream(file));
    return co_atomic_commit(file);
}

static void assert_text(const char *path, const char *text)
{
    uint8_t *bytes;
    size_t size;

    assert_int_equal(co_fs_read(&bytes, &size, path, 1000, CO_E_DATA), CO_OK);
    assert_int_equal(size, strlen(text));
    assert_string_equal((char *)bytes, text); /* NUL-terminated */
    co_free(bytes);
}

static void atomic_file_appears_whole_or_not_at_all(void **state)
{
    co_atomic_file *file;
    struct stat info;
    mode_t mask = umask(027);

    (void)state;
    assert_int_equal(co_atomic_open(&file, folder_path("f")), CO_OK);
    fputs("half", co_atomic_stream(file));
    assert_false(co_fs_exists(folder_path("f")));
    co_atomic_discard(file);
    co_atomic_discard(NULL);
    assert_int_equal(folder_count(), 0);
    assert_int_equal(write_text(folder_path("f"), "first"), CO_OK);
    assert_text(folder_path("f"), "first");
    assert_int_equal(stat(folder_path("f"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(write_text(folder_path("f"), ""), CO_OK);
    assert_text(folder_path("f"), "");
    assert_int_equal(folder_count(), 1);
    umask(mask);
}

static void *open_and_discard(void *arg)
{
    co_atomic_file *file;

    while (!atomic_load((atomic_bool *)arg)) {
        if (co_atomic_open(&file, folder_path("f")) == CO_OK)
            co_atomic_discard(file);
    }
    return NULL;
}

/* The umask is the process's: what another thread creates meanwhile must not be for everyone. */
static void atomic_leaves_the_umask_of_other_threads(void **state)
{
    const mode_t mask = umask(077);
    static atomic_bool over;
    char path[128];
    pthread_t thread;
    int open_to_all = 0;

    (void)state;
    snprintf(path, sizeof(path), "%s/g", folder);
    assert_int_equal(pthread_create(&thread, NULL, open_and_discard, &over), 0);
    for (int i = 0; i < 20000; i++) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        struct stat info = {0};

        open_to_all += fd < 0 || fstat(fd, &info) != 0 || (info.st_mode & 0777) != 0600;
        close(fd);
        unlink(path);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    umask(mask);
    assert_int_equal(open_to_all, 0);
}

static void atomic_path_without_folder_is_in_current_one(void **state)
{
    char *home = getcwd(NULL, 0);

    (void)state;
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(write_text("f", "here"), CO_OK);
    assert_int_equal(chdir(home), 0);
    assert_text(folder_path("f"), "here");
    free(home);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void atomic_full_disk_keeps_old_file(void **state)
{
    char *text = calloc(1, 20001);
    co_status st;

    (void)state;
    memset(text, 'x', 20000);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(write_text(folder_path("f"), "old"), CO_OK);
    for (rlim_t room = 0; room < 20000; room = room * 5 + 1) {
        limit_file_size(room);
        st = write_text(folder_path("f"), text);
        limit_file_size(RLIM_INFINITY);
        assert_int_equal(st, CO_E_IO);
        assert_non_null(strstr(co_error_message(), "/f: cannot write: File too large"));
        assert_int_equal(folder_count(), 1);
        assert_text(folder_path("f"), "old");
    }
    free(text);
}

/* `-o /dev/null` as root must not put a file in the device's place. */
static void atomic_pipe_is_written_and_stays(void **state)
{
    struct stat info;
    char text[8] = "";
    int fd;

    (void)state;
    assert_int_equal(mkfifo(folder_path("f"), 0600), 0);
    fd = open(folder_path("f"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write_text(folder_path("f"), "piped"), CO_OK);
    assert_int_equal(read(fd, text, sizeof(text)), 5);
    assert_string_equal(text, "piped");
    close(fd);
    assert_int_equal(stat(folder_path("f"), &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(folder_count(), 1);
}

static void atomic_unwritable_path_is_refused(void **state)
{
    (void)state;
    assert_int_equal(write_text(folder_path("no/f"), "x"), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "no/f: cannot write: No such file"));
    assert_int_equal(mkdir(folder_path("f"), 0777), 0);
    assert_int_equal(write_text(folder_path("f"), "x"), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "/f: cannot write: Is a directory"));
    assert_int_equal(folder_count(), 1);
    assert_int_equal(rmdir(folder_path("f")), 0);
}

static void fs_read_of_no_regular_file_is_refused(void **state)
{
    uint8_t *bytes = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(co_fs_read(&bytes, &size, folder_path("f"), 10, CO_E_USAGE), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "/f: No such file or directory"));
    assert_int_equal(co_fs_read(&bytes, &size, folder, 10, CO_E_DATA), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "is a folder, expected a file"));
    assert_int_equal(co_fs_read(&bytes, &size, "/dev/zero", 10, CO_E_DATA), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "is not a regular file"));
    assert_int_equal(mkfifo(folder_path("f"), 0600), 0);
    assert_int_equal(co_fs_read(&bytes, &size, folder_path("f"), 10, CO_E_DATA), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "is not a regular file")); /* without waiting */
    assert_int_equal(unlink(folder_path("f")), 0);
    assert_int_equal(write_text(folder_path("f"), "12345678901"), CO_OK);
    assert_int_equal(co_fs_read(&bytes, &size, folder_path("f"), 10, CO_E_DATA), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "11 bytes are more than the limit of 10"));
    assert_null(bytes);
    assert_int_equal(co_fs_read(&bytes, &size, folder_path("f"), 11, CO_E_DATA), CO_OK);
    co_free(bytes);
}

static void fs_mkdirs_makes_missing_parents(void **state)
{
    char path[256];

    (void)state;
    snprintf(path, sizeof(path), "%s", folder_path("a/b//c/"));
    assert_int_equal(co_fs_mkdirs(path), CO_OK);
    assert_int_equal(co_fs_mkdirs(path), CO_OK);
    assert_true(co_fs_exists(folder_path("a/b/c")));
    assert_int_equal(write_text(folder_path("a/b/c/f"), "x"), CO_OK);
    assert_int_equal(co_fs_mkdirs(folder_path("a/b/c/f")), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "/f: is not a folder"));
    assert_int_equal(co_fs_mkdirs(folder_path("a/b/c/f/g")), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "cannot make the folder: Not a directory"));
    assert_int_equal(co_fs_mkdirs(""), CO_E_IO);
    assert_int_equal(co_fs_mkdirs("/"), CO_OK);
    assert_int_equal(unlink(folder_path("a/b/c/f")), 0);
    assert_int_equal(
        rmdir(folder_path("a/b/c")) | rmdir(folder_path("a/b")) | rmdir(folder_path("a")), 0);
}

static void fs_join_of_long_path_is_refused(void **state)
{
    char path[8];

    (void)state;
    assert_int_equal(co_fs_join(path, sizeof(path), "abc", "def"), CO_OK);
    assert_string_equal(path, "abc/def");
    assert_int_equal(co_fs_join(path, sizeof(path), "abc/", "def"), CO_OK);
    assert_string_equal(path, "abc/def");
    assert_int_equal(co_fs_join(path, sizeof(path), "abc", "defg"), CO_E_USAGE);
}

static void fs_find_above_takes_the_nearest_of_three_folders(void **state)
{
    char path[512], small[8];

    (void)state;
    folder_run("mkdir -p f/a/b/c && touch f/name f/a/name");
    assert_true(co_fs_find_above(path, sizeof(path), folder_path("f/a/b/c/file"), "name"));
    assert_string_equal(path, folder_path("f/a/name"));
    assert_true(co_fs_find_above(path, sizeof(path), folder_path("f/file"), "name"));
    assert_string_equal(path, folder_path("f/name"));
    assert_false(co_fs_find_above(small, sizeof(small), folder_path("f/file"), "name"));
    folder_run("rm f/a/name");
    assert_false(co_fs_find_above(path, sizeof(path), folder_path("f/a/b/c/file"), "name"));
    assert_true(co_fs_find_above(path, sizeof(path), folder_path("f/a/b//file"), "name"));
    assert_false(co_fs_find_above(path, sizeof(path), "file", "no-such-name"));
    folder_run("rm -r f");
}

static void atomic_failed_allocation_is_an_error(void **state)
{
    uint8_t *bytes = NULL;
    size_t size;
    co_status st = CO_E_NOMEM;

    (void)state;
    for (uint64_t k = 1; st != CO_OK && k < 20; k++) {
        co_mem_fail_at(k);
        st = write_text(folder_path("f"), "x");
        co_mem_fail_at(0);
        if (st == CO_E_IO)
            assert_non_null(strstr(co_error_message(), "Cannot allocate memory"));
        else if (st != CO_OK)
            assert_int_equal(folder_count(), 0);
    }
    assert_int_equal(st, CO_OK);
    co_mem_fail_at(1);
    assert_int_equal(co_fs_read(&bytes, &size, folder_path("f"), 10, CO_E_DATA), CO_E_NOMEM);
    co_mem_fail_at(1);
    assert_int_equal(co_fs_mkdirs(folder), CO_E_NOMEM);
    co_mem_fail_at(0);
    assert_null(bytes);
}

static void reader_end_of_bytes_is_an_error(void **state)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    co_reader r = {bytes, sizeof(bytes)};
    const uint8_t *part;
    uint64_t u64;
    uint32_t u32;
    uint8_t u8;

    (void)state;
    assert_int_equal(co_reader_u64le(&u64, &r), 0);
    assert_true(u64 == 0x0807060504030201);
    assert_int_equal(co_reader_u64le(&u64, &r), -1);
    assert_int_equal(co_reader_u32be(&u32, &r), 0);
    assert_int_equal(u32, 0x090a0b0c);
    assert_int_equal(co_reader_u32be(&u32, &r), -1);
    assert_int_equal(co_reader_bytes(&part, &r, SIZE_MAX), -1);
    assert_int_equal(co_reader_bytes(&part, &r, 2), -1);
    assert_int_equal(r.left, 1);
    assert_int_equal(co_reader_u8(&u8, &r), 0);
    assert_int_equal(u8, 13);
    assert_int_equal(co_reader_u8(&u8, &r), -1);
    assert_int_equal(co_reader_bytes(&part, &r, 0), 0);
}

static void mul_size_overflow_is_an_error(void **state)
{
    size_t out = 0;

    (void)state;
    assert_int_equal(co_mul_size(&out, SIZE_MAX, 1), 0);
    assert_true(out == SIZE_MAX);
    assert_int_equal(co_mul_size(&out, SIZE_MAX / 2 + 1, 2), -1);
    assert_int_equal(co_mul_size(&out, 0, SIZE_MAX), 0);
    assert_int_equal(out, 0);
}

static co_status opens(const char *path, bool own, uint64_t max)
{
    return co_open_check(path, &(co_open_rule){.status = CO_E_DATA, .own = own, .max = max});
}

static void open_of_no_regular_file_is_refused(void **state)
{
    char *file = folder_path("f"), *other = folder_path("other");
    FILE *stream;
    uint64_t size;

    (void)state;
    assert_int_equal(write_text(file, "four"), CO_OK);
    assert_int_equal(opens(file, true, 4), CO_OK);
    assert_int_equal(opens(file, true, 3), CO_E_DATA);
    assert_int_equal(opens(file, true, 0), CO_OK);
    assert_int_equal(symlink(file, other), 0);
    assert_int_equal(opens(other, false, 4), CO_OK);
    assert_int_equal(opens(other, true, 4), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "symbolic link"));
    assert_int_equal(unlink(other), 0);
    assert_int_equal(symlink("/dev/zero", other), 0);
    assert_int_equal(opens(other, false, 0), CO_E_DATA);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_int_equal(opens(other, false, 0), CO_E_DATA); /* without waiting for a writer */
    assert_int_equal(unlink(other), 0);
    assert_int_equal(opens(other, false, 0), CO_E_DATA);
    assert_int_equal(opens(folder, false, 0), CO_E_DATA);
    assert_int_equal(co_open_stream(&stream, &size, file, &(co_open_rule){.status = CO_E_DATA}),
                     CO_OK);
    assert_int_equal(size, 4);
    fclose(stream);
    assert_null(co_open_system(file));
}

static void open_for_writing_does_not_follow_links(void **state)
{
    char *file = folder_path("f"), *other = folder_path("other");
    int fd;

    (void)state;
    assert_int_equal(write_text(file, "7\n"), CO_OK);
    assert_int_equal(co_open_fresh(&fd, file), CO_E_IO);
    assert_int_equal(co_open_append(&fd, file), CO_OK);
    close(fd);
    assert_int_equal(co_open_lock(&fd, file, folder), CO_OK);
    close(fd);
    assert_int_equal(symlink(file, other), 0);
    assert_int_equal(co_open_fresh(&fd, other), CO_E_IO);
    assert_int_equal(co_open_append(&fd, other), CO_E_IO);
    assert_int_equal(co_open_lock(&fd, other, folder), CO_E_IO);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_int_equal(co_open_append(&fd, other), CO_E_IO);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(link(file, other), 0);
    assert_int_equal(co_open_lock(&fd, other, folder), CO_E_USAGE);
    assert_int_equal(unlink(other), 0);
    assert_text(file, "7\n");
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, folder_make, remove_strictly)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(atomic_file_appears_whole_or_not_at_all),
        IN_DIR(atomic_leaves_the_umask_of_other_threads),
        IN_DIR(atomic_path_without_folder_is_in_current_one),
        IN_DIR(atomic_full_disk_keeps_old_file),
        IN_DIR(atomic_pipe_is_written_and_stays),
        IN_DIR(atomic_unwritable_path_is_refused),
        IN_DIR(fs_read_of_no_regular_file_is_refused),
        cmocka_unit_test(fs_join_of_long_path_is_refused),
        IN_DIR(fs_find_above_takes_the_nearest_of_three_folders),
        IN_DIR(fs_mkdirs_makes_missing_parents),
        IN_DIR(atomic_failed_allocation_is_an_error),
        IN_DIR(open_of_no_regular_file_is_refused),
        IN_DIR(open_for_writing_does_not_follow_links),
        cmocka_unit_test(reader_end_of_bytes_is_an_error),
        cmocka_unit_test(mul_size_overflow_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
