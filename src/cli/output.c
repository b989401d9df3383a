/* output.c - cells of tables, and which files commands may overwrite. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "core/utf8.h"
#include "data/pack_layout.h"

#define OUTPUT_HEAD 16 /* bytes that identify a file type */

void cli_print_cell(const char *text, int width)
{
    const int blanks = width - (int)co_utf8_count(text);

    printf("%s%*s", text, blanks > 0 ? blanks : 0, "");
}

static bool output_begins(const uint8_t *head, const char *with)
{
    return memcmp(head, with, strlen(with)) == 0;
}

static bool output_is(cli_output kind, const uint8_t head[OUTPUT_HEAD])
{
    switch (kind) {
    case CLI_ONNX:
        return head[0] == 0x08; /* ir_version, the first field of a model */
    case CLI_SAFETENSORS:
        return head[7] == 0 && head[8] == '{'; /* the header follows its 8-byte length */
    case CLI_PACK:
        return memcmp(head, PACK_MAGIC, 8) == 0;
    case CLI_PLOT:
        return output_begins(head, "\x89PNG") || output_begins(head, "<?xml") ||
               output_begins(head, "<svg") || output_begins(head, "%PDF");
    case CLI_NPY:
        return output_begins(head, "\x93NUMPY");
    case CLI_HTML:
        return output_begins(head, "<!DOCTYPE html>");
    }
    return false;
}

co_status cli_check_output(const char *path, cli_output kind, const char *const *inputs)
{
    static const char *const names[] = {"an ONNX file", "a safetensors file", "a packed data set",
                                        "a plot",       "an array of NumPy",  "a page"};
    static const co_open_rule rule = {.status = CO_E_USAGE};
    uint8_t head[OUTPUT_HEAD] = {0};
    uint64_t size = 0;
    FILE *file;

    if (!co_fs_exists(path))
        return CO_OK;
    for (; *inputs; inputs++)
        if (co_fs_same(path, *inputs))
            return co_fail(CO_E_USAGE, "%s is what is read; give another name for the result",
                           path);
    CO_TRY(co_open_stream(&file, &size, path, &rule));
    (void)!fread(head, 1, sizeof(head), file);
    fclose(file);
    if (size == 0 || output_is(kind, head))
        return CO_OK;
    return co_fail(CO_E_USAGE, "%s is there and not %s: remove it, or give another name", path,
                   names[kind]);
}

co_status cli_flush_output(void)
{
    if (fflush(stdout) == 0 || errno == EPIPE)
        return CO_OK;
    return co_fail(CO_E_IO, "cannot write to standard output: %s", strerror(errno));
}

co_status cli_check_signal(const co_child_guard *guard)
{
    const struct timespec now = {0};
    const int signal = sigtimedwait(&guard->watched, NULL, &now);

    if (signal == SIGINT)
        return co_fail(CO_E_INTERRUPTED, "interrupted; nothing was written");
    if (signal == SIGTERM || signal == SIGHUP)
        return co_fail(CO_E_TERMINATED, "terminated; nothing was written");
    return CO_OK;
}
