/* test_predict_tokens.c - logits of a program's own tokens: those by which text is written, and of
   which evaluations count the loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/decode.h"

#define LENGTH 24
#define VOCAB  30
#define LARGE  9000 /* tokens of which evaluations do not keep all logits */
#define COUNT  3

#define TOKENS_FIRST "[{embedding: {vocab: 30, out: 24, init_std: 1}}, "
#define GPT2         "{name: gpt2, layers: 2, heads: 2, width: 16}"

static co_model *create(const char *model, int64_t classes)
{
    co_model *out = NULL;

    assert_int_equal(co_model_create(&out, &(co_model_options){.model = model,
                                                               .sample = {1, {LENGTH}},
                                                               .classes = classes,
                                                               .seed = 3}),
                     CO_OK);
    return out;
}

static void make_tokens(int32_t *token, int n, int vocab)
{
    for (int t = 0; t < n; t++)
        token[t] = (7 * t * t + 3 * t + 5) % vocab;
}

static void check_as_generated(const char *net)
{
    static float all[COUNT][LENGTH][VOCAB];
    int32_t token[COUNT][LENGTH];
    co_model *model = create(net, VOCAB), *writer = create(net, VOCAB);
    float most = 0;

    make_tokens(token[0], COUNT * LENGTH, VOCAB);
    assert_int_equal(co_model_predict_tokens(all[0][0], model, token[0], COUNT, LENGTH), CO_OK);
    assert_int_equal(co_model_decode(writer), CO_OK);
    for (int i = 0; i < COUNT; i++)
        for (int t = 0; t < LENGTH; t++) {
            float next[VOCAB];

            assert_int_equal(co_model_next(next, writer, token[i] + t, 1, t), CO_OK);
            for (int v = 0; v < VOCAB; v++)
                most = fmaxf(most, fabsf(next[v] - all[i][t][v]));
        }
    if (!(most <= 1e-5f))
        fail_msg("%s: logits are %g apart", net, (double)most);
    co_model_destroy(writer);
    co_model_destroy(model);
}

static void predict_tokens_gives_the_logits_of_generated_text(void **state)
{
    (void)state;
    check_as_generated(GPT2);
    check_as_generated("{name: gpt2, layers: 1, heads: 2, width: 16, context: 40, tie: false}");
    check_as_generated("{name: llama, layers: 2, heads: 4, kv_heads: 2, width: 32, theta: 50}");
    check_as_generated(TOKENS_FIRST "{positions: {init_std: 1}}, {linear: 48}, "
                                    "{attention: {heads: 4, kv_heads: 1}}, tanh, {linear: 30}]");
}

static void check_short(const char *net)
{
    static float all[COUNT][LENGTH][VOCAB], first[COUNT * LENGTH * VOCAB];
    int32_t token[COUNT][LENGTH], begun[COUNT * LENGTH];
    co_model *model = create(net, VOCAB);

    make_tokens(token[0], COUNT * LENGTH, VOCAB);
    assert_int_equal(co_model_predict_tokens(all[0][0], model, token[0], COUNT, LENGTH), CO_OK);
    for (size_t n = 1; n < LENGTH; n++) {
        for (size_t i = 0; i < COUNT; i++)
            memcpy(begun + i * n, token[i], n * sizeof(**token));
        assert_int_equal(co_model_predict_tokens(first, model, begun, COUNT, (int64_t)n), CO_OK);
        for (size_t i = 0; i < COUNT; i++)
            assert_memory_equal(first + i * n * VOCAB, all[i], n * sizeof(all[0][0]));
    }
    co_model_destroy(model);
}

static void predict_tokens_short_sequences_have_the_same_bits(void **state)
{
    (void)state;
    check_short(GPT2);
    check_short("{name: llama, layers: 2, heads: 2, kv_heads: 1, width: 16}");
}

static double row_loss(const float *logit, int classes, int32_t label)
{
    double most = -INFINITY, sum = 0;

    for (int v = 0; v < classes; v++)
        most = fmax(most, (double)logit[v]);
    for (int v = 0; v < classes; v++)
        sum += exp((double)logit[v] - most);
    return log(sum) + most - (double)logit[label];
}

/* Also where evaluations before and after it have no more than some of the logits in memory. */
static void check_as_evaluated(int vocab)
{
    static const uint32_t sample[COUNT] = {0};
    int32_t token[COUNT * LENGTH + 1];
    const co_batch batch = {.count = COUNT,
                            .global = COUNT,
                            .local = COUNT,
                            .sample = sample,
                            .field = {{CO_FIELD_INPUT, CO_I32, {1, {LENGTH}}, token},
                                      {CO_FIELD_LABEL, CO_I32, {1, {LENGTH}}, token + 1}}};
    float *all = calloc((size_t)(COUNT * LENGTH * vocab), sizeof(*all));
    co_model *model = create(GPT2, vocab);
    co_result before, after;
    double loss = 0;

    assert_non_null(all);
    make_tokens(token, COUNT * LENGTH + 1, vocab);
    assert_int_equal(co_model_evaluate(&before, model, &batch), CO_OK);
    assert_int_equal(co_model_predict_tokens(all, model, token, COUNT, LENGTH), CO_OK);
    assert_int_equal(co_model_evaluate(&after, model, &batch), CO_OK);
    assert_memory_equal(&before, &after, sizeof(before));
    for (int t = 0; t < COUNT * LENGTH; t++)
        loss += row_loss(all + t * vocab, vocab, token[t + 1]);
    assert_int_equal(before.count, COUNT * LENGTH);
    if (!(fabs(loss - before.loss_sum) <= 1e-5 * loss))
        fail_msg("a loss of %.9g, where an evaluation has %.9g", loss, before.loss_sum);
    co_model_destroy(model);
    free(all);
}

static void predict_tokens_gives_the_logits_of_evaluations(void **state)
{
    (void)state;
    check_as_evaluated(VOCAB);
    check_as_evaluated(LARGE);
}

static void assert_refused(co_status st, const char *message)
{
    assert_int_equal(st, CO_E_USAGE);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void predict_tokens_bad_arguments_are_refused(void **state)
{
    static float out[LENGTH * VOCAB], values[LENGTH];
    int32_t token[LENGTH] = {0};
    co_model *model = create(GPT2, VOCAB), *net = create("{name: mlp, hidden: [5]}", VOCAB);

    (void)state;
    assert_refused(co_model_predict(out, model, values, 1), "co_model_predict_tokens gives it");
    assert_refused(co_model_predict_tokens(out, net, token, 1, LENGTH), "co_model_predict gives");
    assert_refused(co_model_predict_tokens(out, model, NULL, 2, 3), "2 samples without input");
    assert_refused(co_model_predict_tokens(NULL, model, token, 2, 3), "without room");
    assert_refused(co_model_predict_tokens(out, model, token, UINT64_MAX, 1), "memory can hold");
    assert_refused(co_model_predict_tokens(out, model, token, 1, 0), "of 0 tokens; the network "
                                                                     "takes 1 to 24");
    assert_refused(co_model_predict_tokens(out, model, token, 1, -1), "takes 1 to 24");
    assert_refused(co_model_predict_tokens(out, model, token, 1, LENGTH + 1),
                   "of 25 tokens; the network takes 1 to 24, so give it the last of them");
    assert_int_equal(co_model_predict_tokens(NULL, model, NULL, 0, 0), CO_OK);
    for (int i = 0; i < 2; i++) {
        static const int32_t wrong[] = {VOCAB, -1};

        token[4] = wrong[i];
        assert_refused(co_model_predict_tokens(out, model, token, 1, 5),
                       i ? "token 4 is -1; the network's tokens are 0 to 29"
                         : "token 4 is 30; the network's tokens are 0 to 29");
        assert_int_equal(co_model_predict_tokens(out, model, token, 1, 4), CO_OK);
    }
    co_model_destroy(net);
    co_model_destroy(model);
}

static void predict_tokens_short_sequences_of_other_networks_are_refused(void **state)
{
    static const struct {
        const char *model, *message;
    } cases[] = {
        {TOKENS_FIRST "flatten, {linear: 30}]", "as it gives no logits at each position"},
        {TOKENS_FIRST "{linear: 36}, {attention: {heads: 4, causal: false, name: mixed}}, "
                      "{linear: 30}]",
         "takes 24, as layer mixed looks at later positions"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static float out[LENGTH * VOCAB];
        const int32_t token[LENGTH] = {0};
        co_model *model = create(cases[i].model, VOCAB);

        assert_refused(co_model_predict_tokens(out, model, token, 1, LENGTH - 1), cases[i].message);
        assert_int_equal(co_model_predict_tokens(out, model, token, 1, LENGTH), CO_OK);
        co_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict_tokens_gives_the_logits_of_generated_text),
        cmocka_unit_test(predict_tokens_short_sequences_have_the_same_bits),
        cmocka_unit_test(predict_tokens_gives_the_logits_of_evaluations),
        cmocka_unit_test(predict_tokens_bad_arguments_are_refused),
        cmocka_unit_test(predict_tokens_short_sequences_of_other_networks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
