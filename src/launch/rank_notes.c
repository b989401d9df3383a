/*
 * rank_notes.c - one small file per rank, one line per note.
 *
 * The file is opened and closed for each note, so that others see it on a network file system. Does
 * not know what notes are used for.
 */
#include "launch/rank_notes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"

#define NOTES_MAX_PATH 4352
#define NOTES_MAX_LINE 1536
#define NOTES_MAX_FILE ((size_t)1 << 20)
#define NOTES_RESTART  "restart" /* the other files are named by rank */
#define NOTES_STARTING "starting"

static const co_open_rule notes_rule = {.status = CO_E_DATA, .own = true, .max = NOTES_MAX_FILE};

static const char *const notes_words[] = {[CO_NOTE_BEGUN] = "begun",
                                          [CO_NOTE_TOLD] = "told",
                                          [CO_NOTE_FAILED] = "failed",
                                          [CO_NOTE_LEFT] = "left"};

static bool notes_join(char out[NOTES_MAX_PATH], const char *folder, const char *name)
{
    const int n = snprintf(out, NOTES_MAX_PATH, "%s/%s", folder, name);

    return n > 0 && n < NOTES_MAX_PATH;
}

static bool notes_path(char out[NOTES_MAX_PATH], const char *folder, int rank)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", rank);
    return notes_join(out, folder, name);
}

static bool notes_is_ours(const char *name)
{
    return strspn(name, "0123456789") == strlen(name) || strcmp(name, NOTES_RESTART) == 0 ||
           strcmp(name, NOTES_STARTING) == 0;
}

static void notes_clear(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (notes_is_ours(e->d_name))
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
}

void co_notes_remove(const char *folder)
{
    notes_clear(folder);
    (void)rmdir(folder);
}

static void notes_append_to(const char *path, const char *line)
{
    int fd;

    if (co_open_append(&fd, path) != CO_OK)
        return;
    (void)!write(fd, line, strlen(line));
    close(fd);
}

static void notes_append(const char *folder, int rank, const char *line)
{
    char path[NOTES_MAX_PATH];

    if (notes_path(path, folder, rank))
        notes_append_to(path, line);
}

co_status co_notes_create(const char *folder, const co_notes_restart *restart)
{
    char path[NOTES_MAX_PATH], line[NOTES_MAX_LINE];

    CO_TRY(co_fs_mkdirs(folder));
    notes_clear(folder);
    snprintf(line, sizeof(line), "%d %d %s\n", restart->count, restart->lost_rank, restart->cause);
    if (restart->count && notes_join(path, folder, NOTES_RESTART))
        notes_append_to(path, line);
    return CO_OK;
}

void co_notes_read_restart(co_notes_restart *out, const char *folder)
{
    char path[NOTES_MAX_PATH], line[NOTES_MAX_LINE] = "";
    FILE *file;
    int at = 0;

    *out = (co_notes_restart){.lost_rank = -1};
    if (!notes_join(path, folder, NOTES_RESTART) ||
        co_open_stream(&file, NULL, path, &notes_rule) != CO_OK)
        return;
    if (fgets(line, sizeof(line), file) &&
        sscanf(line, "%d %d %n", &out->count, &out->lost_rank, &at) == 2 && at > 0)
        snprintf(out->cause, sizeof(out->cause), "%.*s", (int)strcspn(line + at, "\n"), line + at);
    fclose(file);
}

void co_notes_starting(const char *folder)
{
    char path[NOTES_MAX_PATH];

    if (notes_join(path, folder, NOTES_STARTING))
        notes_append_to(path, "");
}

bool co_notes_any_starting(const char *folder)
{
    char path[NOTES_MAX_PATH];

    return notes_join(path, folder, NOTES_STARTING) && co_fs_exists(path);
}

void co_notes_begin(const char *folder, int rank)
{
    char host[256] = "", line[NOTES_MAX_LINE];

    gethostname(host, sizeof(host) - 1);
    snprintf(line, sizeof(line), "%s %ld %s\n", notes_words[CO_NOTE_BEGUN], (long)getpid(), host);
    notes_append(folder, rank, line);
}

void co_notes_say(const char *folder, int rank, co_note_kind kind, co_status status, uint64_t step,
                  const char *message)
{
    char line[NOTES_MAX_LINE];
    int n;

    n = snprintf(line, sizeof(line) - 1, "%s %d %llu %s", notes_words[kind], (int)status,
                 (unsigned long long)step, message);
    n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
    for (int i = 0; i < n; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    memcpy(line + n, "\n", 2);
    notes_append(folder, rank, line);
}

void co_notes_say_where(const char *folder, int rank, const char *where)
{
    char line[NOTES_MAX_LINE];

    snprintf(line, sizeof(line), "where %.*s\n", (int)sizeof(((co_note *)0)->where) - 1, where);
    for (char *at = line; at[0] && at[1]; at++)
        *at = *at == '\n' ? ' ' : *at;
    notes_append(folder, rank, line);
}

/* Whether a note may follow one of kind `before`: a final note is kept. */
static bool notes_is_news(co_note_kind before)
{
    return before == CO_NOTE_BEGUN || before == CO_NOTE_TOLD;
}

static void notes_take(co_note *note, const char *line)
{
    char word[16];
    int status = 0, at = 0;
    unsigned long long step = 0;

    if (sscanf(line, "begun %ld %255s", &note->pid, note->host) == 2) {
        note->kind = CO_NOTE_BEGUN;
        return;
    }
    if (strncmp(line, "where ", 6) == 0) {
        snprintf(note->where, sizeof(note->where), "%.*s", (int)strcspn(line + 6, "\n"), line + 6);
        return;
    }
    if (!notes_is_news(note->kind) ||
        sscanf(line, "%15s %d %llu %n", word, &status, &step, &at) < 3)
        return;
    for (int kind = CO_NOTE_TOLD; kind <= CO_NOTE_LEFT; kind++)
        if (strcmp(word, notes_words[kind]) == 0) {
            note->kind = (co_note_kind)kind;
            note->status = status > 0 && status <= (int)CO_E_FAILED ? (co_status)status : CO_OK;
            note->step = step;
            snprintf(note->message, sizeof(note->message), "%.*s", (int)strcspn(line + at, "\n"),
                     line + at);
        }
}

void co_notes_read(co_note *out, const char *folder, int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        char path[NOTES_MAX_PATH], line[NOTES_MAX_LINE];
        FILE *file;

        memset(&out[rank], 0, sizeof(out[rank]));
        if (!notes_path(path, folder, rank) ||
            co_open_stream(&file, NULL, path, &notes_rule) != CO_OK)
            continue;
        while (fgets(line, sizeof(line), file))
            notes_take(&out[rank], line);
        fclose(file);
    }
}
