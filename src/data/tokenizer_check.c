/* tokenizer_check.c - whether the tokens of a data set stand for what they stood for when weights
   were trained. */
#include "data/dataset_internal.h"
#include "data/formats.h"
#include "data/tokenizers.h"

static const char *const check_kinds[] = {"characters", "bytes", "pairs of bytes"};

static co_status check_text(const co_tokenizer *then, const co_tokenizer *now, const char *path,
                            const char *folder)
{
    if (then->kind != now->kind)
        return co_fail(CO_E_DATA,
                       "%s: its tokens are %s, and the weights were trained on %s (%s); set "
                       "data.tokenizer for bytes, or make tokens of it by `cohort data tokenize`",
                       path, check_kinds[now->kind], check_kinds[then->kind], folder);
    return co_fail(CO_E_DATA,
                   "%s: has other characters than the text that the weights were trained on, so "
                   "the same ones would have other numbers; set data.characters=%s, whose numbers "
                   "they then have",
                   path, folder);
}

static co_status check_tokens(const co_tokenizer *then, const char *path, const char *folder)
{
    static const char said[] = "its tokens are of another tokenizer than those that the weights "
                               "were trained on";

    if (then->kind == CO_TOKENIZER_BPE)
        return co_fail(CO_E_DATA,
                       "%s: %s (%s); make them by `cohort data tokenize SRC DST --tokenizer bpe "
                       "--merges %s/merges.txt`",
                       path, said, folder, folder);
    return co_fail(CO_E_DATA, "%s: %s (%s)%s", path, said, folder,
                   then->kind == CO_TOKENIZER_BYTES
                       ? "; make them by `cohort data tokenize SRC DST --tokenizer bytes`"
                       : "");
}

co_status co_dataset_check_tokenizer(const co_dataset *dataset, const char *folder)
{
    const bool text = dataset->ops == &co_dataset_text;
    const void *self = dataset->self;
    co_tokenizer then, now;
    bool found = true;
    co_status st = CO_OK;

    if ((!text && dataset->ops != &co_dataset_tokens) || !co_tokenizer_is_in(folder))
        return CO_OK;
    if (text)
        now = co_text_tokenizer(self);
    else
        CO_TRY(co_tokens_tokenizer(&now, &found, self));
    if (!found)
        return CO_OK;
    st = co_tokenizer_load(&then, folder);
    if (st == CO_OK && !co_tokenizer_same(&then, &now))
        st = text ? check_text(&then, &now, co_text_path(self), folder)
                  : check_tokens(&then, co_tokens_path(self), folder);
    co_tokenizer_close(&then);
    if (!text)
        co_tokenizer_close(&now);
    return st;
}
