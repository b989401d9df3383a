/* test_live_measure.c - which weights of a run are measured, and when again. */
#include "run_files.h"

#include <fcntl.h>

#include "live/measure.h"
#include "waits.h"

/* What "measuring" gives: the file `weights` of the run; there is no memory for one that is empty,
   and one that begins with a dot takes for ever. */
static co_status measure_text(json_t *run, const char *dir, const void *arg)
{
    char path[320], text[64] = "";
    int fd;
    ssize_t n;

    (void)arg;
    snprintf(path, sizeof(path), "%s/checkpoints/weights", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n < 1)
        return CO_E_NOMEM;
    while (*text == '.')
        pause();
    return json_object_set_new(run, "text", json_string(text)) == 0 ? CO_OK : CO_E_NOMEM;
}

static const co_live_measure how = {.run = measure_text};

/* Weights that were saved `age` seconds ago. */
static void save(const char *text, double age)
{
    struct timespec at[2];

    run_write("a/checkpoints/weights", "w", text);
    clock_gettime(CLOCK_REALTIME, &at[0]);
    at[0].tv_sec -= (time_t)age;
    at[1] = at[0];
    assert_int_equal(utimensat(AT_FDCWD, folder_path("a/checkpoints"), at, 0), 0);
}

static bool begin(co_measured *m, bool training)
{
    char dir[320];
    const pid_t before = m->child;

    snprintf(dir, sizeof(dir), "%s", folder_path("a"));
    assert_int_equal(co_measured_begin(m, &how, dir, training), CO_OK);
    return m->child && m->child != before;
}

/* Waits for the child; whether it has found anything. */
static bool take(co_measured *m)
{
    const uint64_t start = co_clock_ns();

    while (m->child) {
        if (co_measured_take(m))
            return true;
        assert_true(waits_more(start));
    }
    return false;
}

static void assert_found(const co_measured *m, const char *text)
{
    assert_string_equal(json_string_value(json_object_get(m->json, "text")), text);
}

static int weights_setup(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    mkdir(folder_path("a"), 0700);
    return mkdir(folder_path("a/checkpoints"), 0700);
}

static void weights_are_measured_once(void **state)
{
    co_measured m = {.child = 0};

    (void)state;
    save("one", 100);
    assert_true(begin(&m, false));
    assert_true(take(&m));
    assert_found(&m, "one");
    m.next_ns = 0;
    assert_false(begin(&m, false));
    save("two", 50);
    assert_true(begin(&m, false));
    assert_true(take(&m));
    assert_found(&m, "two");
    co_measured_free(&m);
}

/* Those of a run that trains at most twice a minute; those of its end at once, whatever goes on. */
static void end_of_run_is_measured_at_once(void **state)
{
    co_measured m = {.child = 0};

    (void)state;
    save("one", 100);
    assert_true(begin(&m, true));
    assert_true(take(&m));
    save(".two", 50);
    assert_false(begin(&m, true));
    m.next_ns = 0;
    assert_true(begin(&m, true));
    save("three", 50); /* as it may look within one tick of the clock */
    assert_false(begin(&m, true));
    assert_true(begin(&m, false));
    assert_true(take(&m));
    assert_found(&m, "three");
    co_measured_free(&m);
}

static void failure_is_tried_again(void **state)
{
    co_measured m = {.child = 0};

    (void)state;
    save("", 100);
    assert_true(begin(&m, false));
    assert_false(take(&m));
    assert_false(begin(&m, false));
    m.next_ns = 0;
    run_write("a/checkpoints/weights", "w", "one");
    assert_true(begin(&m, false));
    assert_true(take(&m));
    assert_found(&m, "one");
    co_measured_free(&m);
}

/* What was saved a moment ago may be saved again without a later time. */
static void time_of_this_moment_is_not_trusted(void **state)
{
    co_measured m = {.child = 0};
    const uint64_t start = co_clock_ns();
    uint64_t saved;
    bool began;

    (void)state;
    do {
        co_measured_free(&m);
        assert_true(waits_more(start));
        saved = co_clock_ns();
        save("one", 0);
        began = begin(&m, false);
    } while (co_clock_seconds(saved, co_clock_ns()) > 0.01); /* too slow to tell */
    assert_false(began);
    while (!began) {
        assert_true(waits_more(start));
        began = begin(&m, false);
    }
    assert_true(take(&m));
    assert_found(&m, "one");
    co_measured_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_are_measured_once, weights_setup, folder_remove),
        cmocka_unit_test_setup_teardown(end_of_run_is_measured_at_once, weights_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(failure_is_tried_again, weights_setup, folder_remove),
        cmocka_unit_test_setup_teardown(time_of_this_moment_is_not_trusted, weights_setup,
                                        folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
