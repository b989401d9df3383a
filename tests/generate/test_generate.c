/* test_generate.c - what a model predicts with keys and values kept is what it predicts without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "generate/generate.h"
#include "model/decode.h"

#define LENGTH 24
#define VOCAB  30

#define TOKENS_FIRST "[{embedding: {vocab: 30, out: 24, init_std: 1}}, "

static co_status create(co_model **out, const char *model, const char *backend)
{
    const co_model_options options = {.model = model,
                                      .backend = backend,
                                      .threads = 1,
                                      .sample = {1, {LENGTH}},
                                      .classes = VOCAB,
                                      .seed = 3};

    return co_model_create(out, &options);
}

static void make_tokens(int32_t token[LENGTH])
{
    for (int t = 0; t < LENGTH; t++)
        token[t] = (7 * t * t + 3 * t + 5) % VOCAB;
}

/* Logits of all positions at once, (LENGTH, VOCAB). */
static void predict_whole(float *logits, co_model *model, const int32_t *token)
{
    static const uint32_t sample[1] = {0};
    static const int32_t label[LENGTH] = {0};
    const co_batch batch = {.count = 1,
                            .global = 1,
                            .local = 1,
                            .sample = sample,
                            .field = {{CO_FIELD_INPUT, CO_I32, {1, {LENGTH}}, token},
                                      {CO_FIELD_LABEL, CO_I32, {1, {LENGTH}}, label}}};
    co_result result;

    assert_int_equal(co_model_evaluate(&result, model, &batch), CO_OK);
    memcpy(logits, co_plan_output(model->plans[0]->plan), LENGTH * VOCAB * sizeof(*logits));
}

/* In pieces of a few tokens, twice over the same positions. */
static void check_cached(const char *model, const char *backend)
{
    static const int pieces[] = {5, 1, 8, 1, 1, 8};
    float whole[LENGTH * VOCAB], most = 0;
    co_model *reader, *writer;
    int32_t token[LENGTH];

    make_tokens(token);
    assert_int_equal(create(&reader, model, backend), CO_OK);
    assert_int_equal(create(&writer, model, backend), CO_OK);
    predict_whole(whole, reader, token);
    assert_int_equal(co_model_decode(writer), CO_OK);
    assert_int_equal(co_model_length(writer), LENGTH);
    for (int again = 0; again < 2; again++)
        for (int at = 0, i = 0; at < LENGTH; i++) {
            float logits[VOCAB];

            assert_int_equal(co_model_next(logits, writer, token + at, (uint64_t)pieces[i], at),
                             CO_OK);
            at += pieces[i];
            for (int v = 0; v < VOCAB; v++)
                most = fmaxf(most, fabsf(logits[v] - whole[(at - 1) * VOCAB + v]));
        }
    if (!(most <= 1e-5f))
        fail_msg("%s: logits are %g apart", model, (double)most);
    co_model_destroy(reader);
    co_model_destroy(writer);
}

static void decode_cached_logits_equal_uncached(void **state)
{
    static const char *const models[] = {
        "{name: gpt2, layers: 3, heads: 4, width: 32, dropout: 0.2}",
        "{name: gpt2, layers: 1, heads: 2, width: 16, context: 40, tie: false}",
        "{name: llama, layers: 3, heads: 4, kv_heads: 2, width: 32, theta: 50}",
        "{name: llama, layers: 1, heads: 2, width: 16, tie: true}",
        TOKENS_FIRST "{positions: {init_std: 1}}, {linear: 48}, "
                     "{attention: {heads: 4, kv_heads: 1}}, tanh, {linear: 30}]",
        /* heads of vectors, several at once and one, and a rest, at every level of instructions */
        TOKENS_FIRST "{positions: {init_std: 1}}, {linear: 336}, "
                     "{attention: {heads: 2, kv_heads: 1}}, tanh, {linear: 30}]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        check_cached(models[i], NULL);
        check_cached(models[i], "ref");
    }
}

static void assert_refused(co_status st, const char *message)
{
    assert_int_equal(st, CO_E_USAGE);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void decode_bad_arguments_are_refused(void **state)
{
    int32_t token[LENGTH];
    float logits[VOCAB];
    co_model *model;

    (void)state;
    make_tokens(token);
    assert_int_equal(create(&model, "{name: gpt2, layers: 1, heads: 1, width: 8}", NULL), CO_OK);
    assert_refused(co_model_next(logits, model, token, 1, 0), "co_model_decode has not");
    assert_int_equal(co_model_decode(model), CO_OK);
    assert_refused(co_model_next(logits, model, token, 1, 1), "position 1, and 0 have been read");
    assert_refused(co_model_next(logits, model, token, 1, -1), "position -1");
    assert_refused(co_model_next(logits, model, token, 0, 0), "0 tokens at position 0");
    assert_refused(co_model_next(NULL, model, token, 1, 0), "no room for the logits");
    assert_refused(co_model_next(logits, model, NULL, 1, 0), "no tokens");
    assert_int_equal(co_model_next(logits, model, token, LENGTH - 1, 0), CO_OK);
    assert_refused(co_model_next(logits, model, token, 2, LENGTH - 1), "has 24 positions");
    assert_refused(co_model_next(logits, model, token, UINT64_MAX, 0), "has 24 positions");
    token[0] = VOCAB;
    assert_refused(co_model_next(logits, model, token, 1, 3), "next: token 0 is 30");
    token[0] = 0;
    assert_int_equal(co_model_next(logits, model, token, 1, LENGTH - 1), CO_OK);
    assert_int_equal(co_model_next(logits, model, token, 1, 2), CO_OK);
    assert_refused(co_model_next(logits, model, token, 1, 4), "position 4, and 3 have been read");
    co_model_destroy(model);
}

static void decode_takes_no_whole_samples(void **state)
{
    float logits[LENGTH * VOCAB];
    int32_t token[LENGTH];
    co_model *model;

    (void)state;
    make_tokens(token);
    assert_int_equal(create(&model, "{name: gpt2, layers: 1, heads: 1, width: 8}", NULL), CO_OK);
    assert_int_equal(co_model_decode(model), CO_OK);
    assert_int_equal(co_model_next(logits, model, token, 3, 0), CO_OK);
    assert_int_equal(co_model_decode(model), CO_OK); /* changes nothing */
    assert_int_equal(co_model_next(logits, model, token + 3, 1, 3), CO_OK);
    assert_refused(co_model_predict_tokens(logits, model, token, 1, LENGTH), "the model decodes");
    assert_refused(co_model_predict_tokens(logits, model, token, 1, 1), "the model decodes");
    co_model_destroy(model);
}

static void decode_other_networks_are_refused(void **state)
{
    static const struct {
        const char *model, *message;
    } cases[] = {
        {"[{linear: 30}]", "the network is no language model"},
        {TOKENS_FIRST "flatten, {linear: 30}]", "the network is no language model"},
        {TOKENS_FIRST "{linear: 36}, {attention: {heads: 4, causal: false}}, {linear: 30}]",
         "attention looks at later positions, so the network writes no text"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_model *model;

        assert_int_equal(create(&model, cases[i].model, NULL), CO_OK);
        assert_refused(co_model_decode(model), cases[i].message);
        co_model_destroy(model);
    }
}

typedef struct text {
    char all[4096];
    size_t n, calls;
} text;

static co_status keep(void *arg, const uint8_t *bytes, size_t n)
{
    text *t = arg;

    assert_true(t->n + n < sizeof(t->all));
    memcpy(t->all + t->n, bytes, n);
    t->n += n;
    t->calls++;
    return CO_OK;
}

static void write_text(text *out, const char *net, uint64_t seed, uint64_t tokens,
                       const char *prompt)
{
    co_tokenizer tokenizer = {.kind = CO_TOKENIZER_CHAR};
    const co_generate_options options = {.prompt = prompt,
                                         .tokens = tokens,
                                         .rule = {.temperature = 1, .top_p = 1},
                                         .seed = seed,
                                         .write = keep,
                                         .arg = out};
    co_model *model;

    *out = (text){.n = 0};
    assert_int_equal(co_characters_open(&tokenizer.characters), CO_OK);
    assert_int_equal(co_characters_see(&tokenizer.characters,
                                       (const uint8_t *)"abcdefghijklmnopqrstuvwxyz", 26, ""),
                     CO_OK);
    assert_int_equal(co_characters_number(&tokenizer.characters), CO_OK);
    assert_int_equal(create(&model, net, NULL), CO_OK);
    assert_int_equal(co_generate(model, &tokenizer, &options), CO_OK);
    co_model_destroy(model);
    co_tokenizer_close(&tokenizer);
}

/* Over several times the context; a longer prompt than that counts by its end. */
static void check_same_text(const char *net)
{
    text one, two, other;

    write_text(&one, net, 5, 100, "abc");
    write_text(&two, net, 5, 100, "abc");
    write_text(&other, net, 6, 100, "abc");
    assert_int_equal(one.n, 103);
    assert_true(one.calls >= 100);
    assert_memory_equal(one.all, "abc", 3);
    assert_memory_equal(one.all, two.all, one.n);
    assert_memory_not_equal(one.all, other.all, one.n);
    write_text(&one, net, 5, 9, "zzzzzzzzabcdefghijklmnopqrstuvwx");
    write_text(&two, net, 5, 9, "yyyyyyyyabcdefghijklmnopqrstuvwx");
    assert_int_equal(one.n, 41);
    assert_memory_equal(one.all + 8, two.all + 8, 33);
}

static void generate_same_seed_writes_same_text(void **state)
{
    (void)state;
    check_same_text("{name: gpt2, layers: 2, heads: 2, width: 16}");
    check_same_text("{name: llama, layers: 2, heads: 2, kv_heads: 1, width: 16}");
}

static void generate_empty_prompt_is_refused(void **state)
{
    const co_generate_options options = {.prompt = "", .tokens = 1, .rule = {1, 0, 1}};
    co_tokenizer tokenizer = {.kind = CO_TOKENIZER_BYTES};
    co_model *model;

    (void)state;
    assert_int_equal(
        create(&model, "{name: gpt2, layers: 1, heads: 1, width: 8, vocab: 300}", NULL), CO_OK);
    assert_int_equal(co_generate(model, &tokenizer, &options), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "the prompt is empty"));
    co_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_cached_logits_equal_uncached),
        cmocka_unit_test(decode_bad_arguments_are_refused),
        cmocka_unit_test(decode_takes_no_whole_samples),
        cmocka_unit_test(decode_other_networks_are_refused),
        cmocka_unit_test(generate_same_seed_writes_same_text),
        cmocka_unit_test(generate_empty_prompt_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
