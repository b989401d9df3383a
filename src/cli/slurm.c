/*
 * slurm.c - `cohort slurm`: writes a batch script for Slurm that trains a config on several nodes,
 * saves before the time limit and continues after it or after the loss of a node.
 *
 * Does not call Slurm.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "train/loader_setup.h"
#include "train/trainer.h"

#define SLURM_NAME "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-"

typedef struct slurm_options {
    int64_t nodes, tasks, cpus, save_before;
    const char *time, *partition, *mpi, *run_dir;
    bool no_kill;
    cli_list set, sbatch;
} slurm_options;

static const slurm_options slurm_defaults = {
    .nodes = 1, .tasks = 1, .save_before = 300, .mpi = "pmix"};

static const cli_argument slurm_arguments[] = {
    {"CONFIG", false, "what to train, as for `cohort train`"},
    {NULL, false, NULL},
};

static const cli_option slurm_option_table[] = {
    {"nodes", 'N', CLI_COUNT, offsetof(slurm_options, nodes), "N", 1, 65536,
     "nodes of the job; default: 1"},
    {"ntasks-per-node", 0, CLI_COUNT, offsetof(slurm_options, tasks), "K", 1, 1024,
     "ranks on each node; default: 1"},
    {"cpus-per-task", 0, CLI_COUNT, offsetof(slurm_options, cpus), "C", 1, 4096,
     "cores of each rank; default: the cluster's"},
    {"time", 't', CLI_TEXT, offsetof(slurm_options, time), "LIMIT", 0, 0,
     "of the job: 30 (minutes), 12:00:00, 2-00:00:00; default: the partition's"},
    {"save-before", 0, CLI_COUNT, offsetof(slurm_options, save_before), "S", 60, 65535,
     "seconds before it, when the run saves and is queued again; default: 300"},
    {"partition", 'p', CLI_TEXT, offsetof(slurm_options, partition), "NAME", 0, 0,
     "of the cluster; default: the cluster's"},
    {"mpi", 0, CLI_TEXT, offsetof(slurm_options, mpi), "KIND", 0, 0,
     "which srun starts: pmix (default) for Open MPI, pmi2 for MPICH"},
    {"no-kill", 0, CLI_FLAG, offsetof(slurm_options, no_kill), NULL, 0, 0,
     "when a node fails continue on the others; default: queue the job again"},
    {"run-dir", 0, CLI_TEXT, offsetof(slurm_options, run_dir), "DIR", 0, 0,
     "where results go; all nodes see it; default: runs/<model>-<job>"},
    {"set", 's', CLI_LIST, offsetof(slurm_options, set), "KEY=VALUE", 0, 0,
     "change the config; repeatable"},
    {"sbatch", 0, CLI_LIST, offsetof(slurm_options, sbatch), "OPTION", 0, 0,
     "one more option of sbatch, as --sbatch=--account=lab; repeatable"},
    CLI_OPTIONS_END,
};

/* ---- checks ---- */

static co_status slurm_check_word(const char *option, const char *text, const char *allowed)
{
    if (text && (!text[0] || text[strspn(text, allowed)]))
        return co_fail(CO_E_USAGE, "--%s: '%s' is none that Slurm knows; see `cohort slurm --help`",
                       option, text);
    return CO_OK;
}

/* Seconds of a time limit: minutes[:seconds], hours:minutes:seconds or
   days-hours[:minutes[:seconds]]; -1: none of these. */
static int64_t slurm_seconds(const char *text)
{
    const bool days = strchr(text, '-') != NULL;
    int64_t field[4] = {0};
    int n = 0;

    for (;; text++) {
        const size_t digits = strspn(text, "0123456789");

        if (n == 4 || digits == 0 || digits > 9)
            return -1;
        field[n++] = strtoll(text, NULL, 10);
        text += digits;
        if (*text == '\0')
            break;
        if (*text != (days && n == 1 ? '-' : ':'))
            return -1;
    }
    if (days)
        return ((field[0] * 24 + field[1]) * 60 + field[2]) * 60 + field[3];
    if (n == 4)
        return -1;
    return n == 3 ? (field[0] * 60 + field[1]) * 60 + field[2] : field[0] * 60 + field[1];
}

/* A job that is told to save as soon as it starts would be queued again for ever. 0 is no limit. */
static co_status slurm_check_time(const slurm_options *o)
{
    const int64_t seconds = o->time ? slurm_seconds(o->time) : 0;

    if (seconds < 0)
        return co_fail(CO_E_USAGE,
                       "--time: '%s' is none that Slurm knows; see `cohort slurm --help`", o->time);
    if (seconds > 0 && seconds <= o->save_before)
        return co_fail(CO_E_USAGE,
                       "--time %s: the run saves %" PRId64
                       " s before that, and would as soon as it "
                       "starts; give a longer time, or a smaller --save-before",
                       o->time, o->save_before);
    return CO_OK;
}

/* The names of MPIs are not those of srun's plugins, of which clusters have others, too. */
static co_status slurm_check_mpi(const char *kind)
{
    CO_TRY(slurm_check_word("mpi", kind, SLURM_NAME));
    if (strcmp(kind, "openmpi") == 0 || strcmp(kind, "mpich") == 0 || strcmp(kind, "none") == 0)
        return co_fail(
            CO_E_USAGE,
            "--mpi: '%s' starts no ranks of Cohort's; pmix does for Open MPI, pmi2 for MPICH",
            kind);
    return CO_OK;
}

/* A line of the script's head; a line break would begin another. */
static co_status slurm_check_line(const char *text)
{
    bool good = text[0] == '-';

    for (const char *c = text; *c; c++)
        good = good && (unsigned char)*c >= ' ' && *c != 127;
    if (!good)
        return co_fail(CO_E_USAGE, "--sbatch: give an option of sbatch with its value in one word: "
                                   "`--sbatch=--account=lab`");
    return CO_OK;
}

/* The same for what is quoted in the shell's lines, which any other byte is safe in. */
static co_status slurm_check_quoted(const char *what, const char *text)
{
    if (text && strpbrk(text, "\n\r"))
        return co_fail(CO_E_USAGE, "%s: a line break cannot be in a batch script", what);
    return CO_OK;
}

static co_status slurm_check(const slurm_options *o, const char *config)
{
    CO_TRY(slurm_check_time(o));
    CO_TRY(slurm_check_word("partition", o->partition, SLURM_NAME ","));
    CO_TRY(slurm_check_mpi(o->mpi));
    CO_TRY(slurm_check_quoted("CONFIG", config));
    CO_TRY(slurm_check_quoted("--run-dir", o->run_dir));
    for (int i = 0; i < o->set.n; i++)
        CO_TRY(slurm_check_quoted("--set", o->set.text[i]));
    for (int i = 0; i < o->sbatch.n; i++)
        CO_TRY(slurm_check_line(o->sbatch.text[i]));
    return CO_OK;
}

/* What a job needs that goes on by itself. */
static co_status slurm_check_ends(const co_spec *spec)
{
    if (spec->saver.unit == CO_SAVER_OFF)
        return co_value_fail(
            spec->checkpoint,
            "checkpoint: without any the job would begin again after each time limit "
            "and never end; give a time such as `1 epoch` or `10 minutes`");
    if (spec->on_failure != CO_ON_FAILURE_STOP)
        return co_value_fail(co_value_get(co_config_root(spec->config), "on_failure"),
                             "on_failure: when a rank dies srun ends them all, so only `stop` is "
                             "possible; --no-kill continues without a node that fails");
    return CO_OK;
}

/* All that is known without the data, which may be on the cluster alone. */
static co_status slurm_check_job(co_job *job, int ranks)
{
    const co_spec *spec = &job->spec;

    CO_TRY(slurm_check_ends(spec));
    CO_TRY(co_spec_check_ranks(spec, ranks));
    CO_TRY(co_job_check_update(job));
    if (job->needs)
        return co_value_fail(spec->strategy,
                             "the strategy '%s' needs ranks that share memory, which those of srun "
                             "do not; take sync, stale or local, or `cohort train` on one machine",
                             co_spec_strategy_name(spec));
    return co_feed_check(spec, ranks);
}

/* What would otherwise be found hours later, when the job starts. */
static co_status slurm_check_config(char name[64], const slurm_options *o, const char *config)
{
    const int ranks = (int)(o->nodes * o->tasks);
    const co_train_options run = {.config_path = config, .set = o->set.text, .ranks = ranks};
    co_job job = {.lock = -1};
    co_status st;

    CO_TRY(co_spec_open(&job.spec, &run));
    st = slurm_check_job(&job, ranks);
    snprintf(name, 64, "%s", co_spec_model_name(&job.spec));
    co_spec_unload(&job.spec);
    return st;
}

/* ---- the script ---- */

/* As one word of the shell. */
static void slurm_print_word(const char *text)
{
    if (text[0] && !text[strspn(text, SLURM_NAME "/=,:+@")]) {
        printf("%s", text);
        return;
    }
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else
            putchar(*text);
    }
    putchar('\'');
}

static void slurm_print_head(const slurm_options *o, const char *name)
{
    printf("#!/bin/sh\n"
           "#SBATCH --job-name=%s\n"
           "#SBATCH --nodes=%" PRId64 "\n"
           "#SBATCH --ntasks-per-node=%" PRId64 "\n",
           name, o->nodes, o->tasks);
    if (o->cpus)
        printf("#SBATCH --cpus-per-task=%" PRId64 "\n", o->cpus);
    if (o->time)
        printf("#SBATCH --time=%s\n", o->time);
    if (o->partition)
        printf("#SBATCH --partition=%s\n", o->partition);
    printf("#SBATCH --signal=USR1@%" PRId64 "\n"
           "#SBATCH --requeue\n"
           "#SBATCH --open-mode=append\n"
           "#SBATCH --output=%%x-%%j.log\n",
           o->save_before);
    if (o->no_kill)
        printf("#SBATCH --no-kill\n");
    for (int i = 0; i < o->sbatch.n; i++)
        printf("#SBATCH %s\n", o->sbatch.text[i]);
}

static void slurm_print_start(const slurm_options *o, const char *name, const char *config)
{
    char program[CLI_MAX_PATH];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

    program[n > 0 ? n : 0] = '\0';
    printf("\nrun=");
    if (o->run_dir)
        slurm_print_word(o->run_dir);
    else
        printf("runs/%s-$SLURM_JOB_ID", name);
    printf("\n\n# On $1 nodes, from the last checkpoint if there is one.\nstart()\n{\n"
           "    resume=\n"
           "    [ ! -e \"$run/config.yaml\" ] || resume=--resume\n"
           "    srun --mpi=%s --nodes=\"$1\" --ntasks=$(($1 * %" PRId64 "))",
           o->mpi, o->tasks);
    if (o->cpus)
        printf(" --cpus-per-task=%" PRId64, o->cpus);
    printf(" \\\n        ");
    slurm_print_word(n > 0 ? program : "cohort");
    printf(" train ");
    slurm_print_word(config);
    printf(" --run-dir \"$run\" $resume");
    for (int i = 0; i < o->set.n; i++) {
        printf(" \\\n        --set ");
        slurm_print_word(o->set.text[i]);
    }
    printf("\n}\n");
}

/* Open MPI under PMIx may crash in MPI_Init, seldom, where nodes are busy. */
static void slurm_print_train(void)
{
    printf("\nwritten()\n{\n"
           "    stat -c %%s \"$run/metrics.jsonl\" 2>/dev/null\n"
           "}\n"
           "\n# A rank may die of a signal while MPI starts: if the run has written nothing by "
           "then, once "
           "more,\n# three times at most.\n"
           "train()\n{\n"
           "    for try in 1 2 3; do\n"
           "        before=$(written)\n"
           "        start \"$1\"\n"
           "        code=$?\n"
           "        [ $code -gt 128 ] && [ $code -ne 143 ] && [ \"$(written)\" = \"$before\" ] || "
           "break\n"
           "    done\n"
           "    return $code\n"
           "}\n");
}

static void slurm_print_loop(bool no_kill)
{
    printf("\nnodes=$SLURM_JOB_NUM_NODES\ntrain \"$nodes\"\ncode=$?\n");
    if (no_kill)
        printf(
            "\n# Slurm takes minutes to notice that a node has failed. If all are still there "
            "by then, "
            "it was\n# something else.\n"
            "while [ $code -ne 0 ] && [ $code -ne 2 ] && [ $code -ne 3 ] && [ $code -ne 143 ]; do\n"
            "    left=$nodes\n"
            "    tries=0\n"
            "    while [ \"$left\" -ge \"$nodes\" ] && [ $tries -lt 80 ]; do\n"
            "        sleep 5\n"
            "        left=$(squeue --noheader --jobs=\"$SLURM_JOB_ID\" --format=%%D)\n"
            "        tries=$((tries + 1))\n"
            "    done\n"
            "    [ \"$left\" -lt \"$nodes\" ] && [ \"$left\" -ge 1 ] || break\n"
            "    echo \"$left of $nodes nodes are left: continuing on them\"\n"
            "    nodes=$left\n"
            "    train \"$nodes\"\n"
            "    code=$?\n"
            "done\n");
    printf("\n# 143: saved, before the time limit if the job is running, else because it was "
           "cancelled.\n"
           "state=$(squeue --noheader --jobs=\"$SLURM_JOB_ID\" --format=%%T)\n"
           "if [ $code -eq 143 ] && [ \"$state\" = RUNNING ]; then\n"
           "    exec scontrol requeue \"$SLURM_JOB_ID\"\n"
           "fi\n"
           "exit $code\n");
}

static co_status slurm_run(const void *options, int n, const char *const *argument)
{
    const slurm_options *o = options;
    char name[64];

    (void)n;
    CO_TRY(slurm_check(o, argument[0]));
    CO_TRY(slurm_check_config(name, o, argument[0]));
    slurm_print_head(o, name);
    slurm_print_start(o, name, argument[0]);
    slurm_print_train();
    slurm_print_loop(o->no_kill);
    return CO_OK;
}

const co_command co_command_slurm = {
    .name = "slurm",
    .summary = "write a batch script that trains on nodes of a Slurm cluster",
    .about =
        "Prints a script for `sbatch`: srun starts the ranks, the run saves before the time\n"
        "limit and is queued again, and continues from its last checkpoint, also after a node\n"
        "has failed. Submit it from the folder in which CONFIG and the data are named as here;\n"
        "that folder and this program have to be at the same place on all nodes.",
    .example =
        "  cohort slurm configs/mnist-net.yaml -N 4 --ntasks-per-node 2 -t 2:00:00 > job.sh\n"
        "  sbatch job.sh",
    .arguments = slurm_arguments,
    .options = slurm_option_table,
    .options_size = sizeof(slurm_options),
    .defaults = &slurm_defaults,
    .run = slurm_run,
};
