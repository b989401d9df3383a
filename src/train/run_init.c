/* run_init.c - the config's `init`: whether its weights know the tokens of the data, and loading
   them into the model and its replicas. */
#include <string.h>

#include "core/fs.h"
#include "data/data.h"
#include "model/initial_weights.h"
#include "train/run_internal.h"

#define RUN_INIT_PATH   4096
#define RUN_INIT_LEVELS 3 /* folders above weights, which are a run's or of a checkpoint of it */

/* The tokenizer of the run that has written a file; false: there is none. */
static bool run_find_tokenizer(char out[RUN_INIT_PATH], const char *file)
{
    char folder[RUN_INIT_PATH];
    size_t n = strlen(file);

    for (int level = 0; level < RUN_INIT_LEVELS && n < sizeof(folder); level++) {
        while (n > 0 && file[n - 1] != '/')
            n--;
        while (n > 1 && file[n - 1] == '/')
            n--;
        memcpy(folder, file, n);
        folder[n] = '\0';
        if (co_fs_join(out, RUN_INIT_PATH, folder, CO_DATA_TOKENIZER) == CO_OK && co_fs_exists(out))
            return true;
    }
    return false;
}

/* Layers that are skipped may be those that depend on the tokens. */
static co_status run_check_init(const co_job *job)
{
    const co_value *value = job->spec.init;
    char tokenizer[RUN_INIT_PATH];

    if (value && value->kind == CO_VALUE_MAP)
        value = co_value_get(value, "skip") ? NULL : co_value_get(value, "weights");
    if (!value || value->kind != CO_VALUE_SCALAR || !run_find_tokenizer(tokenizer, value->text))
        return CO_OK;
    return co_dataset_check_characters(job->train, tokenizer);
}

co_status co_run_init(const co_job *job)
{
    const co_spec *spec = &job->spec;

    CO_TRY(run_check_init(job));
    CO_TRY(co_init_load(job->model, spec->init, spec->config));
    for (int64_t rank = 0; job->replica && rank < spec->ranks; rank++)
        CO_TRY(co_init_load(job->replica[rank], spec->init, spec->config));
    return CO_OK;
}
