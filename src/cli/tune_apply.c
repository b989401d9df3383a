/* tune_apply.c - writes a config with what `cohort tune` proposes, comments included. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tune.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/text.h"

static const char apply_suffix[] = ".yaml";

/* DIR/resnet9.yaml becomes resnet9-tuned.yaml, here: the folder may be the program's own. */
static const char *apply_new_name(const tune_job *job)
{
    const char *name = co_fs_name(job->path);
    const size_t cut = sizeof(apply_suffix) - 1, n = strlen(name);
    const bool suffix = n > cut && strcmp(name + n - cut, apply_suffix) == 0;

    return co_arena_printf(tune_arena(job), "%.*s-tuned%s", (int)(suffix ? n - cut : n), name,
                           apply_suffix);
}

/* Links are followed, so that the file that they lead to is replaced. */
static const char *apply_own_name(const tune_job *job)
{
    char *real = realpath(job->path, NULL);
    const char *copy = real ? co_arena_strdup(tune_arena(job), real) : job->path;

    free(real);
    return copy;
}

co_status tune_apply_check(tune_job *job)
{
    const tune_options *o = job->options;
    const char *path;

    if (!o->apply && (o->output || o->in_place || o->change_result))
        return co_fail(CO_E_USAGE, "%s: it is for --apply, which is not given",
                       o->output     ? "--output"
                       : o->in_place ? "--in-place"
                                     : "--change-result");
    if (o->output && o->in_place)
        return co_fail(CO_E_USAGE, "--in-place: --output names another file; give one of them");
    if (!o->apply)
        return CO_OK;
    path = o->in_place ? apply_own_name(job) : o->output ? o->output : apply_new_name(job);
    if (!path)
        return CO_E_NOMEM;
    if (!o->in_place && co_fs_same(path, job->path))
        return co_fail(CO_E_USAGE, "%s: is the config itself; give --in-place to change it", path);
    if (!o->in_place && !o->output && co_fs_exists(path))
        return co_fail(CO_E_USAGE, "%s: exists already; remove it, or name a file with --output",
                       path);
    job->written = path;
    return CO_OK;
}

/* The tree, without comments. */
static co_status apply_flat(char **out, const char *text, size_t size, const char *const *set)
{
    co_config *config;
    char *made = NULL;
    size_t n = 0;
    FILE *stream;
    co_status st;

    CO_TRY(co_config_parse(&config, text, size, "config"));
    stream = open_memstream(&made, &n);
    st = stream ? CO_OK : co_fail(CO_E_NOMEM, "out of memory");
    for (; st == CO_OK && *set; set++)
        st = co_config_set(config, *set);
    for (size_t i = 0; st == CO_OK && i < co_config_root(config)->n; i++) {
        fprintf(stream, "%s: ", co_config_root(config)->key[i]);
        st = co_value_write(stream, co_config_root(config)->item[i]);
        fputc('\n', stream);
    }
    if (stream)
        st = co_text_take(out, stream, &made, st);
    co_config_destroy(config);
    return st;
}

static co_status apply_text(char **out, const tune_job *job, const char *text,
                            const char *const *set)
{
    char *now = co_strdup(text), *next = NULL;
    co_status st = now ? CO_OK : CO_E_NOMEM;

    for (const char *const *at = set; st == CO_OK && *at; at++) {
        st = co_config_edit(&next, now, strlen(now), *at);
        if (st == CO_OK) {
            co_free(now);
            now = next;
        }
    }
    if (st == CO_E_UNSUPPORTED) {
        co_free(now);
        now = NULL;
        co_log(CO_LOG_WARN, "%s: its form cannot be kept: it is written anew, without comments",
               job->path);
        st = apply_flat(&now, text, strlen(text), set);
    }
    if (st != CO_OK)
        co_free(now);
    *out = st == CO_OK ? now : NULL;
    return st;
}

static co_status apply_write(const char *path, const char *text)
{
    co_atomic_file *file;

    CO_TRY(co_atomic_open(&file, path));
    fputs(text, co_atomic_stream(file));
    return co_atomic_commit(file);
}

co_status tune_apply(tune_job *job)
{
    const tune_step *step = job->options->change_result ? &job->changed : &job->kept;
    const char *set[TUNE_MAX_ROWS + 2];
    uint8_t *text = NULL;
    char *made = NULL;
    size_t size = 0;
    co_status st;

    if (!job->options->apply)
        return CO_OK;
    if (!tune_point_set(set, job, &step->point) || !set[0]) {
        job->written = NULL;
        return CO_OK;
    }
    if (job->options->set.n)
        co_log(CO_LOG_INFO, "what --set changes was measured, and is not written");
    CO_TRY(co_fs_read(&text, &size, job->path, CO_CONFIG_MAX_BYTES, CO_E_USAGE));
    st = apply_text(&made, job, (const char *)text, set);
    if (st == CO_OK)
        st = apply_write(job->written, made);
    co_free(made);
    co_free(text);
    return st;
}
