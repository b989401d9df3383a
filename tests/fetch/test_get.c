/*
 * test_get.c - fetching a set: from good servers, from broken and hostile ones, and from folders;
 * what is there afterwards is the whole set, or nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "server.h"
#include "set.h"
#include "shell.h"

static int get_setup(void **state)
{
    /* A proxy of the machine is not for this test's own servers. */
    setenv("no_proxy", "127.0.0.1", 1);
    set_make();
    return folder_make(state) || chdir(folder);
}

static int get_teardown(void **state)
{
    return chdir("/") || folder_remove(state);
}

static void assert_fetched(server_way way)
{
    server s;

    server_start(&s, way, set_content, SET_SIZE);
    if (set_fetch(s.url) != CO_OK)
        fail_msg("way %d: %s", (int)way, co_error_message());
    server_stop(&s);
    set_assert_whole();
}

static void assert_refused(server_way way, const char *words)
{
    server s;

    server_start(&s, way, set_content, SET_SIZE);
    assert_int_equal(set_fetch(s.url), CO_E_DATA);
    server_stop(&s);
    if (!strstr(co_error_message(), words))
        fail_msg("way %d: no '%s' in: %s", (int)way, words, co_error_message());
    set_assert_none();
}

static void get_good_server_gives_whole_set(void **state)
{
    (void)state;
    assert_fetched(SERVER_GOOD);
}

static void get_broken_connection_is_continued(void **state)
{
    (void)state;
    assert_fetched(SERVER_BREAKS);
}

static void get_bad_server_leaves_nothing(void **state)
{
    (void)state;
    assert_refused(SERVER_MISSING, "the server answers 404");
    assert_refused(SERVER_CUT, "not the published");
    assert_refused(SERVER_OTHER, "not the published");
    assert_refused(SERVER_MUTE, "data set: http://127.0.0.1:");
}

static void get_hostile_server_leaves_nothing(void **state)
{
    (void)state;
    assert_refused(SERVER_ENDLESS, "sends more than the 301000 bytes");
    assert_refused(SERVER_CLAIMS, "sends more than the 301000 bytes");
    assert_refused(SERVER_LEADS_AWAY, "rotocol");
    assert_refused(SERVER_ROUND, "redirect");
}

/* As a shell completes it. */
static void get_folder_may_end_with_a_slash(void **state)
{
    (void)state;
    mkdir("mirror", 0700);
    set_write("mirror/set.bin", SET_SIZE);
    if (set_fetch_to("home/set//", "mirror") != CO_OK)
        fail_msg("%s", co_error_message());
    set_assert_whole();
    assert_int_equal(set_fetch_to("", "mirror"), CO_E_USAGE);
    unlink("mirror/set.bin");
    rmdir("mirror");
}

/* The second mirror is asked where the first has another file. */
static void get_next_mirror_is_asked(void **state)
{
    server bad, good;

    (void)state;
    server_start(&bad, SERVER_OTHER, set_content, SET_SIZE);
    server_start(&good, SERVER_GOOD, set_content, SET_SIZE);
    set.mirror[0] = bad.url;
    set.mirror[1] = good.url;
    assert_int_equal(set_fetch(NULL), CO_OK);
    server_stop(&bad);
    server_stop(&good);
    set.mirror[0] = set.mirror[1] = NULL;
    set_assert_whole();
}

/* What an interrupt has left is continued, also where the server begins again. */
static void get_interrupted_download_is_continued(void **state)
{
    static const server_way ways[] = {SERVER_GOOD, SERVER_RESTARTS};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        mkdir("home", 0700);
        mkdir("home/set.part", 0700);
        set_write("home/set.part/set.bin", SET_SIZE / 2);
        assert_fetched(ways[i]);
    }
    set_ticks_left = 0;
    mkdir("mirror", 0700);
    set_write("mirror/set.bin", SET_SIZE);
    assert_int_equal(set_fetch("mirror"), CO_E_INTERRUPTED);
    assert_int_equal(access("home/set.part", F_OK), 0);
    assert_int_not_equal(access("home/set", F_OK), 0);
    set_ticks_left = -1;
    assert_int_equal(set_fetch("mirror"), CO_OK);
    set_assert_whole();
    unlink("mirror/set.bin");
    assert_int_equal(set_fetch("mirror"), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "mirror/set.bin: No such file"));
    set_assert_none();
}

/* A header of a tar archive, then its content padded to blocks. */
static size_t put_entry(uint8_t *out, const char *name, char type, const char *link,
                        const char *text)
{
    const size_t n = strlen(text);
    static const char owner[] = "0000644\0000000000\0000000000\000"; /* after the mode */
    static const char when[] = "00000000000\000        ", magic[] = "ustar\00000";
    unsigned sum = 0;

    memset(out, 0, 512);
    snprintf((char *)out, 100, "%s", name);
    memcpy(out + 100, owner, sizeof(owner) - 1);
    snprintf((char *)out + 124, 12, "%011o", (unsigned)n & 0xffffff);
    memcpy(out + 136, when, sizeof(when) - 1);
    out[156] = (uint8_t)type;
    snprintf((char *)out + 157, 100, "%s", link);
    memcpy(out + 257, magic, sizeof(magic) - 1);
    for (int i = 0; i < 512; i++)
        sum += out[i];
    snprintf((char *)out + 148, 8, "%06o", sum);
    memset(out + 512, 0, (n + 511) / 512 * 512);
    for (size_t i = 0; i < n; i++)
        out[512 + i] = (uint8_t)text[i];
    return 512 + (n + 511) / 512 * 512;
}

/* Pack the tar by gzip as mirror/set.tgz, and expect its sums. */
static void put_archive(const uint8_t *tar, size_t n)
{
    static uint8_t packed[65536];
    FILE *file = fopen("set.tar", "wb");
    size_t size;

    assert_non_null(file);
    assert_int_equal(fwrite(tar, 1, n, file), n);
    fclose(file);
    mkdir("mirror", 0700);
    assert_int_equal(shell_run("gzip -c <set.tar >mirror/set.tgz && rm set.tar"), 0);
    file = fopen("mirror/set.tgz", "rb");
    assert_non_null(file);
    size = fread(packed, 1, sizeof(packed), file);
    fclose(file);
    set_take_sums(packed, size);
}

static void expect_unpacked(const char *name, char type, const char *link, const char *text,
                            const char *words)
{
    static uint8_t tar[65536];
    size_t n;

    memset(tar, 0, sizeof(tar));
    n = put_entry(tar, "set/", '5', "", "");
    n += put_entry(tar + n, "set/a", '0', "", "first");
    n += put_entry(tar + n, name, type, link, text);
    put_archive(tar, n + 1024);
    if (words) {
        assert_int_equal(set_fetch("mirror"), CO_E_DATA);
        if (!strstr(co_error_message(), words))
            fail_msg("%s: no '%s' in: %s", name, words, co_error_message());
        set_assert_none();
        assert_int_not_equal(access("out", F_OK), 0);
        return;
    }
    if (set_fetch("mirror") != CO_OK)
        fail_msg("%s", co_error_message());
}

static void get_archive_is_unpacked_below_its_folder(void **state)
{
    static char large[20000];
    char text[16] = "";
    FILE *in;

    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    set_file.name = "set.tgz";
    set_file.max = 100000;
    set.unpacked = 10000;
    set.there = "set";
    expect_unpacked("../out", '0', "", "x", "entry '../out' leads out of the folder");
    expect_unpacked("set/../../out", '0', "", "x", "leads out of the folder");
    expect_unpacked("/out", '0', "", "x", "leads out of the folder");
    expect_unpacked("set/link", '2', "/etc", "", "is neither a file nor a folder");
    expect_unpacked("set/hard", '1', "set/a", "", "is a link");
    expect_unpacked("set/pipe", '6', "", "", "is neither a file nor a folder");
    expect_unpacked("set/a", '0', "", "twice", "entry 'set/a' is there twice");
    expect_unpacked("set/large", '0', "", large, "unpacks to more than the 10000 bytes");
    set.there = "other";
    expect_unpacked("set/b", '0', "", "second", "has no other in it");
    set.there = "set";
    expect_unpacked("set/b", '0', "", "second", NULL);
    in = fopen("home/set/set/b", "r");
    assert_non_null(in);
    assert_non_null(fgets(text, sizeof(text), in));
    fclose(in);
    assert_string_equal(text, "second");
    assert_int_equal(set_count("home"), 1);
    assert_int_equal(set_count("home/set"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_good_server_gives_whole_set),
        cmocka_unit_test(get_broken_connection_is_continued),
        cmocka_unit_test(get_bad_server_leaves_nothing),
        cmocka_unit_test(get_hostile_server_leaves_nothing),
        cmocka_unit_test(get_folder_may_end_with_a_slash),
        cmocka_unit_test(get_next_mirror_is_asked),
        cmocka_unit_test(get_interrupted_download_is_continued),
        cmocka_unit_test(get_archive_is_unpacked_below_its_folder),
    };

    return cmocka_run_group_tests_name("fetch_get", tests, get_setup, get_teardown);
}
