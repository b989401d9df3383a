/* test_choose.c - tokens drawn from logits, and bytes that become text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "generate/choose.h"
#include "generate/utf8_stream.h"

#define TOKENS 5
#define DRAWS  10000

/* Probabilities 0.1, 0.4, 0, 0.4, 0.1; behind them one that is no token. */
static const float logits[TOKENS + 1] = {-2.30258509f, -0.91629073f, -100,
                                         -0.91629073f, -2.30258509f, 50};

static void draw_all(int count[TOKENS], const co_choose_rule *rule)
{
    co_chooser *chooser;

    assert_int_equal(co_chooser_create(&chooser, rule, TOKENS), CO_OK);
    memset(count, 0, TOKENS * sizeof(*count));
    for (int i = 0; i < DRAWS; i++) {
        uint32_t token;

        assert_int_equal(co_chooser_draw(&token, chooser, logits, (i + 0.5) / DRAWS), CO_OK);
        assert_int_in_range(token, 0, TOKENS - 1);
        count[token]++;
    }
    co_chooser_destroy(chooser);
}

static void chooser_draws_by_probability(void **state)
{
    static const struct {
        co_choose_rule rule;
        double p[TOKENS];
    } cases[] = {
        {{1, 0, 1}, {0.1, 0.4, 0, 0.4, 0.1}},
        {{0, 0, 1}, {0, 1, 0, 0, 0}}, /* of equal ones the first */
        {{1, 1, 1}, {0, 1, 0, 0, 0}}, /* top-k */
        {{1, 3, 1}, {0.1111, 0.4444, 0, 0.4444, 0}},
        {{1, 99, 1}, {0.1, 0.4, 0, 0.4, 0.1}},
        {{1, 0, 0.3}, {0, 1, 0, 0, 0}}, /* top-p */
        {{1, 0, 0.5}, {0, 0.5, 0, 0.5, 0}},
        {{1, 0, 0.85}, {0.1111, 0.4444, 0, 0.4444, 0}},
        {{0.5, 0, 1}, {0.0294, 0.4706, 0, 0.4706, 0.0294}}, /* squares */
        {{1e6, 0, 1}, {0.2, 0.2, 0.2, 0.2, 0.2}},
    };
    int count[TOKENS];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        draw_all(count, &cases[i].rule);
        for (int t = 0; t < TOKENS; t++)
            if (fabs((double)count[t] / DRAWS - cases[i].p[t]) > 0.001)
                fail_msg("case %zu, token %d: %d of %d", i, t, count[t], DRAWS);
    }
}

static void chooser_refuses_logits_that_are_no_numbers(void **state)
{
    static const float bad[3][2] = {{0, NAN}, {INFINITY, 0}, {-INFINITY, 0}};
    const co_choose_rule rule = {1, 0, 1};
    co_chooser *chooser;
    uint32_t token;

    (void)state;
    assert_int_equal(co_chooser_create(&chooser, &rule, 2), CO_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(co_chooser_draw(&token, chooser, bad[i], 0.5), CO_E_DATA);
    co_chooser_destroy(chooser);
}

typedef struct text {
    char all[256];
    size_t n;
} text;

static co_status keep(void *arg, const uint8_t *bytes, size_t n)
{
    text *t = arg;

    assert_true(t->n + n < sizeof(t->all));
    memcpy(t->all + t->n, bytes, n);
    t->n += n;
    t->all[t->n] = '\0';
    return CO_OK;
}

#define BAD "\xef\xbf\xbd"

static void utf8_stream_passes_whole_characters(void **state)
{
    static const struct {
        const char *in, *before_end, *out;
    } cases[] = {
        {"ab\n\tc", "ab\n\tc", "ab\n\tc"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
         "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"x\xe2\x82", "x", "x" BAD},                /* cut off */
        {"\xe2\x41", BAD "A", BAD "A"},             /* not continued */
        {"\xff\x80z", BAD BAD "z", BAD BAD "z"},    /* no beginning */
        {"\xed\xa0\x80", BAD BAD BAD, BAD BAD BAD}, /* a surrogate */
        {"\xe0\x80\x80", BAD BAD BAD, BAD BAD BAD}, /* overlong */
        {"\x1b[2J\x7f\xc2\x9b", BAD "[2J" BAD BAD, BAD "[2J" BAD BAD},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        text got = {.n = 0};
        co_utf8_stream stream = {.write = keep, .arg = &got};

        for (const char *c = cases[i].in; *c; c++)
            assert_int_equal(co_utf8_stream_put(&stream, (const uint8_t *)c, 1), CO_OK);
        assert_string_equal(got.all, cases[i].before_end);
        assert_int_equal(co_utf8_stream_end(&stream), CO_OK);
        assert_string_equal(got.all, cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooser_draws_by_probability),
        cmocka_unit_test(chooser_refuses_logits_that_are_no_numbers),
        cmocka_unit_test(utf8_stream_passes_whole_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
