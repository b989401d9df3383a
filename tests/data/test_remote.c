/* test_remote.c - shards of a web server have the samples of local ones, whatever the server and
   the cache go through; and what is wrong with one is said with its address. */
#include "folder.h"

#include <cohort/data.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/mem.h"
#include "data/data.h"
#include "data/shard_set.h"
#include "data/shard_write.h"
#include "fetch/range.h"
#include "folder_server.h"
#include "shell.h"
#include "waits.h"

enum { SAMPLES = 400, SHARDS = 4, BLOCK = 256 << 10 };

static folder_server *server;

static co_status tick(void *arg)
{
    (void)arg;
    return CO_OK;
}

/* About 1.6 MB, so that a shard has two blocks. */
static void make_shards(const char *to, int seed, bool packed)
{
    char text[160];
    co_dataset *data;
    co_shard_writing writing = {.folder = folder_path(to),
                                .prefix = "train",
                                .shards = SHARDS,
                                .packed = packed,
                                .tick = tick};

    snprintf(text, sizeof(text),
             "{name: synthetic, shape: [3, 36, 36], samples: %d, classes: 4, seed: %d}", SAMPLES,
             seed);
    assert_int_equal(co_dataset_open(&data, text, CO_SPLIT_TRAIN), CO_OK);
    writing.data = data;
    assert_int_equal(mkdir(folder_path(to), 0700), 0);
    if (co_shard_write(&writing) != CO_OK)
        fail_msg("%s", co_error_message());
    co_dataset_destroy(data);
}

static int make(void **state)
{
    static const char *const proxies[] = {"http_proxy", "all_proxy", "ALL_PROXY"};

    if (folder_make(state) != 0)
        return -1;
    for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
        unsetenv(proxies[i]);
    make_shards("set", 1, false);
    make_shards("other", 2, false);
    make_shards("packs", 1, true);
    server = folder_server_start(folder);
    return 0;
}

static int end(void **state)
{
    folder_server_stop(server);
    return folder_remove(state);
}

/* An empty cache and a good server. */
static int begin(void **state)
{
    (void)state;
    folder_run("rm -rf cache");
    server->fail_every = 0;
    server->whole = false;
    server->requests = server->failed = 0;
    server->bytes = 0;
    return 0;
}

static bool is_packed(const char *name)
{
    return strstr(name, "packs") != NULL;
}

static co_status open_status(co_shard_set *out, const char *name, uint64_t limit)
{
    const co_shard_set_options options = {.path = server->url,
                                          .split = name,
                                          .packed = is_packed(name),
                                          .prefetch = 3,
                                          .label = "label",
                                          .cache = folder_path("cache"),
                                          .limit = limit,
                                          .retry_s = 20};
    const co_status st = co_shard_set_open(out, &options);

    if (st != CO_OK)
        co_shard_set_close(out);
    return st;
}

static void open_remote(co_shard_set *out, const char *name, uint64_t limit)
{
    if (open_status(out, name, limit) != CO_OK)
        fail_msg("%s", co_error_message());
}

/* Sample by sample in an order with jumps; from `first` on, in steps. */
static bool same_samples(const co_shard_set *a, const char *name, uint64_t first, uint64_t step)
{
    const co_shard_set_options options = {
        .path = folder, .split = name, .packed = is_packed(name), .label = "label"};
    co_buffer one = {0}, other = {0};
    co_shard_set b;
    bool same = co_shard_set_open(&b, &options) == CO_OK;

    for (uint64_t i = first; i < SAMPLES && same; i += step) {
        const uint64_t k = i * 151 % SAMPLES;
        co_bytes x, y;

        same = co_shard_set_read(&x, a, &one, k) == CO_OK &&
               co_shard_set_read(&y, &b, &other, k) == CO_OK && x.n == y.n &&
               memcmp(x.at, y.at, x.n) == 0;
    }
    if (!same)
        print_error("%s\n", co_error_message());
    co_buffer_free(&one);
    co_buffer_free(&other);
    co_shard_set_close(&b);
    return same;
}

static uint64_t shard_bytes(const co_shard_set *set)
{
    uint64_t all = 0;

    for (uint32_t k = 0; k < set->index.shards; k++)
        all += co_shard_index_shard_size(&set->index, k);
    return all;
}

static void remote_cache_fetches_each_block_once(void **state)
{
    co_shard_set set;
    uint64_t index;
    int requests;

    (void)state;
    open_remote(&set, "set", 1 << 30);
    index = server->bytes;
    assert_true(same_samples(&set, "set", 0, 1));
    assert_int_equal(server->bytes - index, shard_bytes(&set));
    co_shard_set_close(&set);
    requests = server->requests;
    open_remote(&set, "set", 1 << 30);
    assert_true(same_samples(&set, "set", 0, 1));
    assert_int_equal(server->requests - requests, 1); /* the head of the index */
    co_shard_set_close(&set);
}

/* It is the same address, to a server and in the cache. */
static void remote_address_may_end_with_a_slash(void **state)
{
    const size_t n = strlen(server->url);
    co_shard_set set;
    uint64_t bytes;

    (void)state;
    open_remote(&set, "set", 1 << 30);
    assert_true(same_samples(&set, "set", 0, 1));
    co_shard_set_close(&set);
    bytes = server->bytes;
    stpcpy(server->url + n, "/");
    open_remote(&set, "set", 1 << 30);
    server->url[n] = '\0';
    assert_null(strstr(set.root + n, "//"));
    assert_true(same_samples(&set, "set", 0, 1));
    assert_int_equal(server->bytes - bytes, CO_SHARD_HEAD);
    co_shard_set_close(&set);
}

static void expect_read(const co_shard_set *set, uint64_t i, co_status expected, const char *words)
{
    co_buffer buffer = {0};
    co_bytes bytes;

    assert_int_equal(co_shard_set_read(&bytes, set, &buffer, i), expected);
    if (!strstr(co_error_message(), words) || !strstr(co_error_message(), server->url))
        fail_msg("'%s' does not say '%s' and the address", co_error_message(), words);
    co_buffer_free(&buffer);
}

/* Packed files, local and remote, have the samples of tar files' source; each block comes once. */
static void remote_packs_are_fetched_once_and_verified(void **state)
{
    co_buffer buffer = {0};
    co_shard_set set;
    co_bytes bytes;
    uint64_t index;

    (void)state;
    open_remote(&set, "packs", 1 << 30);
    index = server->bytes;
    assert_true(same_samples(&set, "packs", 0, 1));
    assert_int_in_range(server->bytes - index, 1, shard_bytes(&set));
    assert_int_equal(co_shard_set_read(&bytes, &set, &buffer, 7), CO_OK);
    assert_null(buffer.at); /* in place */
    co_shard_set_close(&set);
    folder_run("for f in cache/*/*.blocks; do printf XXXX | dd of=$f bs=1 seek=9000 conv=notrunc "
               "2>/dev/null; done");
    open_remote(&set, "packs", 1 << 30);
    assert_true(same_samples(&set, "packs", 0, 1));
    co_shard_set_close(&set);
    co_buffer_free(&buffer);
}

static void remote_pack_shard_that_goes_is_named(void **state)
{
    co_shard_set set;

    (void)state;
    folder_run("rm -rf odd-packs && cp -r packs odd-packs");
    open_remote(&set, "odd-packs", 1 << 30);
    folder_run(
        "rm odd-packs/train-000000.pack && truncate -s 4096 odd-packs/train-000001.pack && tr A-M "
        "N-Z <packs/train-000002.pack >odd-packs/train-000002.pack");
    expect_read(&set, 0, CO_E_IO, "train-000000.pack: the server answers 404");
    expect_read(&set, 101, CO_E_IO, "train-000001.pack: has 4096 bytes, and had");
    expect_read(&set, 250, CO_E_DATA, "train-000002.pack: sample 250: its checksum is not");
    co_shard_set_close(&set);
}

static void expect_all(const co_shard_set *set)
{
    uint32_t sample[SAMPLES];

    for (uint32_t i = 0; i < SAMPLES; i++)
        sample[i] = i * 151 % SAMPLES;
    (void)co_shard_set_expect(set, sample, SAMPLES);
}

/* What is expected is fetched before anybody reads it, and once. */
static void remote_expected_samples_are_fetched_ahead(void **state)
{
    co_shard_set set;
    uint64_t index;

    (void)state;
    open_remote(&set, "packs", 1 << 30);
    index = server->bytes;
    expect_all(&set);
    for (const uint64_t start = co_clock_ns(); server->bytes - index < shard_bytes(&set);)
        assert_true(waits_more(start));
    assert_true(same_samples(&set, "packs", 0, 1));
    assert_int_equal(server->bytes - index, shard_bytes(&set));
    co_shard_set_close(&set);
}

/* What was not fetched ahead is left to who reads. */
static void remote_failing_server_and_full_cache_leave_it_to_readers(void **state)
{
    co_shard_set set;

    (void)state;
    server->fail_every = 3;
    open_remote(&set, "packs", 1 << 30);
    expect_all(&set);
    assert_true(same_samples(&set, "packs", 0, 1));
    co_shard_set_close(&set); /* while it is still fetching, or not */
    server->fail_every = 0;
    folder_run("rm -rf cache");
    open_remote(&set, "packs", 2 * BLOCK + SHARDS * 65536);
    expect_all(&set);
    assert_true(same_samples(&set, "packs", 0, 7));
    co_shard_set_close(&set);
}

/* Two that were forked after the set was opened and used, as ranks are, and two that open it
   themselves; one of each fetches ahead. */
static void remote_processes_share_a_cache(void **state)
{
    const uint32_t sample = 0;
    co_shard_set set;
    pid_t child[4];

    (void)state;
    open_remote(&set, "set", 1 << 30);
    server->bytes = 0;
    assert_true(co_shard_set_expect(&set, &sample, 1)); /* starts threads, which children lack */
    assert_true(co_shard_set_expect(&set, NULL, 0));
    for (int i = 0; i < 4; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            co_shard_set own, *used = i >= 2 ? &own : &set;

            if (i >= 2)
                open_remote(&own, "set", 1 << 30);
            if (i % 2)
                expect_all(used);
            _exit(same_samples(used, "set", (uint64_t)i, 1) ? 0 : 1);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;

        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    /* Once, but for heads of the index and a block that was given up. */
    assert_int_in_range(server->bytes, shard_bytes(&set), shard_bytes(&set) + 2 * 128 + BLOCK);
    co_shard_set_close(&set);
}

static void remote_failing_server_changes_nothing(void **state)
{
    co_shard_set set;

    (void)state;
    server->fail_every = 3;
    open_remote(&set, "set", 1 << 30);
    assert_true(same_samples(&set, "set", 0, 1));
    assert_true(server->failed > 3);
    co_shard_set_close(&set);
}

static uint64_t kept_bytes(void)
{
    char line[64];

    assert_int_equal(shell_read(line, sizeof(line), "du -s --block-size=1 %s/cache", folder), 0);
    return strtoull(line, NULL, 10);
}

/* What does not fit is fetched alone, each time. */
static void remote_full_cache_keeps_its_limit(void **state)
{
    const uint64_t limit = 4 * BLOCK + SHARDS * 65536;
    co_shard_set set;
    uint64_t bytes;

    (void)state;
    open_remote(&set, "set", limit);
    assert_true(same_samples(&set, "set", 0, 7));
    bytes = server->bytes;
    assert_true(same_samples(&set, "set", 0, 7));
    assert_true(server->bytes > bytes && server->bytes - bytes < shard_bytes(&set) / 2);
    assert_int_in_range(kept_bytes(), BLOCK, limit + SHARDS * 65536 + 65536);
    co_shard_set_close(&set);
}

static int kept_sets(void)
{
    char n[16];

    shell_read(n, sizeof(n), "ls %s/cache | grep -c -x '[0-9a-f]*'", folder);
    assert_true(n[0] >= '0' && n[0] <= '9');
    return atoi(n);
}

static void remote_idle_set_makes_room(void **state)
{
    co_shard_set set, other;
    uint64_t limit;

    (void)state;
    open_remote(&set, "set", 1 << 30);
    assert_true(same_samples(&set, "set", 0, 1));
    limit = shard_bytes(&set) + shard_bytes(&set) / 2;
    open_remote(&other, "other", limit);
    assert_int_equal(kept_sets(), 2); /* the first one is in use */
    co_shard_set_close(&other);
    co_shard_set_close(&set);
    open_remote(&other, "other", limit);
    assert_int_equal(kept_sets(), 1);
    assert_true(same_samples(&other, "other", 0, 1));
    co_shard_set_close(&other);
}

static void remote_damaged_cache_is_fetched_again(void **state)
{
    co_shard_set set;

    (void)state;
    open_remote(&set, "set", 1 << 30);
    assert_true(same_samples(&set, "set", 0, 1));
    co_shard_set_close(&set);
    folder_run("for f in cache/*/*.blocks; do printf XXXX | dd of=$f bs=1 seek=9000 conv=notrunc "
               "2>/dev/null; done");
    open_remote(&set, "set", 1 << 30);
    assert_true(same_samples(&set, "set", 0, 1));
    assert_true(same_samples(&set, "set", 0, 1));
    co_shard_set_close(&set);
    folder_run(
        "for f in cache/*/index; do printf X | dd of=$f bs=1 seek=300 conv=notrunc 2>/dev/null; "
        "done");
    open_remote(&set, "set", 1 << 30);
    assert_true(same_samples(&set, "set", 0, 1));
    co_shard_set_close(&set);
}

static void remote_cache_open_to_others_is_refused(void **state)
{
    co_shard_set set;

    (void)state;
    folder_run("mkdir cache && chmod 755 cache");
    assert_int_equal(open_status(&set, "set", 1 << 30), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "cache: belongs to another user, or others may"));
}

static void remote_shard_that_goes_is_named(void **state)
{
    co_shard_set set;

    (void)state;
    folder_run("rm -rf odd && cp -r set odd");
    open_remote(&set, "odd", 1 << 30);
    folder_run("rm odd/train-000000.tar && truncate -s 4096 odd/train-000001.tar && tr A-M N-Z "
               "<set/train-000002.tar >odd/train-000002.tar");
    expect_read(&set, 0, CO_E_IO, "train-000000.tar: the server answers 404");
    expect_read(&set, 101, CO_E_IO, "train-000001.tar: has 4096 bytes, and had");
    expect_read(&set, 250, CO_E_DATA, "train-000002.tar: 000000250.png: its checksum is not");
    server->whole = true;
    expect_read(&set, 399, CO_E_IO, "train-000003.tar: the server sends the whole file");
    co_shard_set_close(&set);
}

static void remote_set_without_index_is_refused(void **state)
{
    co_shard_set set;

    (void)state;
    assert_int_equal(open_status(&set, "none", 1 << 30), CO_E_DATA);
    assert_non_null(
        strstr(co_error_message(), "none/shards.index: the server answers 404; shards"));
    assert_int_equal(open_status(&set, "train-{0..3}.tar", 1 << 30), CO_E_USAGE);
    folder_run("cp -r set odd2 && printf X | dd of=odd2/shards.index bs=1 seek=13 conv=notrunc "
               "2>/dev/null");
    assert_int_equal(open_status(&set, "odd2", 1 << 30), CO_E_DATA);
    folder_run("rm -r odd2 && cp -r set odd2 && printf X | dd of=odd2/shards.index bs=1 seek=900 "
               "conv=notrunc 2>/dev/null");
    assert_int_equal(open_status(&set, "odd2", 1 << 30), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "odd2/shards.index: its checksum is wrong"));
}

/* At once: no other answer would come. */
static void remote_index_cut_short_is_refused(void **state)
{
    static const int sizes[] = {40, 0};
    co_shard_set set;
    char line[64];

    (void)state;
    folder_run("rm -rf odd && cp -r set odd");
    for (size_t i = 0; i < 2; i++) {
        const int before = atomic_load(&server->requests);

        snprintf(line, sizeof(line), "truncate -s %d odd/shards.index", sizes[i]);
        folder_run(line);
        assert_int_equal(open_status(&set, "odd", 1 << 30), CO_E_IO);
        assert_non_null(strstr(co_error_message(), "odd/shards.index: has fewer than 128 bytes"));
        assert_int_equal(atomic_load(&server->requests), before + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(remote_cache_fetches_each_block_once, begin),
        cmocka_unit_test_setup(remote_address_may_end_with_a_slash, begin),
        cmocka_unit_test_setup(remote_packs_are_fetched_once_and_verified, begin),
        cmocka_unit_test_setup(remote_pack_shard_that_goes_is_named, begin),
        cmocka_unit_test_setup(remote_expected_samples_are_fetched_ahead, begin),
        cmocka_unit_test_setup(remote_failing_server_and_full_cache_leave_it_to_readers, begin),
        cmocka_unit_test_setup(remote_processes_share_a_cache, begin),
        cmocka_unit_test_setup(remote_failing_server_changes_nothing, begin),
        cmocka_unit_test_setup(remote_full_cache_keeps_its_limit, begin),
        cmocka_unit_test_setup(remote_idle_set_makes_room, begin),
        cmocka_unit_test_setup(remote_damaged_cache_is_fetched_again, begin),
        cmocka_unit_test_setup(remote_cache_open_to_others_is_refused, begin),
        cmocka_unit_test_setup(remote_shard_that_goes_is_named, begin),
        cmocka_unit_test_setup(remote_set_without_index_is_refused, begin),
        cmocka_unit_test_setup(remote_index_cut_short_is_refused, begin),
    };

    return cmocka_run_group_tests_name("remote", tests, make, end);
}
