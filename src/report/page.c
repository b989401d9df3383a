/* page.c - the page of `cohort report`: template, style and script of src/report/page around JSON.
 */
#include "report/page.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cohort/version.h>

#include "core/fs.h"
#include "core/text.h"
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

#define PAGE_STYLE (JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(7))

static co_status page_no_memory(void)
{
    return co_fail(CO_E_NOMEM, "out of memory");
}

static const char *page_time(char *out, size_t size)
{
    const time_t now = time(NULL);
    struct tm parts;

    *out = '\0';
    if (localtime_r(&now, &parts))
        strftime(out, size, "%Y-%m-%d %H:%M", &parts);
    return out;
}

/* The template, with each @NAME@ replaced. `connect`: what the script may ask for, by the page's
   policy. */
static co_status page_put_all(FILE *out, const json_t *data, const char *connect)
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
        } else if (strncmp(mark, "@CONNECT@", 9) == 0) {
            fputs(connect, out);
            mark += 9;
        } else if (strncmp(mark, "@DATA@", 6) == 0) {
            if (json_dump_callback(data, page_put, out, PAGE_STYLE) != 0)
                return page_no_memory();
            mark += 6;
        } else {
            putc(*mark++, out);
        }
    }
    fputs(at, out);
    return CO_OK;
}

co_status co_page_live_json(json_t **out, json_t *runs, const co_page_live *live)
{
    char written[64];

    *out = json_pack("{s:s, s:s, s:{s:s, s:I}, s:O}", "version", co_version(), "written",
                     page_time(written, sizeof(written)), "live", "folder", CO_SHOW(live->folder),
                     "after", (json_int_t)live->after, "runs", runs);
    return *out ? CO_OK : page_no_memory();
}

co_status co_page_put_live(FILE *out, const json_t *data)
{
    CO_TRY(page_put_all(out, data, "connect-src 'self'; "));
    return ferror(out) ? page_no_memory() : CO_OK;
}

co_status co_page_write(const char *path, json_t *runs, const char *machine, json_t *compare)
{
    co_atomic_file *file = NULL;
    char written[64];
    json_t *data;
    co_status st;

    CO_TRY(co_atomic_open(&file, path));
    data = json_pack("{s:s, s:s, s:s?, s:O?, s:O}", "version", co_version(), "written",
                     page_time(written, sizeof(written)), "machine", machine, "compare", compare,
                     "runs", runs);
    st = data ? page_put_all(co_atomic_stream(file), data, "") : page_no_memory();
    json_decref(data);
    if (st != CO_OK) {
        co_atomic_discard(file);
        return st;
    }
    return co_atomic_commit(file);
}
