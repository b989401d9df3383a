/*
 * rundir.c - the run directory: config.yaml, metrics.jsonl, final.safetensors (with `ema` also
 * trained.safetensors), summary.json; of images data.json, of text the folder tokenizer.
 */
#include "train/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "train/run_data.h"

#define RUNDIR_MAX_PATH 4096
#define RUNDIR_MAX_LOCK 32
#define RUNDIR_SIGN     "cohort\n" /* follows the process id in .lock */

/* How long to wait for the ranks of a killed job to exit. */
#define RUNDIR_WAIT_US 5000000
#define RUNDIR_TRY_US  50000

co_status co_rundir_write_config(const char *path, const co_spec *spec)
{
    char file[RUNDIR_MAX_PATH];
    co_atomic_file *out = NULL;
    co_status st;

    CO_TRY(co_fs_join(file, sizeof(file), path, "config.yaml"));
    CO_TRY(co_atomic_open(&out, file));
    st = co_keys_write(co_atomic_stream(out), spec, co_spec_keys, 0);
    if (st != CO_OK) {
        co_atomic_discard(out);
        return st;
    }
    return co_atomic_commit(out);
}

/* Whether .lock has the contents that a run writes. Returns only CO_E_NOMEM as an error. */
static co_status rundir_is_locked_by_us(bool *ours, const char *path)
{
    const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = RUNDIR_MAX_LOCK};
    char file[RUNDIR_MAX_PATH];
    uint8_t *text = NULL;
    size_t size;
    co_status st = co_fs_join(file, sizeof(file), path, ".lock");

    *ours = false;
    if (st == CO_OK)
        st = co_fs_read_as(&text, &size, file, &rule);
    if (st == CO_OK) {
        const char *digits = (const char *)text;
        const size_t n = strspn(digits, " 0123456789");

        *ours = n > 0 && strcmp(digits + n, RUNDIR_SIGN) == 0;
    }
    co_free(text);
    return st == CO_E_NOMEM ? st : CO_OK;
}

/* A folder is a run's if it has our .lock, or a checkpoint (a copy may have left out dot files). */
static co_status rundir_is_ours(bool *ours, const char *path)
{
    char dir[RUNDIR_MAX_PATH], folder[CO_CHECKPOINT_MAX_PATH], file[CO_CHECKPOINT_MAX_PATH];
    uint64_t *steps = NULL;
    size_t n = 0;
    co_status st;

    CO_TRY(rundir_is_locked_by_us(ours, path));
    if (*ours || co_fs_join(dir, sizeof(dir), path, "checkpoints") != CO_OK)
        return CO_OK;
    st = co_checkpoint_list(&steps, &n, dir);
    for (size_t i = 0; st == CO_OK && i < n && !*ours; i++)
        *ours = co_checkpoint_path(folder, dir, steps[i]) == CO_OK &&
                co_fs_join(file, sizeof(file), folder, CO_MANIFEST_NAME) == CO_OK &&
                co_fs_exists(file);
    co_free(steps);
    return st == CO_E_NOMEM ? st : CO_OK;
}

/* Files that a run writes; `early`: also by one that has not begun training. */
static const struct {
    const char *name;
    bool early;
} rundir_files[] = {
    {"config.yaml", true},     {"control.sock", true},       {"metrics.jsonl", false},
    {"summary.json", false},   {"final.safetensors", false}, {"trained.safetensors", false},
    {"profile.json", false},   {"trace.json", false},        {"checkpoints", false},
    {CO_DATA_TOKENIZER, true}, {CO_RUN_DATA_NAME, true},
};

/* A socket does not count: a dead run left it, and control_socket.c removes it. */
static bool rundir_is_there(const char *file)
{
    struct stat info;

    return lstat(file, &info) == 0 && !S_ISSOCK(info.st_mode);
}

/* Fails if the folder holds files of the user's that a run would overwrite. */
static co_status rundir_check_owner(bool *ours, const char *path)
{
    CO_TRY(rundir_is_ours(ours, path));
    for (size_t i = 0; i < sizeof(rundir_files) / sizeof(rundir_files[0]) && !*ours; i++) {
        char file[RUNDIR_MAX_PATH];

        CO_TRY(co_fs_join(file, sizeof(file), path, rundir_files[i].name));
        if (rundir_is_there(file))
            return co_fail(CO_E_USAGE,
                           "%s is there, and not from a run: training would overwrite it; give "
                           "another --run-dir, or move it away",
                           file);
    }
    return CO_OK;
}

static co_status rundir_check_unused(const char *path)
{
    for (size_t i = 0; i < sizeof(rundir_files) / sizeof(rundir_files[0]); i++) {
        char file[RUNDIR_MAX_PATH];

        CO_TRY(co_fs_join(file, sizeof(file), path, rundir_files[i].name));
        if (!rundir_files[i].early && co_fs_exists(file))
            return co_fail(CO_E_USAGE,
                           "%s holds an earlier run; continue it by --resume, remove it, or give "
                           "another --run-dir",
                           path);
    }
    return CO_OK;
}

co_status co_rundir_check_named(const char *path, bool resume)
{
    if (!path)
        return resume ? co_fail(CO_E_USAGE, "resume: say which run to continue, by --run-dir DIR")
                      : CO_OK;
    if (strlen(path) >= sizeof(((co_train_summary *)NULL)->run_dir))
        return co_fail(CO_E_USAGE, "the name of the run directory is too long");
    return co_fs_check_folder(path, "--run-dir");
}

co_status co_rundir_check(char *path, size_t size, const co_spec *spec)
{
    const char *source = co_config_name(spec->config);
    char prefix[RUNDIR_MAX_PATH], file[RUNDIR_MAX_PATH];
    bool ours;

    if (!path[0]) {
        snprintf(prefix, sizeof(prefix), "runs/%s", co_spec_model_name(spec));
        return co_fs_make_dated(path, size, prefix);
    }
    CO_TRY(rundir_check_owner(&ours, path));
    CO_TRY(rundir_check_unused(path));
    CO_TRY(co_fs_join(file, sizeof(file), path, "config.yaml"));
    if (ours && co_fs_same(file, source))
        return co_fail(CO_E_USAGE,
                       "%s is this run's own config, and would be overwritten; give another "
                       "--run-dir",
                       source);
    return CO_OK;
}

/* The process id in the lock file; 0: unknown. */
static long rundir_holder(int fd)
{
    char text[32] = "";

    return pread(fd, text, sizeof(text) - 1, 0) > 0 ? atol(text) : 0;
}

/* Warn if others own or can write the folder: who can rename files here chooses what a run resumes
   from. Root often works in other users' folders, so it gets no warning for those. */
static void rundir_warn(const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return;
    if ((info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX))
        co_log(CO_LOG_WARN, "%s: every user of this machine may change this run; chmod o-w %s",
               path, path);
    else if (info.st_uid != geteuid() && geteuid() != 0)
        co_log(CO_LOG_WARN, "%s: belongs to another user, who may change this run", path);
}

/* One write over the old contents, so that a killed job always leaves a valid .lock. */
static void rundir_sign(int fd)
{
    char text[RUNDIR_MAX_LOCK];
    const int n = snprintf(text, sizeof(text), "%10ld " RUNDIR_SIGN, (long)getpid());

    if (pwrite(fd, text, (size_t)n, 0) == n)
        (void)!ftruncate(fd, n);
}

co_status co_rundir_lock(int *lock, const char *path)
{
    const int tries = RUNDIR_WAIT_US / RUNDIR_TRY_US;
    char file[RUNDIR_MAX_PATH];
    bool ours;
    int fd, bad;

    CO_TRY(co_fs_join(file, sizeof(file), path, ".lock"));
    CO_TRY(rundir_check_owner(&ours, path));
    CO_TRY(co_fs_mkdirs(path));
    CO_TRY(co_open_lock(&fd, file, path));
    /* The ranks inherit the descriptor, so the lock is free only once all of a job's processes have
       ended. */
    for (int i = 0; (bad = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK && i < tries;
         i++)
        co_clock_sleep_us(RUNDIR_TRY_US);
    if (bad) {
        const int error = errno;
        const long holder = rundir_holder(fd);

        close(fd);
        if (error == EWOULDBLOCK)
            return co_fail(CO_E_USAGE,
                           "%s: another job is running in this run directory (process %ld); wait "
                           "for it, or give another --run-dir",
                           path, holder);
        return co_fail(CO_E_IO, "%s: cannot lock: %s", file, strerror(error));
    }
    rundir_sign(fd);
    rundir_warn(path);
    *lock = fd;
    return CO_OK;
}

void co_rundir_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

co_status co_rundir_keep_characters(co_spec *spec, const char *path)
{
    const co_value *characters = NULL;
    char own[RUNDIR_MAX_PATH];

    if (spec->data && spec->data->kind == CO_VALUE_MAP)
        characters = co_value_get(spec->data, "characters");
    if (!characters || characters->kind != CO_VALUE_SCALAR || co_fs_exists(characters->text))
        return CO_OK;
    CO_TRY(co_fs_join(own, sizeof(own), path, CO_DATA_TOKENIZER));
    return co_fs_exists(own) ? co_config_set_string(spec->config, "data.characters", own) : CO_OK;
}

co_status co_rundir_check_data(const char *path, const co_dataset *data)
{
    char file[RUNDIR_MAX_PATH];

    CO_TRY(co_fs_join(file, sizeof(file), path, CO_DATA_TOKENIZER));
    CO_TRY(co_dataset_check_tokenizer(data, file));
    CO_TRY(co_fs_join(file, sizeof(file), path, CO_RUN_DATA_NAME));
    return co_fs_exists(file) ? co_run_data_compare(file, data) : CO_OK;
}

co_status co_rundir_check_weights(const char *file, const co_dataset *data)
{
    char *place = realpath(file, NULL); /* of a link the run is where it leads */
    char tokenizer[RUNDIR_MAX_PATH];
    int found = co_fs_find_above(tokenizer, sizeof(tokenizer), file, CO_DATA_TOKENIZER);

    if (!found && place)
        found = co_fs_find_above(tokenizer, sizeof(tokenizer), place, CO_DATA_TOKENIZER);
    free(place);
    return found ? co_dataset_check_tokenizer(data, tokenizer) : CO_OK;
}

co_status co_rundir_begin(const char *path, const co_spec *spec, const co_dataset *data)
{
    char tokenizer[RUNDIR_MAX_PATH];

    CO_TRY(co_fs_join(tokenizer, sizeof(tokenizer), path, CO_DATA_TOKENIZER));
    CO_TRY(co_dataset_save_tokenizer(data, tokenizer));
    CO_TRY(co_run_data_write(path, data));
    return co_rundir_write_config(path, spec);
}

co_status co_rundir_create(int *lock, char *path, size_t size, const co_spec *spec,
                           const co_dataset *data)
{
    CO_TRY(co_rundir_check(path, size, spec));
    CO_TRY(co_rundir_lock(lock, path));
    CO_TRY(co_rundir_check(path, size, spec)); /* again, now that the lock is held */
    return co_rundir_begin(path, spec, data);
}

co_status co_rundir_save_weights(char sha256[65], const char *path, const co_model *model)
{
    char file[RUNDIR_MAX_PATH];
    co_named_tensor *tensors = NULL;
    size_t n = 0;

    CO_TRY(co_fs_join(file, sizeof(file), path, "final.safetensors"));
    CO_TRY(co_model_tensors(&tensors, &n, model));
    co_safetensors_sha256(sha256, tensors, n);
    co_free(tensors);
    return co_model_save(model, file);
}

co_status co_rundir_save_trained(const char *path, const co_model *model)
{
    char file[RUNDIR_MAX_PATH];

    CO_TRY(co_fs_join(file, sizeof(file), path, "trained.safetensors"));
    return co_model_save(model, file);
}
