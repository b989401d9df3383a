/* page.c - the page of `cohort report`: template, style and script of src/report/page around JSON.
 */
#include "report/page.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cohort/version.h>

#include "core/fs.h"
#include "report/page_parts.h"

static const char *page_part(const char *name)
{
    for (const co_page_part *part = co_page_parts; part->name; part++)
        if (strcmp(part->name, name) == 0)
            return part->text;
    return "";
}

/* JSON within a script: no "<" in it can end that, or begin a comment. */
static int page_put(const char *text, size_t n, void *arg)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '<')
            fputs("\\u003c", arg);
        else
            putc(text[i], arg);
    return 0;
}

static co_status page_put_data(FILE *out, const json_t *runs, const char *machine)
{
    const time_t now = time(NULL);
    char written[64] = "";
    struct tm parts;
    json_t *root;
    int bad;

    if (localtime_r(&now, &parts))
        strftime(written, sizeof(written), "%Y-%m-%d %H:%M", &parts);
    root = json_pack("{s:s, s:s, s:s?, s:O}", "version", co_version(), "written", written,
                     "machine", machine, "runs", (json_t *)(uintptr_t)runs);
    bad = !root || json_dump_callback(root, page_put, out,
                                      JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(7));
    json_decref(root);
    return bad ? co_fail(CO_E_NOMEM, "out of memory") : CO_OK;
}

/* The template, with each @NAME@ replaced. */
static co_status page_put_all(FILE *out, const json_t *runs, const char *machine)
{
    const char *at = page_part("report.html"), *mark;

    for (; (mark = strchr(at, '@')); at = mark) {
        fwrite(at, 1, (size_t)(mark - at), out);
        if (strncmp(mark, "@STYLE@", 7) == 0) {
            fputs(page_part("report.css"), out);
            mark += 7;
        } else if (strncmp(mark, "@SCRIPT@", 8) == 0) {
            fputs(page_part("report.js"), out);
            mark += 8;
        } else if (strncmp(mark, "@DATA@", 6) == 0) {
            CO_TRY(page_put_data(out, runs, machine));
            mark += 6;
        } else {
            putc(*mark++, out);
        }
    }
    fputs(at, out);
    return CO_OK;
}

co_status co_page_write(const char *path, const json_t *runs, const char *machine)
{
    co_atomic_file *file = NULL;
    co_status st;

    CO_TRY(co_atomic_open(&file, path));
    st = page_put_all(co_atomic_stream(file), runs, machine);
    if (st != CO_OK) {
        co_atomic_discard(file);
        return st;
    }
    return co_atomic_commit(file);
}
