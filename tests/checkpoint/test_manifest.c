/* test_manifest.c - manifests are written as they can be read, of many ranks too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/manifest.h"
#include "core/mem.h"
#include "folder.h"

typedef struct place {
    uint64_t step;
} place;

static char text[] = "a: 1\n";
static const co_number numbers[] = {{"step", CO_NUMBER_COUNT, offsetof(place, step), false, 0},
                                    {NULL, CO_NUMBER_COUNT, 0, false, 0}};
static const co_manifest_layout layout = {numbers, numbers, sizeof(place), sizeof(place)};

static void manifest_of_many_ranks_is_read_again(void **state)
{
    static const uint64_t ranks[] = {1, 1024, 1025, CO_MANIFEST_MAX_RANKS};

    (void)state;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        place all = {7}, *of = co_calloc(ranks[i], sizeof(*of));
        co_manifest wrote = {.cohort = "0",
                             .model = "m",
                             .dataset = "d",
                             .strategy = "s",
                             .precision = "p",
                             .ranks = ranks[i],
                             .config = text,
                             .point = &all,
                             .rank = of};
        co_manifest got;

        assert_non_null(of);
        of[ranks[i] - 1].step = 9;
        assert_int_equal(co_manifest_write(&wrote, folder, &layout), CO_OK);
        if (co_manifest_read(&got, folder, &layout) != CO_OK)
            fail_msg("%llu ranks: %s", (unsigned long long)ranks[i], co_error_message());
        assert_int_equal(got.ranks, ranks[i]);
        assert_memory_equal(got.rank, of, ranks[i] * sizeof(*of));
        co_manifest_free(&got);
        co_free(of);
    }
}

static void manifest_that_could_not_be_read_is_not_written(void **state)
{
    place all = {7};
    const co_manifest manifest = {
        .ranks = CO_MANIFEST_MAX_RANKS + 1, .config = text, .point = &all, .rank = &all};

    (void)state;
    assert_int_equal(co_manifest_write(&manifest, folder, &layout), CO_E_UNSUPPORTED);
    assert_int_equal(folder_count(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(manifest_of_many_ranks_is_read_again),
                                       TEST(manifest_that_could_not_be_read_is_not_written)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
