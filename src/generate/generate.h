/* generate.h - text from a trained language model: what it predicts is what it reads next. */
#ifndef CO_GENERATE_GENERATE_H
#define CO_GENERATE_GENERATE_H

#include "generate/choose.h"
#include "model/model.h"
#include "text/tokenizer.h"

typedef struct co_generate_options {
    const char *prompt; /* not empty */
    uint64_t tokens;    /* after it */
    co_choose_rule rule;
    uint64_t seed;
    /* Takes the prompt, then what follows, a few characters at a time (utf8_stream.h). */
    co_status (*write)(void *arg, const uint8_t *text, size_t n);
    void *arg;
} co_generate_options;

/* The model decodes from then on (model/decode.h). When a sequence is as long as the model knows,
   it continues from the later half of it. The text is a function of weights, prompt and options.
   CO_E_USAGE: no language model, an empty prompt, or one with characters that have no token. */
co_status co_generate(co_model *model, co_tokenizer *tokenizer, const co_generate_options *options);

#endif
