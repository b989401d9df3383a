/* data_get.c - `cohort data get`: fetches a data set by its name. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/text.h"
#include "data/home.h"
#include "fetch/get.h"
#include "launch/child.h"
#include "telemetry/format.h"

#define DATA_GET_TICK_NS UINT64_C(200000000)

typedef struct data_get_options {
    const char *from, *to;
    bool list, quiet;
} data_get_options;

static const cli_argument data_get_arguments[] = {
    {"NAME", true, "mnist, fashion-mnist, cifar10, cifar100, imagenette, tinyshakespeare"},
    {NULL, false, NULL},
};

static const cli_option data_get_option_table[] = {
    {"list", 'l', CLI_FLAG, offsetof(data_get_options, list), NULL, 0, 0,
     "name the sets, where they come from, and which are here"},
    {"from", 0, CLI_TEXT, offsetof(data_get_options, from), "DIR|URL", 0, 0,
     "take the files from a folder, or from another address than the set's own"},
    {"to", 0, CLI_TEXT, offsetof(data_get_options, to), "DIR", 0, 0,
     "put it there; default: NAME in the user's folder of data"},
    {"quiet", 'q', CLI_FLAG, offsetof(data_get_options, quiet), NULL, 0, 0,
     "no progress, no summary"},
    CLI_OPTIONS_END,
};

typedef struct data_get {
    co_child_guard guard;
    bool terminal;
    char what[64]; /* that the bar is of */
    uint64_t start_ns, shown_ns, start_done;
} data_get;

static co_status data_get_tick(void *arg, const char *what, uint64_t done, uint64_t total)
{
    const uint64_t now = co_clock_ns();
    char got[32], all[32] = "", rate[32], left[32];
    data_get *g = arg;
    double seconds, speed;
    co_status st;

    st = cli_check_signal(&g->guard);
    if (st != CO_OK)
        return co_fail(st, "ended by a signal; the same command continues the download");
    if (strncmp(g->what, what, sizeof(g->what) - 1) != 0) {
        snprintf(g->what, sizeof(g->what), "%s", what);
        g->start_ns = now;
        g->start_done = done;
    }
    if (!g->terminal || now - g->shown_ns < DATA_GET_TICK_NS)
        return CO_OK;
    g->shown_ns = now;
    seconds = co_clock_seconds(g->start_ns, now);
    speed = seconds > 0 ? (double)(done - g->start_done) / seconds : 0;
    co_format_bytes(got, sizeof(got), done);
    co_format_bytes(rate, sizeof(rate), (uint64_t)speed);
    if (total >= done && total > 0 && speed > 0) {
        co_format_bytes(all, sizeof(all), total);
        co_format_seconds(left, sizeof(left), (double)(total - done) / speed);
        fprintf(stderr, "\r\033[K%s  %s of %s (%.0f%%)  %s/s  %s left", CO_SHOW(what), got, all,
                100 * (double)done / (double)total, rate, left);
    } else {
        fprintf(stderr, "\r\033[K%s  %s  %s/s", CO_SHOW(what), got, rate);
    }
    return CO_OK;
}

static co_status data_get_list(void)
{
    char home[CO_DATA_HOME_PATH];

    for (const co_catalog_set *set = co_catalog; set->name; set++) {
        const bool here = co_data_home(home, set->name) == CO_OK && co_fs_exists(home);

        printf("%-16s %s\n", set->name, set->summary);
        if (here)
            printf("%-16s here: %s\n", "", CO_SHOW(home));
        for (int i = 0; i < CO_CATALOG_MAX_MIRRORS && set->mirror[i]; i++)
            printf("%-16s %s %s\n", "", i ? "or  " : "from", set->mirror[i]);
        printf("%-16s checksums as published by %s\n", "", set->source);
    }
    return CO_OK;
}

static void data_get_say(const co_catalog_set *set, const char *folder, bool own)
{
    const bool by_path = strstr(set->config, "%s") != NULL;

    printf("%s: %s\n", set->name, CO_SHOW(folder));
    if (by_path) {
        const char *hole = strstr(set->config, "%s");

        printf("in a config: `data: %.*s%s%s`\n", (int)(hole - set->config), set->config,
               CO_SHOW(folder), hole + 2);
    } else if (own) {
        printf("in a config: `data: %s`\n", set->config);
    } else {
        printf("in a config: `data: {name: %s, path: %s}`\n", set->config, CO_SHOW(folder));
    }
}

static co_status data_get_fetch(const data_get_options *o, const co_catalog_set *set,
                                const char *folder)
{
    data_get work = {.terminal = !o->quiet && isatty(STDERR_FILENO)};
    const co_get_options options = {.set = set,
                                    .folder = folder,
                                    .from = o->from,
                                    .progress = {.tick = data_get_tick, .arg = &work}};
    co_status st;

    co_child_guard_enter(&work.guard);
    st = co_get(&options);
    co_child_guard_leave(&work.guard);
    if (work.terminal && work.shown_ns)
        fputs("\r\033[K", stderr);
    return st;
}

static co_status data_get_run(const void *options, int n, const char *const *argument)
{
    const data_get_options *o = options;
    const co_catalog_set *set;
    char home[CO_DATA_HOME_PATH];
    const char *folder = o->to;

    if (o->list)
        return data_get_list();
    if (n == 0)
        return co_fail(CO_E_USAGE, "NAME is missing; `cohort data get --list` has the names");
    set = co_catalog_find(argument[0]);
    if (!set)
        return co_fail(CO_E_USAGE,
                       "there is no data set '%s' to get; `cohort data get --list` has "
                       "the names",
                       argument[0]);
    if (!folder) {
        CO_TRY(co_data_home(home, set->name));
        folder = home;
    }
    if (!co_fs_exists(folder))
        CO_TRY(data_get_fetch(o, set, folder));
    else if (o->to)
        return co_fail(CO_E_USAGE, "%s: is there; give another folder by --to", folder);
    if (!o->quiet)
        data_get_say(set, folder, !o->to);
    return CO_OK;
}

const co_command co_command_data_get = {
    .name = "data get",
    .summary = "fetch a data set by its name",
    .about =
        "Downloads the set's files from the first mirror that has them, compares them with their\n"
        "published checksums, unpacks archives, and puts the whole into the user's folder of "
        "data,\n"
        "$XDG_DATA_HOME/cohort or ~/.local/share/cohort, where `data: mnist` and so on find it.\n"
        "Nothing is there under the set's name until all of it is. A download that Ctrl-C ended\n"
        "is continued by the next call. Proxies are those of https_proxy, http_proxy and\n"
        "no_proxy, certificates those of SSL_CERT_FILE, SSL_CERT_DIR or CURL_CA_BUNDLE. Without\n"
        "internet: --from takes a folder or an address that has the same files.",
    .example = "  cohort data get mnist\n"
               "  cohort data get cifar10 --from /mnt/mirror\n"
               "  cohort data get --list",
    .arguments = data_get_arguments,
    .options = data_get_option_table,
    .options_size = sizeof(data_get_options),
    .run = data_get_run,
};
