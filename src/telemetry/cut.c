/*
 * cut.c - remove from metrics.jsonl of a resumed run the events that it will write again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "telemetry/json.h"

#define CUT_MAX_LINE ((size_t)1 << 20)

typedef struct cut {
    uint64_t step, epoch_step; /* the last step that is kept */
} cut;

/* Whether a line is a complete event up to the step; a crash may have cut off the last line. */
static bool cut_keeps(const cut *self, const char *line, size_t length)
{
    json_t *event =
        length > 0 && line[length - 1] == '\n' ? json_loadb(line, length, 0, NULL) : NULL;
    const char *kind = json_string_value(json_object_get(event, "event"));
    const uint64_t first = (uint64_t)json_integer_value(json_object_get(event, "first_step"));
    const uint64_t step =
        first ? first : (uint64_t)json_integer_value(json_object_get(event, "step"));
    bool keeps = false;

    if (!kind)
        keeps = false;
    else if (strcmp(kind, "start") == 0)
        keeps = self->step > 0;
    else if (strcmp(kind, "resume") == 0)
        keeps = step < self->step;
    else if (strcmp(kind, "epoch") == 0) /* else: of a run that was to end at this step */
        keeps = step < self->step || (step == self->step && self->epoch_step == 0);
    else if (strcmp(kind, "end") != 0)
        keeps = step <= self->step;
    json_decref(event);
    return keeps;
}

/* The next line with its newline, if it has one; *length is 0 after the last. */
static co_status cut_read_line(char *line, size_t *length, FILE *in, const char *path)
{
    int c = 0;

    for (*length = 0; c != '\n' && (c = getc_unlocked(in)) != EOF; line[(*length)++] = (char)c)
        if (*length == CUT_MAX_LINE)
            return co_fail(
                CO_E_DATA,
                "%s: has a line of more than %zu bytes, which no run writes; restore it, "
                "or move it away",
                path, CUT_MAX_LINE);
    return ferror(in) ? co_fail(CO_E_IO, "%s: cannot read it: %s", path, strerror(errno)) : CO_OK;
}

static co_status cut_copy(const cut *self, FILE *in, FILE *out, const char *path)
{
    char *line = co_calloc(CUT_MAX_LINE, 1);
    size_t length = 0;
    co_status st = line ? CO_OK : CO_E_NOMEM;

    while (st == CO_OK && (st = cut_read_line(line, &length, in, path)) == CO_OK && length > 0)
        if (cut_keeps(self, line, length))
            (void)fwrite(line, 1, length, out); /* the commit reports a failure */
    co_free(line);
    return st;
}

co_status co_sink_jsonl_cut(const char *run_dir, uint64_t step, uint64_t epoch_step)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true};
    const cut self = {step, epoch_step};
    co_atomic_file *file = NULL;
    char path[4096];
    FILE *in;
    co_status st;
    int n = snprintf(path, sizeof(path), "%s/metrics.jsonl", run_dir);

    if (n < 0 || (size_t)n >= sizeof(path))
        return co_fail(CO_E_USAGE, "%s: the path of the run directory is too long", run_dir);
    if (!co_fs_exists(path))
        return CO_OK;
    CO_TRY(co_open_stream(&in, NULL, path, &rule));
    st = co_atomic_open(&file, path);
    if (st == CO_OK)
        st = cut_copy(&self, in, co_atomic_stream(file), path);
    fclose(in);
    if (st == CO_OK)
        return co_atomic_commit(file);
    co_atomic_discard(file);
    return st;
}
