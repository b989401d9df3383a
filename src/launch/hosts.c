/*
 * hosts.c - the hosts of a job, and which of them the launcher can still reach. Does not know what
 * ranks do there.
 */
#include "launch/hosts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"

#define HOSTS_REACH_S 20 /* limit for a test program to start and end on a host */

/* Split `text` at the characters of `by`. */
static co_status hosts_split(const char **out, int *n, int max, co_arena *arena, const char *text,
                             const char *by)
{
    char *copy = co_arena_strdup(arena, text), *rest = NULL;

    if (!copy)
        return CO_E_NOMEM;
    for (char *word = strtok_r(copy, by, &rest); word; word = strtok_r(NULL, by, &rest)) {
        if (*n == max)
            return co_fail(CO_E_USAGE, "--mpiexec, --hosts: too many words");
        out[(*n)++] = word;
    }
    return CO_OK;
}

co_status co_hosts_read(co_hosts *out, co_arena *arena, const char *mpiexec, const char *hosts)
{
    out->arena = arena;
    out->mpiexec = mpiexec;
    out->n = 0;
    return hosts ? hosts_split(out->name, &out->n, CO_HOSTS_MAX, arena, hosts, ", ") : CO_OK;
}

static const char *hosts_join(const co_hosts *h)
{
    const char *text = "";

    for (int i = 0; i < h->n && text; i++)
        text = co_arena_printf(h->arena, "%s%s%s", text, i ? "," : "", h->name[i]);
    return text;
}

co_status co_hosts_launcher(const char **argv, int *n, const co_hosts *h, int ranks)
{
    const char *number = co_arena_printf(h->arena, "%d", ranks), *hosts = hosts_join(h);
    bool has_ranks = false, has_hosts = h->n == 0;

    if (!number || !hosts)
        return CO_E_NOMEM;
    CO_TRY(hosts_split(argv, n, CO_HOSTS_WORDS - 4, h->arena, h->mpiexec, " \t\n"));
    if (*n == 0)
        return co_fail(CO_E_USAGE,
                       "--mpiexec: name the command that starts ranks, such as mpiexec");
    for (int i = 0; i < *n; i++) {
        if (strcmp(argv[i], "{ranks}") == 0) {
            argv[i] = number;
            has_ranks = true;
        } else if (strcmp(argv[i], "{hosts}") == 0) {
            if (h->n == 0)
                return co_fail(CO_E_USAGE, "--mpiexec: {hosts} needs --hosts A,B,...");
            argv[i] = hosts;
            has_hosts = true;
        }
    }
    if (!has_ranks) {
        argv[(*n)++] = "-n";
        argv[(*n)++] = number;
    }
    if (!has_hosts) {
        argv[(*n)++] = "--host";
        argv[(*n)++] = hosts;
    }
    return CO_OK;
}

/* "n1", "n1.cluster" and "n1:4" are the same host. */
static bool hosts_are_one(const char *a, const char *b)
{
    const size_t n = strcspn(a, ".:"), m = strcspn(b, ".:");

    return n == m && strncmp(a, b, n) == 0;
}

static int hosts_find(const co_hosts *h, const char *name)
{
    for (int i = 0; i < h->n; i++)
        if (hosts_are_one(h->name[i], name))
            return i;
    return -1;
}

bool co_hosts_has(const co_hosts *hosts, const char *name)
{
    return hosts_find(hosts, name) >= 0;
}

static void hosts_remove(co_hosts *h, int at)
{
    memmove(&h->name[at], &h->name[at + 1], (size_t)(h->n - at - 1) * sizeof(h->name[0]));
    h->n--;
}

void co_hosts_drop(co_hosts *hosts, const char *name)
{
    const int at = hosts_find(hosts, name);

    if (at >= 0 && hosts->n > 1)
        hosts_remove(hosts, at);
}

/* ---- reachability ---- */

static bool hosts_tick(void *arg, double seconds)
{
    (void)arg;
    return seconds > HOSTS_REACH_S;
}

/* Start a program that ends at once on the host, as the launcher would start a rank. */
static co_status hosts_reach(bool *out, const co_hosts *h, int at, const co_child_guard *guard,
                             const char *program)
{
    co_hosts one = {.arena = h->arena, .mpiexec = h->mpiexec, .name = {h->name[at]}, .n = 1};
    const char *argv[CO_HOSTS_WORDS + 3];
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    co_child child = {.argv = argv, .log = null, .ask = SIGTERM, .tick = hosts_tick};
    co_child_ending ending = {0};
    co_status st;
    int n = 0;

    st = co_hosts_launcher(argv, &n, &one, 1);
    if (st == CO_OK) {
        argv[n++] = program;
        argv[n++] = "--version";
        argv[n] = NULL;
        child.file = argv[0];
        st = co_child_run(&ending, guard, &child);
    }
    if (null >= 0)
        close(null);
    *out = WIFEXITED(ending.wait) && WEXITSTATUS(ending.wait) == 0;
    return st;
}

co_status co_hosts_drop_lost(co_hosts *hosts, const co_child_guard *guard, const char *program)
{
    bool reached[CO_HOSTS_MAX], any = false;

    for (int i = 0; i < hosts->n && hosts->n > 1; i++) {
        CO_TRY(hosts_reach(&reached[i], hosts, i, guard, program));
        any = any || reached[i];
    }
    for (int i = hosts->n - 1; i >= 0 && any; i--)
        if (!reached[i]) {
            co_log(CO_LOG_WARN, "host %s cannot be reached any more", hosts->name[i]);
            hosts_remove(hosts, i);
        }
    return CO_OK;
}
