/* set.c - the data set that tests fetch: what is there afterwards is the whole of it, or nothing.
 */
#include "set.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/sha256.h"
#include "fetch/md5.h"

static char md5[33], sha256[65];
uint8_t set_content[SET_SIZE];
co_catalog_file set_file = {"set.bin", md5, sha256, SET_SIZE + 1000};
co_catalog_set set = {.name = "set", .file = &set_file, .n = 1, .there = "set.bin"};
int set_ticks_left = -1;

static co_status set_tick(void *arg, const char *what, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)what;
    (void)total;
    if (set_ticks_left < 0 || done == 0)
        return CO_OK;
    return set_ticks_left-- > 0 ? CO_OK : co_fail(CO_E_INTERRUPTED, "interrupted");
}

void set_take_sums(const uint8_t *bytes, size_t n)
{
    co_sha256 longer;
    co_md5 hash;

    co_md5_begin(&hash);
    co_md5_add(&hash, bytes, n);
    co_md5_end(md5, &hash);
    co_sha256_begin(&longer);
    co_sha256_add(&longer, bytes, n);
    co_sha256_end(sha256, &longer);
}

void set_make(void)
{
    for (size_t i = 0; i < SET_SIZE; i++)
        set_content[i] = (uint8_t)(i * 2654435761U >> 13);
    set_take_sums(set_content, SET_SIZE);
}

void set_write(const char *path, size_t n)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(set_content, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
}

co_status set_fetch_to(const char *to, const char *from)
{
    const co_get_options options = {
        .set = &set, .folder = to, .from = from, .progress = {.tick = set_tick}};

    return co_get(&options);
}

co_status set_fetch(const char *from)
{
    return set_fetch_to("home/set", from);
}

size_t set_count(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    size_t n = 0;

    while (dir && (entry = readdir(dir)))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return n;
}

void set_assert_none(void)
{
    assert_int_equal(set_count("home"), 0);
}

void set_assert_whole(void)
{
    static uint8_t got[SET_SIZE + 1];
    FILE *in = fopen("home/set/set.bin", "rb");

    assert_non_null(in);
    assert_int_equal(fread(got, 1, sizeof(got), in), SET_SIZE);
    assert_memory_equal(got, set_content, SET_SIZE);
    fclose(in);
    assert_int_equal(set_count("home"), 1);
    assert_int_equal(set_count("home/set"), 1);
    unlink("home/set/set.bin");
    rmdir("home/set");
}

void set_assert_refused(const char *from, const char *words)
{
    assert_int_equal(set_fetch(from), CO_E_DATA);
    if (!strstr(co_error_message(), words) || strchr(co_error_message(), '\n'))
        fail_msg("%s: no '%s' in: %s", from, words, co_error_message());
    set_assert_none();
}
