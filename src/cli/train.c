/* train.c - `cohort train`: run a config. */
#include <cohort/train.h>

#include <stdio.h>

#include "cli/train_dry.h"
#include "cli/train_mpiexec.h"
#include "core/fs.h"
#include "core/text.h"

#define TRAIN_MAX_PATH 4096

static const train_options train_defaults = {.profile_steps = -1, .profile_skip = -1};

static const cli_argument train_arguments[] = {
    {"CONFIG", true, "a YAML file, or a name of `cohort list configs`; resumed: the run's own"},
    {NULL, false, NULL},
};

static const cli_option train_option_table[] = {
    {"ranks", 'n', CLI_COUNT, offsetof(train_options, ranks), "N", 1, 1024,
     "ranks to start here; default: the config's"},
    {"run-dir", 0, CLI_TEXT, offsetof(train_options, run_dir), "DIR", 0, 0,
     "where results go; default: runs/<model>-<date>-<time>"},
    {"set", 's', CLI_LIST, offsetof(train_options, set), "KEY=VALUE", 0, 0,
     "change the config; dotted keys, any YAML value; repeatable"},
    CLI_PLUGIN_OPTION(train_options),
    {"resume", 0, CLI_FLAG, offsetof(train_options, resume), NULL, 0, 0,
     "continue the run in --run-dir, from its last good checkpoint"},
    {"mpiexec", 0, CLI_TEXT, offsetof(train_options, mpiexec), "COMMAND", 0, 0,
     "start ranks by this command, such as mpiexec, and again after a death"},
    {"hosts", 0, CLI_TEXT, offsetof(train_options, hosts), "A,B,...", 0, 0,
     "where ranks of that command may run"},
    {"notes", 0, CLI_TEXT, offsetof(train_options, notes), "DIR", 0, 0,
     "given to ranks by that command: folder in which they note how they end"},
    {"profile", 0, CLI_FLAG, offsetof(train_options, profile), NULL, 0, 0,
     "show where the time goes: a table, profile.json and trace.json"},
    {"profile-steps", 0, CLI_COUNT, offsetof(train_options, profile_steps), "K", 1, 1000000000,
     "steps that --profile watches; default: 20"},
    {"profile-skip", 0, CLI_COUNT, offsetof(train_options, profile_skip), "K", 0, 1000000000,
     "steps before those that --profile watches; default: 5"},
    {"dry-run", 0, CLI_FLAG, offsetof(train_options, dry_run), NULL, 0, 0,
     "check everything, estimate memory and time, and write nothing"},
    {"json", 0, CLI_FLAG, offsetof(train_options, json), NULL, 0, 0,
     "print what --dry-run has found as a JSON object"},
    {"quiet", 'q', CLI_FLAG, offsetof(train_options, quiet), NULL, 0, 0,
     "nothing on standard output"},
    CLI_OPTIONS_END,
};

static uint64_t train_or(int64_t given, uint64_t otherwise)
{
    return given >= 0 ? (uint64_t)given : otherwise;
}

static co_status train_check_profile(const train_options *o)
{
    if (!o->profile && (o->profile_steps >= 0 || o->profile_skip >= 0))
        return co_fail(CO_E_USAGE, "--profile-steps and --profile-skip go with --profile");
    return CO_OK;
}

static co_status train_check_dry(const train_options *o)
{
    if (o->json && !o->dry_run)
        return co_fail(CO_E_USAGE, "--json goes with --dry-run");
    if (o->dry_run && (o->mpiexec || o->profile))
        return co_fail(CO_E_USAGE,
                       "--dry-run starts ranks on this machine, without --mpiexec and --profile; "
                       "over hosts: `mpiexec ... cohort train CONFIG --dry-run`");
    return CO_OK;
}

/* The config on the command line, or the one in --run-dir. */
static co_status train_config(char out[TRAIN_MAX_PATH], const train_options *o, const char *named)
{
    const char *dir = o->run_dir ? o->run_dir : "";
    const int length = named ? snprintf(out, TRAIN_MAX_PATH, "%s", named)
                             : snprintf(out, TRAIN_MAX_PATH, "%s/config.yaml", dir);

    if (!named && !o->resume)
        return co_fail(CO_E_USAGE, "CONFIG is missing: name what to train, or continue a run by "
                                   "--resume --run-dir DIR");
    if (!named && !o->run_dir)
        return co_fail(CO_E_USAGE, "--resume: say which run to continue, by --run-dir DIR");
    if (length < 0 || length >= TRAIN_MAX_PATH)
        return co_fail(CO_E_USAGE, "the path of the config is too long");
    if (!named && !co_fs_exists(out))
        return co_fail(CO_E_USAGE,
                       "%s: holds no config.yaml of a run to continue; name the CONFIG, or "
                       "another --run-dir",
                       o->run_dir);
    return CO_OK;
}

static co_status train_run(const void *options, int n, const char *const *argument)
{
    const train_options *o = options;
    char config[TRAIN_MAX_PATH];
    const co_train_options run = {.config_path = config,
                                  .set = o->set.text,
                                  .ranks = (int)o->ranks,
                                  .run_dir = o->run_dir,
                                  .quiet = o->quiet,
                                  .resume = o->resume,
                                  .profile_steps = o->profile ? train_or(o->profile_steps, 20) : 0,
                                  .profile_skip = train_or(o->profile_skip, 5),
                                  .notes = o->notes};
    co_train_summary summary;

    (void)n;
    CO_TRY(train_config(config, o, argument[0]));
    CO_TRY(cli_check_started("train", config));
    CO_TRY(train_check_profile(o));
    CO_TRY(train_check_dry(o));
    if (o->mpiexec)
        return train_mpiexec(o, config);
    if (o->hosts)
        return co_fail(CO_E_USAGE, "--hosts goes with --mpiexec, which starts ranks there");
    if (o->dry_run)
        return cli_train_dry(&run, config, o->json);
    CO_TRY(co_train(&summary, &run));
    if (!o->quiet && !summary.stopped && co_launch_is_root())
        printf("results: %s (final.safetensors, metrics.jsonl, summary.json)\n",
               CO_SHOW(summary.run_dir));
    return CO_OK;
}

const co_command co_command_train = {
    .name = "train",
    .summary = "train a network as a config file says",
    .about =
        "Starts N ranks on this machine, each on its share of the cores, and trains one model\n"
        "together. Under mpiexec or srun the same command joins that world as one rank, and the\n"
        "launcher's number of processes is the number of ranks. With --mpiexec COMMAND cohort "
        "starts\n"
        "that launcher itself, and again from the last checkpoint as on_failure says; {ranks} "
        "and\n"
        "{hosts} in COMMAND are filled in, else -n and --host are appended to it.\n"
        "\n"
        "The run directory gets config.yaml (as resolved), metrics.jsonl (one JSON object per\n"
        "event), checkpoints/, final.safetensors (the weights, also for Python's safetensors) "
        "and,\n"
        "last, summary.json. A directory that holds an earlier run is refused, unless --resume "
        "continues\n"
        "it: then the same command line starts a run and picks it up again, and without\n"
        "CONFIG it continues with the config.yaml that it was started with. A config that has\n"
        "changed in what the result depends on is refused. Paths in a config are relative to the\n"
        "current directory.\n"
        "\n"
        "--profile adds profile.json, the time of each kernel and of what is in none, on each "
        "rank,\n"
        "and trace.json, which https://ui.perfetto.dev opens. The weights are the same with it.\n"
        "\n"
        "--dry-run checks all that a run needs and makes none: the config, samples all over the\n"
        "data, a kernel for each layer, the checkpoint that --resume would take, the run "
        "directory\n"
        "and its disk. It makes a few steps for the time of a step, an epoch and the run, and for\n"
        "the memory of a rank.\n"
        "\n"
        "Plugins and their keys: `cohort list models`, optimizers, schedules, datasets, ...",
    .example = "  cohort train configs/fashion-mnist.yaml -n 2\n"
               "  cohort train configs/mnist-net.yaml -n 2 --set optimizer.lr=0.05 --set epochs=3\n"
               "  cohort train configs/mnist-net.yaml -n 2 --run-dir runs/first --resume\n"
               "  cohort train --resume --run-dir runs/first\n"
               "  mpiexec -n 8 cohort train configs/mnist-net.yaml --run-dir runs/eight",
    .arguments = train_arguments,
    .options = train_option_table,
    .options_size = sizeof(train_options),
    .defaults = &train_defaults,
    .run = train_run,
};
