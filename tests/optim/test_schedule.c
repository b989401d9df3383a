/* test_schedule.c - schedules against PyTorch, warm-up before any schedule, rejected configs. */
#include "optim/optim_test.h"

#include <math.h>

#include "optim/golden.h"

static co_schedule *make_schedule(co_config **config, const char *text)
{
    const co_value *value = NULL;
    co_schedule *schedule = NULL;

    *config = optim_test_config("{}");
    assert_int_equal(co_config_add_text(&value, *config, text), CO_OK);
    if (co_schedule_create(&schedule, value, *config) != CO_OK)
        fail_msg("%s", co_error_message());
    return schedule;
}

static co_progress at(uint64_t step)
{
    return (co_progress){
        .step = step, .steps_per_epoch = GOLDEN_PER_EPOCH, .total_steps = GOLDEN_TOTAL};
}

static void schedule_factors_equal_pytorch(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof(golden_factors) / sizeof(golden_factors[0]); c++) {
        co_config *config;
        co_schedule *schedule = make_schedule(&config, golden_factors[c].schedule);

        for (uint64_t t = 0; t < GOLDEN_TOTAL; t++) {
            const co_progress now = at(t);
            const double expected = golden_factors[c].factor[t];
            const double found = co_schedule_factor(schedule, &now);

            assert_int_equal(co_schedule_check(schedule, &now), CO_OK);
            if (fabs(found - expected) > 1e-12)
                fail_msg("%s: update %d: %.17g, PyTorch has %.17g", golden_factors[c].schedule,
                         (int)t, found, expected);
        }
        co_schedule_destroy(schedule);
        co_config_destroy(config);
    }
}

/* lr (1 + step) / (5 len_epoch) in the first 5 epochs, then a drop every 30 (Goyal et al.). */
static void schedule_warmup_and_steps_count_from_start(void **state)
{
    co_config *config;
    co_schedule *schedule = make_schedule(&config, "{name: step, every: 30, warmup: 5}");

    (void)state;
    for (uint64_t step = 0; step < 65 * GOLDEN_PER_EPOCH; step++) {
        const co_progress now = at(step);
        const uint64_t epoch = step / GOLDEN_PER_EPOCH;
        const uint64_t drops = epoch / 30;
        double expected = pow(0.1, (double)drops);

        if (epoch < 5)
            expected *= (double)(1 + step) / (5 * GOLDEN_PER_EPOCH);
        assert_true(fabs(co_schedule_factor(schedule, &now) - expected) < 1e-15);
    }
    co_schedule_destroy(schedule);
    co_config_destroy(config);
}

/* The ImageNet recipe of Apex: drops at 30, 60 and 80, lr (1 + step + epoch len) / (5 len) in the
   first 5 epochs. Apex counts `step` from 1, so it is one update ahead and ends the warm-up above
   lr; counted from 0 the last update of the warm-up has lr. */
static void schedule_imagenet_recipe_equals_apex(void **state)
{
    co_config *config;
    co_schedule *schedule =
        make_schedule(&config, "{name: multi-step, milestones: [30, 60, 80], warmup: 5}");
    const uint64_t length = GOLDEN_PER_EPOCH;

    (void)state;
    for (uint64_t epoch = 0; epoch < 90; epoch++)
        for (uint64_t i = 0; i < length; i++) {
            const co_progress now = at(epoch * length + i);
            const uint64_t drops = epoch / 30 + (epoch >= 80);
            double expected = pow(0.1, (double)drops);

            if (epoch < 5)
                expected *= (double)(1 + i + epoch * length) / (double)(5 * length);
            assert_true(fabs(co_schedule_factor(schedule, &now) - expected) < 1e-15);
        }
    co_schedule_destroy(schedule);
    co_config_destroy(config);
}

static void schedule_after_end_holds_last_value(void **state)
{
    static const struct {
        const char *text;
        double last;
    } cases[] = {
        {"cosine", 0},
        {"{name: cosine, final: 0.25}", 0.25},
        {"{name: polynomial, power: 0.5}", 0},
        {"{name: polynomial, final: 0.5}", 0.5},
        {"constant", 1},
        {"{name: one-cycle, div_factor: 4, final_div_factor: 8}", 0.03125},
        {"{name: one-cycle, pct_start: 1}", 1}, /* it never falls */
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        co_config *config;
        co_schedule *schedule = make_schedule(&config, cases[c].text);

        for (uint64_t step = GOLDEN_TOTAL; step < 3 * GOLDEN_TOTAL; step++) {
            const co_progress now = at(step);

            assert_true(co_schedule_factor(schedule, &now) == cases[c].last);
        }
        co_schedule_destroy(schedule);
        co_config_destroy(config);
    }
}

/* Asks for a factor only if the check passes; otherwise its message says what is missing. */
static void schedule_missing_length_is_refused(void **state)
{
    static const struct {
        const char *text;
        co_progress lengths;
        const char *message; /* NULL: nothing is missing */
    } cases[] = {
        {"constant", {0}, NULL},
        {"{name: constant, warmup: 9, unit: step}", {0}, NULL},
        {"{name: step, unit: step}", {0}, NULL},
        {"cosine", {.total_steps = 5}, NULL},
        {"{name: constant, warmup: 1}", {.total_steps = 5}, "schedule constant counts epochs"},
        {"step", {.total_steps = 5}, "schedule step counts epochs"},
        {"{name: multi-step, milestones: 3}", {0}, "schedule multi-step counts epochs"},
        {"cosine", {.steps_per_epoch = 5}, "schedule cosine needs the number of steps"},
        {"polynomial", {0}, "schedule polynomial needs the number of steps"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        co_config *config;
        co_schedule *schedule = make_schedule(&config, cases[c].text);
        co_status st = co_schedule_check(schedule, &cases[c].lengths);

        assert_int_equal(st, cases[c].message ? CO_E_USAGE : CO_OK);
        if (cases[c].message)
            assert_non_null(strstr(co_error_message(), cases[c].message));
        else
            assert_true(isfinite(co_schedule_factor(schedule, &cases[c].lengths)));
        co_schedule_destroy(schedule);
        co_config_destroy(config);
    }
}

static void schedule_bad_config_is_refused_at_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"schedule: cosinus", "bad.yaml:1:11: unknown schedule 'cosinus'; did you mean 'cosine'?"},
        {"schedule: 3", "bad.yaml:1:11: unknown schedule '3'; there are constant, step, "
                        "multi-step, cosine, polynomial, one-cycle"},
        {"schedule: multi-step", "bad.yaml:1:11: schedule multi-step: the key 'milestones' is "
                                 "missing (where the rate falls, in `unit` from the start, "
                                 "rising: [30, 60, 80])"},
        {"schedule: {name: multi-step, milestones: [30, 20]}",
         "bad.yaml:1:11: schedule multi-step: milestones rise, but 20 comes after 30"},
        {"schedule: {name: step, every: 0}",
         "bad.yaml:1:31: schedule step: key 'every': expected a whole number from 1 to "
         "1000000000, got '0'"},
        {"schedule: {name: constant, unit: hour}",
         "bad.yaml:1:34: schedule constant: key 'unit': expected one of epoch, step, got 'hour'"},
        {"schedule: {name: cosine, warmup: -1}",
         "bad.yaml:1:34: schedule cosine: key 'warmup': expected a whole number from 0 to "
         "1000000000, got '-1'"},
        {"schedule: [cosine]",
         "bad.yaml:1:11: schedule: expected a name, or {name: ..., key: value}"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        co_config *config = optim_test_config(cases[c].text);
        const co_value *value = co_value_get(co_config_root(config), "schedule");
        co_schedule *schedule = NULL;

        assert_int_equal(co_schedule_create(&schedule, value, config), CO_E_USAGE);
        assert_string_equal(co_error_message(), cases[c].message);
        assert_null(schedule);
        co_config_destroy(config);
    }
}

static void schedule_failed_allocation_is_an_error(void **state)
{
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_config *config =
            optim_test_config("schedule: {name: multi-step, milestones: [1, 2], warmup: 1}");
        co_schedule *schedule = NULL;

        co_mem_fail_at(++k);
        st =
            co_schedule_create(&schedule, co_value_get(co_config_root(config), "schedule"), config);
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        co_schedule_destroy(schedule);
        co_config_destroy(config);
    } while (st != CO_OK);
    assert_true(k >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule_factors_equal_pytorch),
        cmocka_unit_test(schedule_warmup_and_steps_count_from_start),
        cmocka_unit_test(schedule_imagenet_recipe_equals_apex),
        cmocka_unit_test(schedule_after_end_holds_last_value),
        cmocka_unit_test(schedule_missing_length_is_refused),
        cmocka_unit_test(schedule_bad_config_is_refused_at_its_line),
        cmocka_unit_test(schedule_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
