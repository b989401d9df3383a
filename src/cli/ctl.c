/* ctl.c - `cohort ctl`: control a run on this machine. */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "cli/cli.h"
#include "core/plural.h"
#include "core/text.h"
#include "launch/control_socket.h"
#include "telemetry/format.h"

#define CTL_TIMEOUT_MS 10000

typedef struct ctl_options {
    bool json;
} ctl_options;

static const cli_argument ctl_arguments[] = {
    {"RUN_DIR", false, "the run's directory"},
    {"REQUEST", false, "status, ranks, checkpoint or stop"},
    {"N", true, "of `ranks`: how many"},
    {NULL, false, NULL},
};

static const cli_option ctl_option_table[] = {
    {"json", 0, CLI_FLAG, offsetof(ctl_options, json), NULL, 0, 0,
     "print the answer as one JSON object"},
    CLI_OPTIONS_END,
};

static long long ctl_count(const json_t *answer, const char *key)
{
    return (long long)json_integer_value(json_object_get(answer, key));
}

static void ctl_print_status(const json_t *answer)
{
    const json_t *stopping = json_object_get(answer, "stopping");
    const json_t *checkpoint = json_object_get(answer, "saved_step"), *item;
    const json_t *speed = json_object_get(answer, "samples_per_second");
    char rate[32];
    size_t i;

    printf("step %lld of %lld, epoch %lld, %lld rank%s, %s samples/s, %.0f s\n",
           ctl_count(answer, "step"), ctl_count(answer, "total_steps"),
           ctl_count(answer, "epoch") + 1, ctl_count(answer, "ranks"),
           co_plural((uint64_t)ctl_count(answer, "ranks")),
           co_format_rate(rate, sizeof(rate),
                          json_is_number(speed) ? json_number_value(speed) : (double)NAN),
           json_number_value(json_object_get(answer, "wall_seconds")));
    if (ctl_count(answer, "restarts") || ctl_count(answer, "resizes"))
        printf("restarts: %lld, changes of the number of ranks: %lld\n",
               ctl_count(answer, "restarts"), ctl_count(answer, "resizes"));
    if (json_is_integer(checkpoint))
        printf("last checkpoint that was asked for: step %lld\n", ctl_count(answer, "saved_step"));
    if (json_is_string(stopping))
        printf("stopping: %s\n", CO_SHOW(json_string_value(stopping)));
    json_array_foreach(json_object_get(answer, "phases"), i, item)
    {
        const char *phase = json_string_value(json_object_get(item, "phase"));

        printf("rank %lld (process %lld): %s for %.1f s%s\n", ctl_count(item, "rank"),
               ctl_count(item, "pid"), phase ? phase : "?",
               json_number_value(json_object_get(item, "seconds")),
               json_is_true(json_object_get(item, "waiting")) ? ", waiting for others" : "");
    }
}

static co_status ctl_print(const char *reply, bool as_json)
{
    json_t *answer = json_loads(reply, 0, NULL);
    const char *error = json_string_value(json_object_get(answer, "error"));
    const char *done = json_string_value(json_object_get(answer, "done"));
    co_status st = CO_OK;

    if (!answer)
        st = co_fail(CO_E_FAILED, "the run's answer is not understood: %.80s", reply);
    else if (error)
        st = co_fail(CO_E_USAGE, "%s", error);
    else if (as_json)
        printf("%s\n", reply);
    else if (done)
        printf("%s\n", CO_SHOW(done));
    else
        ctl_print_status(answer);
    json_decref(answer);
    return st;
}

static co_status ctl_run(const void *options, int n, const char *const *argument)
{
    static const char *const plain[] = {"status", "checkpoint", "stop"};
    const ctl_options *o = options;
    const bool ranks = strcmp(argument[1], "ranks") == 0;
    char request[128], reply[CO_CONTROL_REPLY];
    bool known = ranks;

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        known = known || strcmp(argument[1], plain[i]) == 0;
    if (!known)
        return co_fail(CO_E_USAGE,
                       "'%s' is no request; ask for status, ranks N, checkpoint or stop",
                       argument[1]);
    if (ranks != (n == 3))
        return co_fail(CO_E_USAGE,
                       ranks ? "ranks: say how many, e.g. `cohort ctl %s ranks 4`"
                             : "%s: only `ranks` takes a number",
                       argument[ranks ? 0 : 1]);
    snprintf(request, sizeof(request), ranks ? "%s %s" : "%s", argument[1],
             n == 3 ? argument[2] : "");
    CO_TRY(co_control_ask(reply, argument[0], request, CTL_TIMEOUT_MS));
    return ctl_print(reply, o->json);
}

const co_command co_command_ctl = {
    .name = "ctl",
    .summary = "control a running run: status, another number of ranks, a stop",
    .about =
        "Talks to the launcher of a run on this machine, or to rank 0 of one under mpiexec, over\n"
        "a socket in its run directory that only the user who started it can use.\n"
        "\n"
        "  status      where the run is and what each rank is doing\n"
        "  ranks N     continue with N ranks from the next step; not under mpiexec\n"
        "  checkpoint  save one after the step that is being made\n"
        "  stop        finish the step, save a checkpoint, end with exit code 0\n"
        "\n"
        "The answer comes at once; what was requested happens when the step is complete.",
    .example = "  cohort ctl runs/one status\n"
               "  cohort ctl runs/one ranks 4\n"
               "  cohort ctl runs/one status --json",
    .arguments = ctl_arguments,
    .options = ctl_option_table,
    .options_size = sizeof(ctl_options),
    .run = ctl_run,
};
