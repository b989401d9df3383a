/*
 * configs.c - finds the configs that come with the program by name: `fashion-mnist`,
 * `tutorial/a-sync`, and `configs/fashion-mnist.yaml` also where there is no such folder.
 *
 * They are in ../share/cohort/configs relative to an installed program, in ../configs relative to
 * one built in the source tree.
 */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/config.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/open.h"

#define CONFIGS_MAX  256 /* limit of files per folder */
#define CONFIGS_NAME 128

static const char configs_suffix[] = ".yaml";
/* Descriptions of clusters for `cohort plan`, which nobody trains. */
static const char configs_clusters[] = "clusters/";

/* The folder, without a trailing '/'; false: none. */
static bool configs_folder(char out[PATH_MAX])
{
    static const char *const beside[] = {"../share/cohort/configs", "../configs"};
    char program[PATH_MAX], path[PATH_MAX + 64];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    struct stat info;
    char *slash;

    program[n > 0 ? n : 0] = '\0';
    slash = strrchr(program, '/');
    if (!slash)
        return false;
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - program), program, beside[i]);
        if (realpath(path, out) && stat(out, &info) == 0 && S_ISDIR(info.st_mode))
            return true;
    }
    return false;
}

static int configs_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Names in `folder`/`inner`, without suffix, sorted; returns how many. Folders end with '/'. */
static size_t configs_read(char (*out)[CONFIGS_NAME], const char *folder, const char *inner)
{
    const size_t cut = sizeof(configs_suffix) - 1;
    char path[2 * PATH_MAX];
    struct dirent *entry;
    size_t n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", folder, inner);
    dir = opendir(path);
    while (dir && n < CONFIGS_MAX && (entry = readdir(dir))) {
        const size_t length = strlen(entry->d_name);
        const bool file = length > cut && strcmp(entry->d_name + length - cut, configs_suffix) == 0;

        if (entry->d_name[0] == '.' || length + strlen(inner) + 2 > CONFIGS_NAME ||
            (!file && entry->d_type != DT_DIR))
            continue;
        if (snprintf(out[n], CONFIGS_NAME, "%s%.*s%s", inner, (int)(file ? length - cut : length),
                     entry->d_name, file ? "" : "/") < CONFIGS_NAME)
            n++;
    }
    if (dir)
        closedir(dir);
    qsort(out, n, CONFIGS_NAME, configs_compare);
    return n;
}

/* Call `take` for each name, including those in subfolders. */
static void configs_walk(const char *folder, const char *inner,
                         void (*take)(void *arg, const char *folder, const char *name), void *arg)
{
    char(*name)[CONFIGS_NAME] = co_calloc(CONFIGS_MAX, CONFIGS_NAME);
    const size_t n = name ? configs_read(name, folder, inner) : 0;

    for (size_t i = 0; i < n; i++)
        if (name[i][strlen(name[i]) - 1] != '/')
            take(arg, folder, name[i]);
        else if (!*inner && strcmp(name[i], configs_clusters) != 0)
            configs_walk(folder, name[i], take, arg);
    co_free(name);
}

/* First sentence of the comment at the top of a config, as one line. */
static void configs_summary(char *out, size_t size, FILE *file)
{
    char line[256];
    size_t n = 0;

    out[0] = '\0';
    while (fgets(line, sizeof(line), file) && line[0] == '#' && n + 1 < size) {
        char *end;

        line[strcspn(line, "\n")] = '\0';
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", line + strspn(line, "# "));
        for (end = out; (end = strchr(end, '.')); end++)
            if (end[1] == '\0' || (end[1] == ' ' && end[2] >= 'A' && end[2] <= 'Z')) {
                *end = '\0';
                return;
            }
    }
}

static void configs_print_one(void *arg, const char *folder, const char *name)
{
    static const co_open_rule rule = {.status = CO_E_USAGE, .max = CO_CONFIG_MAX_BYTES};
    char path[2 * PATH_MAX], text[512] = "";
    FILE *file;

    (void)arg;
    snprintf(path, sizeof(path), "%s/%s%s", folder, name, configs_suffix);
    if (co_open_stream(&file, NULL, path, &rule) == CO_OK) {
        configs_summary(text, sizeof(text), file);
        fclose(file);
    }
    printf("%-25s %s\n", name, text);
}

void cli_configs_print(void)
{
    char folder[PATH_MAX];

    if (!configs_folder(folder)) {
        printf("none are beside this program\n");
        return;
    }
    configs_walk(folder, "", configs_print_one, NULL);
    printf("\nThey are files of %s; `cohort train NAME` finds them there.\n", folder);
}

typedef struct configs_names {
    const char *list[CONFIGS_MAX];
    char text[CONFIGS_MAX][CONFIGS_NAME];
    size_t n;
} configs_names;

static void configs_collect(void *arg, const char *folder, const char *name)
{
    configs_names *all = arg;

    (void)folder;
    if (all->n == CONFIGS_MAX)
        return;
    snprintf(all->text[all->n], CONFIGS_NAME, "%s", name);
    all->list[all->n] = all->text[all->n];
    all->n++;
}

static co_status configs_unknown(const char *folder, const char *name)
{
    configs_names *all = co_calloc(1, sizeof(*all));
    const char *near = NULL;
    co_status st;

    if (all) {
        configs_walk(folder, "", configs_collect, all);
        near = co_nearest(name, all->list, all->n);
    }
    if (near)
        st = co_fail(CO_E_USAGE, "%s: no such file, and no config of that name; did you mean '%s'?",
                     name, near);
    else
        st = co_fail(CO_E_USAGE,
                     "%s: no such file, and no config of that name; `cohort list configs` names "
                     "those that there are",
                     name);
    co_free(all);
    return st;
}

/* As the documents call it from the source tree: configs/fashion-mnist.yaml. */
static const char *configs_inner(const char *name)
{
    const size_t n = strlen("configs/");

    return strncmp(name, "configs/", n) == 0 ? name + n : name;
}

co_status cli_config_find(char out[CLI_MAX_PATH], const char *name)
{
    const size_t n = strlen(name), cut = sizeof(configs_suffix) - 1;
    const bool suffix = n > cut && strcmp(name + n - cut, configs_suffix) == 0;
    char folder[PATH_MAX];

    if (n >= CLI_MAX_PATH)
        return co_fail(CO_E_USAGE, "the path is too long: %s", name);
    snprintf(out, CLI_MAX_PATH, "%s", name);
    /* Paths that exist, or that cannot be names, are returned unchanged; reading them reports
       errors. */
    if (co_fs_exists(name) || n == 0 || n >= CONFIGS_NAME || name[0] == '/' || name[0] == '.' ||
        strstr(name, "..") || !configs_folder(folder))
        return CO_OK;
    if (strlen(folder) + n + cut + 2 > CLI_MAX_PATH)
        return CO_OK;
    snprintf(out, CLI_MAX_PATH, "%s/%s%s", folder, configs_inner(name),
             suffix ? "" : configs_suffix);
    if (co_fs_exists(out)) {
        if (co_launch_is_root())
            co_log(CO_LOG_INFO, "config: %s", out);
        return CO_OK;
    }
    snprintf(out, CLI_MAX_PATH, "%s", name);
    return strpbrk(name, "/.") ? CO_OK : configs_unknown(folder, name);
}
