/* What ranks of an MPI job say when they do not get on, and the report of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cohort/log.h>

#include "comm/watch.h"
#include "launch/rank_notes.h"

static char folder[] = "/tmp/cohort-where-XXXXXX", said[4096];

static void keep(void *arg, co_log_level level, int rank, const char *text)
{
    const size_t n = strlen(said);

    (void)arg;
    (void)level;
    (void)rank;
    (void)snprintf(said + n, sizeof(said) - n, "%s\n", text);
}

static void notes_where_survives_until_it_is_taken_back(void **state)
{
    co_note note[2];

    (void)state;
    assert_int_equal(co_notes_create(folder, &(co_notes_restart){.lost_rank = -1}), CO_OK);
    assert_true(!co_notes_any_starting(folder));
    co_notes_starting(folder);
    assert_true(co_notes_any_starting(folder));
    co_notes_begin(folder, 1);
    co_notes_say_where(folder, 1, "rank 1 (process 5 on n2) computing for 4.0 s\nand more");
    co_notes_read(note, folder, 2);
    assert_true(note[0].kind == CO_NOTE_NONE && !note[0].where[0]);
    assert_true(note[1].kind == CO_NOTE_BEGUN);
    assert_string_equal(note[1].where, "rank 1 (process 5 on n2) computing for 4.0 s and more");
    co_notes_say_where(folder, 1, "");
    co_notes_read(note, folder, 2);
    assert_true(note[1].kind == CO_NOTE_BEGUN && !note[1].where[0]);
    co_notes_remove(folder);
}

static void report_of_hung_job_names_silent_ranks_first(void **state)
{
    static co_note note[3] = {
        {.kind = CO_NOTE_FAILED, .where = "rank 0 (process 1 on n1) computing; it waits for 4.0 s"},
        {.kind = CO_NOTE_BEGUN, .where = "rank 1 (process 2 on n2) reading data for 4.1 s"},
        {.kind = CO_NOTE_BEGUN, .pid = 3, .host = "n3"}};

    (void)state;
    co_log_to(keep, NULL);
    co_notes_report_where(note, 3);
    assert_string_equal(said,
                        "of 3 ranks 1 waited for others, 1 did something else, 1 said nothing:\n"
                        "  rank 2 (process 3 on n3) has said nothing: dead, stopped, or cut off\n"
                        "  rank 1 (process 2 on n2) reading data for 4.1 s\n"
                        "  rank 0 (process 1 on n1) computing; it waits for 4.0 s\n");
    said[0] = '\0';
    note[0].where[0] = note[1].where[0] = '\0';
    co_notes_report_where(note, 3);
    assert_string_equal(said, "");
    co_log_to(NULL, NULL);
}

static void watch_stalled_counts_from_wait_or_last_progress(void **state)
{
    static co_watch watch;

    (void)state;
    atomic_store(&watch.beat_ns, 1000);
    assert_true(co_watch_stalled_ns(&watch, 5000) == 4000);
    atomic_store(&watch.waiting_ns, 4000);
    atomic_store(&watch.waiting, 1);
    assert_true(co_watch_stalled_ns(&watch, 5000) == 1000);
    assert_true(co_watch_stalled_ns(&watch, 3000) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_where_survives_until_it_is_taken_back),
        cmocka_unit_test(report_of_hung_job_names_silent_ranks_first),
        cmocka_unit_test(watch_stalled_counts_from_wait_or_last_progress),
    };

    if (!mkdtemp(folder))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
